"""Schedules with a job for each period, whose tables are restored and repaired (O4, T25, T26)."""

from __future__ import annotations

from typing import Any

from chalicelib.core.instants import MINUTE
from tests.acceptance.words import on
from tests.faults import dying
from tests.support.repairs import mended
from tests.support.world import World, flights


def world_of(of: Any, each: str, form: str, **fields: Any) -> World:
    made = World(**dying.SMALL)
    period = {"each": each, "format": form}
    keys = [folder.partition("=")[0] for folder in form.split("/")]
    app = flights({"s": on({"type": "partition", "dataset": "parts", "of": of}, "clean", per="day", **fields)})
    made.deploy({**app, "datasets": {"parts": {"bucket": "lake", "prefix": "raw/", "keys": keys, "period": period}}})
    return made


def upload(world: World, *folders: str) -> None:
    for folder in folders:
        world.upload(f"raw/{folder}/a.parquet", size=5)
    world.settle()


def test_t25_an_adopted_run_of_a_day_has_its_parts() -> None:
    """Otherwise its last partition, which the repair registers again, would run the day again."""
    world = world_of("period", "12h", "dt=%Y-%m-%d/hour=%H", late="again")
    upload(world, "dt=2026-03-01/hour=00")
    saved, since = world.tables.saved(), world.clock.now() - MINUTE
    world.clock.pass_by("1m")
    upload(world, "dt=2026-03-01/hour=12")
    [run] = world.runs("s")
    world.tables.restore(saved)
    world.hints.sent = []
    mended(world, since)
    world.pass_by("5m")
    [adopted] = world.runs("s")
    assert (adopted.run_id, len(world.targets.emr.runs)) == (run.run_id, 1)
    counts = [parts.count for parts in (adopted.period_parts or {}).values()]
    assert counts == [2]


def test_t26_a_repair_leaves_the_events_of_windows_alone() -> None:
    """A partition belongs to the jobs of two days, each of which has a mark of its own."""
    world = world_of({"periods": 2, "ending": "period"}, "day", "day=%Y-%m-%d")
    since = world.clock.now() - MINUTE
    upload(world, "day=2026-03-01", "day=2026-03-02")
    assert (len(world.runs("s")), len(world.jobs("s"))) == (1, 2)
    assert [found for found in mended(world, since) if found.kind == "event"] == []
    upload(world, "day=2026-02-28", "day=2026-03-03")
    world.pass_by("2m")
    assert sorted((run.correlation or {})["day"] for run in world.runs("s")) == [f"2026-03-0{day}" for day in (1, 2, 3)]
