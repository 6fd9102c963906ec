"""The world of the benchmark `console` has the rows that the product writes; its budgets name the views that exceed
them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from benchmarks import console, frames, measurement
from benchmarks.console import browse
from benchmarks.console.copies import Change, Item, Shards, copy
from benchmarks.console.views import View, views
from benchmarks.console.world import AGE, LIMIT, NAMESPACE, Played, Size, everything, seed
from chalicelib.core.instants import DAY, HOUR, SECOND
from tests.support.clock import NOON
from tests.support.world import World

SHARDS = Shards(wake=4, history=4)
SMALL = Size(
    apps=2, schedules=40, days=2, a_day=2, gathering=3, windows=2, approvals=2, queued=7, running=3, letters=2,
    partitions=5, versions=2, dag_runs=1,
)  # fmt: skip
DIGEST = re.compile(r"[0-9a-f]{20,40}|\bjr[0-9a-f]{5,12}\b")
ENDS: dict[str, str | None] = {"fed": "SUCCESS", "failing": "FAILED", "running": None, "pair": None, "approval": None}


def plain(item: Item) -> Any:
    """An item with a word for each digest. The parts of indexes follow from digests."""
    whole = {name: content.get("S") or content for name, content in item.items()}
    for name in ("wake_shard", "day_key", "wf_key", "schedule_key"):
        if name in whole:
            whole[name] = re.sub(r"(?<=#)\d$|^\d$", "part", str(whole[name]))
    return DIGEST.sub("digest", repr(sorted(whole.items(), key=lambda pair: str(pair[0]))))


def play(kind: str, app: str, name: str, dataset: str, begun: int, at: int) -> World:
    """The product with one schedule of a kind, whose partition comes at an instant."""
    document = seed()
    schedule = document["schedules"][f"seed-{kind}"]
    schedule = {**schedule, "trigger": {**schedule["trigger"], "dataset": dataset}}
    world = World()
    world.clock._now = begun
    world.deploy(
        {
            "datasets": {dataset: {**document["datasets"][f"of-{kind}"], "prefix": f"raw/{dataset}/"}},
            "workflows": document["workflows"],
            "schedules": {name: schedule},
        },
        NAMESPACE,
        app,
    )
    world.clock.wait_until(at)
    world.upload(f"raw/{dataset}/day=2013-01-01/part-0")
    world.settle()
    if ENDS[kind] is not None:
        world.finish(str(ENDS[kind]))
    return world


@pytest.mark.parametrize("kind", ENDS)
def test_e9_a_copied_row_is_the_row_that_the_product_writes(kind: str) -> None:
    first = play(kind, "seed", f"seed-{kind}", f"of-{kind}", NOON, NOON + SECOND)
    there = play(kind, "a7", "s0042", "days-0004", NOON - AGE, NOON + SECOND - DAY)
    texts = {f"seed-{kind}": "s0042", f"{NAMESPACE}.seed": f"{NAMESPACE}.a7", f"of-{kind}": "days-0004"}
    change = Change(SHARDS, texts, -DAY, {NOON: NOON - AGE}, salt="x", event_salt="y")

    def own(world: World) -> set[Any]:
        rows = ((table, dict(item)) for table, item in world.tables.rows())
        kept = ((table, item) for table, item in rows if "s0042" in repr(item) or f"seed-{kind}" in repr(item))
        return {(table, plain(copy(item, change) if world is first else item)) for table, item in kept}

    assert own(first) == own(there)


def test_a_copy_without_a_change_is_the_item_itself() -> None:
    world = play("fed", "seed", "seed-fed", "of-fed", NOON, NOON + SECOND)
    items = [dict(item) for _, item in world.tables.rows()]
    assert [copy(item, Change(SHARDS)) for item in items] == items


def test_copies_lie_in_the_right_parts_of_the_indexes() -> None:
    world = play("fed", "seed", "seed-fed", "of-fed", NOON, NOON + SECOND)
    [run] = [dict(item) for table, item in world.tables.rows() if item["sk"]["S"] == "A#001"]
    days = [copy(run, Change(SHARDS, salt=str(number), shift=-number * DAY)) for number in range(1, 30)]
    listed = [key for item in days for key in (item["day_key"]["S"],)]
    assert {key.split("#")[1] for key in listed} == {item["at"]["S"][:10] for item in days}
    assert len({key.split("#")[2] for key in listed}) == SHARDS.history


def small() -> Iterator[tuple[str, Item]]:
    return everything(NOON + HOUR, SMALL, SHARDS)


def test_the_world_has_its_schedules_runs_and_waiting_jobs() -> None:
    items = {(table, item["pk"]["S"], item["sk"]["S"]): item for table, item in small()}
    copied = [item for item in items.values() if re.search(r"demo\.a\d", item["pk"]["S"])]
    states = [item for item in copied if item["pk"]["S"].startswith("SCHEDULE#") and item["sk"]["S"] == "STATE"]
    runs = [item for item in copied if item["sk"]["S"] == "A#001" and "undelivered" not in item["pk"]["S"]]
    jobs = [item for item in copied if "job_id" in item and not item["pk"]["S"].startswith("LIMIT#")]
    waiters = [item for item in copied if item["sk"]["S"].startswith("WAIT#")]

    assert len(states) == SMALL.schedules
    assert len(runs) == SMALL.runs + 1, "and the one that holds the slot of the queue"
    assert len(jobs) == SMALL.waiting
    assert len(waiters) == SMALL.queued
    assert int(items["JobsTable", f"LIMIT#{LIMIT}", "STATE"]["waiters"]["N"]) == SMALL.queued
    assert {item["state"]["S"] for item in runs} == {"SUCCEEDED", "FAILED", "RUNNING"}


def test_the_usual_size_is_that_of_the_question() -> None:
    whole = console.size_of(10_000)
    assert (whole.schedules, whole.runs, whole.waiting) == (10_000, 101_000, 5_000)
    assert console.size_of(1_000).runs < whole.runs / 9


def test_the_seed_is_played_to_the_states_that_are_copied() -> None:
    played = Played(NOON, SMALL, SHARDS)
    states = {kind: [item["state"]["S"] for item in played.rows(table="RunsTable", of=kind)] for kind in ("running",)}
    assert states == {"running": ["RUNNING"]}
    waiting = [item for item in played.rows(table="JobsTable", of="queued") if item["sk"]["S"].startswith("WAIT#")]
    assert len(waiting) == 1


def test_a_view_whose_first_rows_are_late_is_named() -> None:
    slow = {"view": "Home", "first_rows_ms": 1_501, "budget_ms": 1_500.0, "longest_task_ms": 150}
    quick = {"view": "Queue", "first_rows_ms": 1_999, "budget_ms": 2_000.0, "longest_task_ms": 151}
    found = {"console": {"views": [slow, quick]}}
    assert console.over_budget(found) == [
        "Home: expected its first rows within 1,500 ms, got 1,501",
        "Queue: expected no task beyond 150 ms, got 151",
    ]
    assert measurement.over_budget("console", found)


def test_each_view_of_the_console_is_measured_within_its_bound() -> None:
    found = {view.name: view.budget_ms for view in views("demo.a1.x.1.y")}
    assert found["Home"] == 1_500
    assert found["Queue"] == 2_000
    assert set(found.values()) == {1_000, 1_500, 2_000}
    wanted = {"Schedules", "Schedule", "Run", "DAG", "Dataset", "Limits", "Backfills", "Dead letters", "Report"}
    assert wanted | {"Palette", "Timeline, 24 h"} <= found.keys()
    assert [view.words for view in views("r") if view.words] == ["fed-00011"]


def test_figures_of_a_view_add_up_its_requests() -> None:
    class Two:
        def ask(self, method: str, path: str, body: str | None) -> Any:
            from benchmarks.console.metered import Read

            return Read(2, 1.5)

    request = {"method": "GET", "path": "/v1/x", "body": None, "status": 200, "bytes": 1_500}
    opened = [
        {"first": first, "whole": 900, "longest": 50, "requests": [request, request]} for first in (400, 900, 500)
    ]
    found = console.figures(View("Home", "/demo", ".x"), opened, Two())  # type: ignore[arg-type]
    assert list(islice(found.values(), 8)) == ["Home", 500, 900, 50, 2, 4, 3.0, 3.0]

    opened[0]["requests"] = [{**request, "status": 502}]
    with pytest.raises(RuntimeError, match="GET /v1/x: 502"):
        console.figures(View("Home", "/demo", ".x"), opened, Two())  # type: ignore[arg-type]


def test_views_that_show_nothing_at_first_are_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def opened(address: str, views: Any, times: int) -> list[Any]:
        tries.append(times)
        if len(tries) < 3:
            raise RuntimeError("no rows")
        return []

    monkeypatch.setattr(browse, "opened", opened)
    browse.warm_up("http://127.0.0.1:1/", ())
    assert tries == [1, 1, 1]
    with pytest.raises(RuntimeError, match="no rows"):
        tries.clear()
        browse.warm_up("http://127.0.0.1:1/", (), tries=2)


def test_figures_of_frames_beyond_their_budgets_are_named() -> None:
    bounds = {"firstRowsMs": 1_000, "longestTaskMs": 150, "frameP95Ms": 34, "frameGapMs": 250}
    list_ = {"view": "Queue", "firstRowsMs": 900, "longestTaskMs": 151, "frameP95Ms": 17, "frameGapMs": 250}
    still = {"view": "Home", "firstRowsMs": 1_001, "longestTaskMs": 0}
    found = frames.views({"views": [{**list_, "bounds": bounds}, {**still, "bounds": bounds}]})
    assert found[0]["frame_gap_ms"] == 250
    assert "frame_p95_ms" not in found[1]
    assert frames.over_budget({"frames": {"views": found}}) == [
        "Queue: expected longest task ms of at most 150, got 151",
        "Home: expected first rows ms of at most 1,000, got 1,001",
    ]
