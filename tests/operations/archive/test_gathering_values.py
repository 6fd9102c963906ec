"""An export in the middle of a fan out, and of a day whose values come and go (L14, T25, T27)."""

from __future__ import annotations

from tests.faults.scenarios_gathered import PLANS
from tests.operations.archive.test_export import SMALL, elsewhere
from tests.support.archives import exported
from tests.support.world import World, flights


def upload(world: World, *folders: str) -> None:
    for folder in folders:
        world.upload(f"raw/{folder}/part-0.parquet", size=5)
    world.settle()


def test_l14_jobs_of_listed_values_go_on_elsewhere() -> None:
    trigger = {"type": "all", "triggers": [{"type": "partition", "dataset": name} for name in PLANS]}
    schedule = {"workflow": "clean", "enabled": True, "trigger": trigger, "by": ["region"]}
    world = World(**SMALL)
    world.deploy(flights({"s": schedule | {"values": {"region": ["us", "eu"]}}}) | {"datasets": PLANS})
    upload(world, "plans/version=1", "areas/region=us/day=2026-03-02")
    new = elsewhere(exported(world, "demo"), world)
    upload(new, "plans/version=1", "areas/region=us/day=2026-03-02", "areas/region=eu/day=2026-03-02")
    found = [(run.correlation or {})["region"] for run in new.runs("s")]
    assert (sorted(found), new.jobs("s")) == (["eu", "us"], [])


def test_l14_a_job_keeps_the_values_that_it_has_seen() -> None:
    schedule = {"workflow": "clean", "enabled": True, "per": "day", "incomplete": {"after": "6h"}}
    trigger = {"type": "partition", "dataset": "areas", "of": "period"}
    areas = {"areas": PLANS["areas"] | {"values": {"region": "seen_last"}}}
    world = World(**SMALL)
    world.deploy(flights({"s": schedule | {"trigger": trigger}}) | {"datasets": areas})
    upload(world, *(f"areas/region={region}/day=2026-03-01" for region in ("us", "eu")))
    upload(world, *(f"areas/region={region}/day=2026-03-02" for region in ("mars", "us")))
    new = elsewhere(exported(world, "demo"), world)
    upload(new, "areas/region=apac/day=2026-03-01")
    assert new.runs("s") == []
    upload(new, "areas/region=eu/day=2026-03-02")
    [run] = new.runs("s")
    assert len(new.context(run)["events"]) == 3
