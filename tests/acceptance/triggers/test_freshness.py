"""A dataset with ``fresh`` is late when its newest partition came longer ago (T29): each subscriber gets one notice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE, iso
from chalicelib.core.rows.notice import FreshnessWatch
from chalicelib.core.runs import metrics
from chalicelib.flow.definitions import store
from tests.acceptance.words import doze, on, partition
from tests.faults.scenarios_notices import TEAM
from tests.support.clock import NOON
from tests.support.world import World, flights

TOLD = [{"on": ["data_late", "data_fresh"], "to": TEAM}]
DAILY: dict[str, Any] = {"bucket": "lake", "prefix": "daily/", "keys": ["day"], "fresh": "3h"}


def app(*schedules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    named = {f"s{number}": schedule for number, schedule in enumerate(schedules)}
    return flights(named) | {"datasets": {"daily": DAILY | fields}}


def loads(**fields: Any) -> dict[str, Any]:
    return on(partition("daily"), notify=TOLD) | fields


def comes(world: World, day: int) -> None:
    world.upload(f"daily/day={day}/part-0.parquet", size=5)
    world.settle()


def told(world: World) -> list[tuple[str, str, str]]:
    """What each notice says: the kind, the schedule, and why."""
    notices = [json.loads(str((data or {})["text"])) for data in world.targets.queue.data]
    return [(each["what"], each["schedule"], each["reason"]) for notice in notices for each in notice["events"]]


def watch(world: World) -> FreshnessWatch | None:
    return world.ports.rows.get(FreshnessWatch, "demo.daily")


def test_t29_a_late_dataset_is_told_once_and_when_it_is_fresh(world: World) -> None:
    world.deploy(app(loads()))
    comes(world, 1)
    doze(world, "2h50m")
    assert told(world) == []
    doze(world, "20m")
    late = f"demo.daily is late since {iso(NOON + 3 * HOUR)}: its newest partition, day=1, came at {iso(NOON)}"
    assert told(world) == [("data_late", "demo.flights.s0", f"{late}, and fresh is 3h")]
    assert world.metrics.of(metrics.DATASETS_LATE) == [1]
    doze(world, "9h")
    assert len(told(world)) == 1
    came = world.clock.now()
    comes(world, 2)
    world.pass_by("1m")
    again = f"demo.daily is fresh again: its newest partition, day=2, came at {iso(came)}; it was late since "
    assert told(world)[1:] == [("data_fresh", "demo.flights.s0", again + iso(NOON + 3 * HOUR))]
    doze(world, "2h50m")
    assert len(told(world)) == 2
    doze(world, "20m")
    assert [what for what, _, _ in told(world)] == ["data_late", "data_fresh", "data_late"]


def test_t29_partitions_in_time_move_the_watch_alone(world: World) -> None:
    world.deploy(app(loads()))
    for day in range(1, 5):
        comes(world, day)
        doze(world, "2h")
    assert (told(world), world.metrics.of(metrics.DATASETS_LATE)) == ([], [])
    found = watch(world)
    assert found is not None and found.late_since is None


def test_t29_without_any_partition_the_age_counts_from_the_put(world: World) -> None:
    world.deploy(app(loads()))
    doze(world, "3h10m")
    assert [why for _, _, why in told(world)] == [
        f"demo.daily is late since {iso(NOON + 3 * HOUR)}: no partition has come, and fresh is 3h"
    ]


def test_t29_an_old_object_that_comes_late_makes_nothing_fresh(world: World) -> None:
    world.deploy(app(loads()))
    comes(world, 1)
    doze(world, "3h10m")
    comes(world, 1)
    world.pass_by("1m")
    assert [what for what, _, _ in told(world)] == ["data_late"]


def test_t29_each_subscriber_with_a_rule_is_told(world: World) -> None:
    many = [loads(by=["day"], workflow="join" if number % 2 else "clean") for number in range(60)]
    world.deploy(app(*many, on(partition("daily"))))
    doze(world, "3h20m")
    world.pass_by("8m")
    notices = [json.loads(str((data or {})["text"])) for data in world.targets.queue.data]
    counts = {"clean": 0, "join": 0}
    for notice in notices:
        counts[notice["workflow"].rpartition(".")[2]] += notice["count"]
    assert counts == {"clean": 30, "join": 30}


@pytest.mark.parametrize(("span", "late"), [("2h", 1), ("5h", 0), (None, 0)])
def test_t29_a_changed_span_is_checked_at_once(world: World, span: str | None, late: int) -> None:
    world.deploy(app(loads()))
    comes(world, 1)
    doze(world, "2h30m")
    world.deploy(app(loads(), fresh=span))
    doze(world, "1h")
    assert len(told(world)) == late
    assert (watch(world) is None) == (span is None)


def test_t29_a_deleted_dataset_has_no_watch(world: World) -> None:
    world.deploy(app())
    assert watch(world) is not None
    store.delete(world.ports, "dataset", "demo.daily")
    doze(world, "4h")
    assert (watch(world), told(world)) == (None, [])


def test_t29_the_first_check_is_after_the_invocations_before(world: World) -> None:
    """An invocation that has read the dataset without the field wakes no watch. It is over at the first check."""
    world.deploy(app(loads()))
    found = watch(world)
    assert found is not None and found.wake_at == NOON + 3 * MINUTE
