"""A limit on the runs of an EMR application: more jobs wait in Sluice, by priority, and `why` names the application
(W2, W3).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.words import day
from tests.faults import invariants
from tests.support.answers import explain
from tests.support.schedules import partitions
from tests.support.world import EMR, World, flights

OWN, OTHER = "00app", "00other"
LIMITS = {"emr_application_ids": (OTHER,), "emr_run_limits": ((OWN, 2), (OTHER, 1)), "start_burst": 1_000}


def limited(schedules: dict[str, Any], policies: dict[str, Any] | None = None, **workflows: Any) -> World:
    """An installation whose own EMR application may have two runs at a time, and another application one."""
    world = World(**LIMITS)
    elsewhere = {"target": {**EMR, "application_id": OTHER}}
    world.deploy({**flights(schedules, elsewhere=elsewhere, **workflows), "policies": policies or {}})
    return world


def each(workflow: str = "clean", dataset: str = "flights", **fields: Any) -> dict[str, Any]:
    """One job for each day of a dataset."""
    return partitions(1, workflow, dataset, by=["day"], **fields)


def come(world: World, *days: int, dataset: str = "flights") -> None:
    for number in days:
        world.upload(day(number, dataset, "_SUCCESS" if dataset == "flights" else "x.csv"))
    world.settle()


def end_first(world: World, state: str = "SUCCESS") -> None:
    """The oldest active EMR run ends."""
    oldest = next(run.id for run in world.targets.emr.runs.values() if run.state in ("SUBMITTED", "RUNNING"))
    world.emr_says(oldest, "RUNNING")
    world.emr_says(oldest, state)
    world.settle()


def finish_all(world: World) -> None:
    while world.finish():
        world.settle()
    world.pass_by("2m")
    invariants.check_rest(world)


def states(world: World, name: str) -> list[str]:
    return [run.state for run in world.runs(name)]


def test_w3_a_third_run_waits_for_its_application_as_why_shows() -> None:
    world = limited({"a": each()})
    come(world, 1, 2, 3)
    assert len(world.targets.emr.runs) == 2
    [waiting] = world.jobs("a")
    why = f"waits for a slot of EMR application {OWN}: 2 of 2 in use"
    assert (waiting.queued_in, waiting.reason.text) == (f"application:{OWN}", why)
    assert explain.why_job(world.ports, waiting)["why"].startswith(why)
    finish_all(world)


@pytest.mark.parametrize("end", ["SUCCESS", "FAILED", "CANCELLED"])
def test_w3_the_end_of_a_run_starts_the_next_one(end: str) -> None:
    world = limited({"a": each()})
    come(world, 1, 2, 3, 4)
    end_first(world, end)
    assert len(world.targets.emr.runs) == 3
    assert (world.limit_state(f"application:{OWN}").active, len(world.jobs("a"))) == (2, 1)
    finish_all(world)
    assert world.limit_state(f"application:{OWN}").active == 0


def test_w2_an_application_queue_is_served_by_priority() -> None:
    world = limited({"low": each(priority=2), "high": each("join", "weather", priority=8)})
    come(world, 1, 2, 3, 4)
    come(world, 1, 2, dataset="weather")
    assert (len(world.runs("low")), len(world.runs("high"))) == (2, 0)
    end_first(world)
    end_first(world)
    assert (len(world.runs("low")), len(world.runs("high"))) == (2, 2), "both urgent ones before the older ones"
    finish_all(world)


def test_w3_each_application_has_its_own_limit() -> None:
    world = limited({"here": each(), "there": each("elsewhere", "weather")})
    come(world, 1, 2)
    come(world, 1, 2, dataset="weather")
    assert (len(world.runs("here")), len(world.runs("there"))) == (2, 1)
    assert world.jobs("there")[0].reason.text == f"waits for a slot of EMR application {OTHER}: 1 of 1 in use"
    finish_all(world)


def test_w13_a_run_counts_at_the_application_its_resources_name() -> None:
    world = limited({"a": each(resources={"application": OTHER})})
    come(world, 1, 2)
    assert (world.limit_state(f"application:{OTHER}").active, world.limit_state(f"application:{OWN}").active) == (1, 0)
    finish_all(world)


def test_w3_an_application_without_a_limit_starts_every_run() -> None:
    world = World(start_burst=1_000)
    world.deploy(flights({"a": each()}))
    come(world, *range(1, 21))
    assert len(world.targets.emr.runs) == 20
    assert not [item for _, item in world.tables.rows() if "application:" in item["pk"]["S"]]
    finish_all(world)


def test_w3_the_limit_row_of_application_does_not_grow_with_runs() -> None:
    world = limited({"a": each()})
    come(world, 1, 2)
    limit = world.limit_state(f"application:{OWN}")
    assert (limit.active, limit.starts) == (2, {})
    finish_all(world)


def test_w3_a_policy_queue_holds_few_slots_of_an_application() -> None:
    slow = {"calm": {"max_events": 1, "interval": "10m"}}
    world = limited({"a": each(policy="calm"), "b": each("join", "weather")}, slow)
    come(world, 1, 2, 3, 4)
    come(world, 1, dataset="weather")
    assert (len(world.runs("a")), len(world.jobs("a"))) == (1, 3)
    end_first(world)
    assert states(world, "b") == ["STARTING"]
    for _ in range(5):
        world.pass_by("10m")
        world.finish()
    world.settle()
    finish_all(world)


def test_w7_a_slot_is_released_soon_after_an_unreported_end() -> None:
    world = limited({"a": each()})
    come(world, 1, 2)
    for run in list(world.targets.emr.runs.values()):
        world.emr_says(run.id, "RUNNING")
        run.state = "SUCCESS"
    world.pass_by("2m")
    come(world, 3)
    world.pass_by("2m")
    assert len(world.targets.emr.runs) == 3
    finish_all(world)
