"""H5: a start or an end that is not in time raises a notice, once, and nothing polls for it."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE
from tests.acceptance.words import concurrency, day, doze, on, partition, window
from tests.acceptance.workflows.test_notices import notices, tells, whats
from tests.support.clock import NOON
from tests.support.schedules import at, partitions
from tests.support.world import EMR, World, flights

FEEDS = 1_500
BOTH = [tells("missed_start", "missed_end")]


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def watched(document: dict[str, Any], **deadline: str) -> dict[str, Any]:
    return document | {"deadline": deadline, "notify": BOTH}


def test_h5_job_that_waits_too_long_is_reported_once_with_reason(world: World) -> None:
    document = on(partition(), "clean", window("22:00", "23:00"))
    world.deploy(flights({"nightly": watched(document, start_within="10m", end_within="2h")}))
    world.upload(day(1))
    world.pass_by("9m")
    assert notices(world) == []
    world.pass_by("3m")

    [notice] = notices(world)
    assert whats(notice) == ["missed_start"]
    assert notice["events"][0]["reason"].startswith("not started by 2026-03-02T12:10:00.000Z: between 22:00 and 23:00")
    doze(world, "2h")
    world.pass_by("3m")
    assert [whats(each) for each in notices(world)] == [["missed_start"], ["missed_end"]]
    doze(world, "9h")
    world.finish()
    world.pass_by("3m")
    assert len(notices(world)) == 2, "one notice for each missed deadline"


def test_h5_a_run_in_time_is_not_reported(world: World) -> None:
    world.deploy(flights({"daily": watched(partitions(), start_within="10m", end_within="1h")}))
    world.upload(day(1))
    world.settle()
    world.pass_by("30m")
    world.finish()
    doze(world, "1h")
    world.pass_by("3m")
    assert notices(world) == []


def test_h5_a_run_that_takes_too_long_misses_its_end(world: World) -> None:
    world.deploy(
        flights({"daily": partitions()}, clean={"target": EMR, "deadline": {"end_within": "1h"}, "notify": BOTH})
    )
    world.upload(day(1))
    world.settle()
    world.pass_by("62m")
    [notice] = notices(world)
    assert notice["events"][0]["reason"] == "not ended by 2026-03-02T13:00:00.000Z: the run is STARTING"


@pytest.mark.parametrize(("since", "due"), [("nominal", NOON + MINUTE), ("data", NOON + MINUTE)])
def test_h5_a_fire_counts_from_its_nominal_instant(world: World, since: str, due: int) -> None:
    document = watched(at("1 12 2 3 *"), **{"end_within": "30m", "from": since})
    world.deploy(flights({"once": document}))
    world.tick()
    world.pass_by("33m")
    [notice] = notices(world)
    assert notice["events"][0]["reason"].startswith("not ended by 2026-03-02T12:31:00.000Z")
    assert world.runs("once")[0].nominal_at == due


def test_h5_data_counts_from_when_all_of_it_was_there(world: World) -> None:
    document = watched(on(partition(count=2), "clean", window("22:00", "23:00")), start_within="1h")
    world.deploy(flights({"pair": document}))
    world.upload(day(1))
    world.settle()
    doze(world, "3h")
    assert notices(world) == []
    world.upload(day(2))
    world.settle()
    doze(world, "1h")
    world.pass_by("3m")
    assert notices(world)[0]["events"][0]["reason"].startswith("not started by 2026-03-02T16:00:00.000Z")


def test_h5_an_aborted_or_failed_run_is_reported_as_that_only(world: World) -> None:
    rules = [tells("missed_start", "missed_end", "failed", "aborted")]
    document = on(partition(), "clean", concurrency(1, on_unmet="abort"))
    world.deploy(
        flights({"daily": document | {"deadline": {"start_within": "1m", "end_within": "1h"}, "notify": rules}})
    )
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    world.finish("FAILED", "disk full")
    world.settle()
    doze(world, "2h")
    world.pass_by("6m")
    answer = sorted(what for notice in notices(world) for what in whats(notice))
    assert answer == ["aborted", "failed"]


def test_h5_a_delivery_may_meet_a_deadline_like_any_run(world: World) -> None:
    world.deploy(
        flights({f"tick{number}": watched(at("1 12 2 3 *", "notify"), start_within="1m") for number in range(5)})
    )
    world.tick()
    world.pass_by("5m")
    assert (len(world.targets.queue.messages), notices(world)) == (5, [])


def test_story_5(world: World) -> None:
    """Many rare feeds with generous deadlines: each runs when its feed comes, even late in the month. Idle schedules
    cost no checks, and a missed deadline is announced.
    """
    feeds = {
        f"feed{number:04d}": {"bucket": "lake", "prefix": f"raw/feed{number:04d}/", "keys": ["feed-id", "_day"]}
        for number in range(FEEDS)
    }
    loads = {
        name: watched(partitions(1, "clean", name, timeout="never"), **{"end_within": "2d", "from": "data"})
        for name in feeds
    }
    world.deploy({**flights(loads), "datasets": feeds})
    doze(world, "20d")
    rows = [
        ref
        for table in ("jobs", "runs", "catalog")
        for ref in world.ports.wakes.overdue(table, NOON + 90 * 24 * HOUR, 1_000)
    ]
    assert rows == [], "what waits for its feed needs no check before it comes"

    for number in (3, FEEDS // 2, FEEDS - 1):
        world.upload(f"raw/feed{number:04d}/feed-id={number}/_day=1/part-0.csv")
        world.settle()
    assert sum(len(world.runs(name)) for name in loads) == 3
    late, *others = [run.id for run in world.targets.emr.runs.values()]
    for run_id in others:
        world.emr_says(run_id, "SUCCESS")
    doze(world, "2d")
    world.pass_by("3m")
    [notice] = notices(world)
    assert (whats(notice), notice["events"][0]["schedule"]) == (["missed_end"], "demo.flights.feed0003")
    world.emr_says(late, "SUCCESS")
    doze(world, "10d")
    assert len(notices(world)) == 1
