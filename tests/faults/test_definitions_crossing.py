"""A definition is replaced while a job is checked. All starts after the answer obey the new definition (W3, C9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.flow.definitions import store
from chalicelib.flow.jobs.check import check_job
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.faults.meetings.scheduler import ENDLESS
from tests.faults.meetings.side_by_side import side_by_side
from tests.support.schedules import partitions
from tests.support.snapshot import Start
from tests.support.world import EMR, World, day, flights

POOL = "pool:demo.p"
OWN = "workflow:demo.flights.one"


def pooled(size: int, shares: dict[str, int] | None = None) -> dict[str, Any]:
    return {"size": size, "shares": {name: {"reserved": units} for name, units in (shares or {}).items()}}


def put_pool(world: World, pool: dict[str, Any]) -> None:
    store.put(world.ports, "pool", "demo.p", pool, "tester")


def put_workflow(world: World, **fields: Any) -> None:
    store.put(world.ports, "workflow", "demo.flights.one", {"target": EMR, **fields}, "tester")


def a_pool(pool: dict[str, Any], *living: str) -> World:
    """Runs of these workflows are active; a job of each waits to be checked."""
    world = World(**SMALL)
    both = {name: partitions(1, name, by=["day"]) for name in ("one", "two")}
    in_pool = {"target": EMR, "pool": "p"}
    world.deploy({**flights({}, one=in_pool, two=in_pool), "pools": {"p": pool}})
    for number, name in enumerate(living):
        world.put(name, both[name])
        world.upload(day(number + 1))
        world.settle()
        world.disable(name)
    for name in both:
        world.put(name, both[name])
    world.upload(day(20))
    world.hints.sent = []
    return world


def check(world: World, name: str) -> None:
    for job in world.jobs(name):
        check_job(world.ports, (job.schedule, job.generation, job.sort_key))


def living(world: World) -> int:
    return sum(run.state in ("STARTING", "RUNNING") for name in ("one", "two") for run in world.runs(name))


def meets(make: Callable[[], World], change: Callable[[World], None], *others: str) -> list[int]:
    """The numbers of active runs once the change is answered, the check has ended, and the ``others`` are checked.

    The change is made before each call of the check, the last time after all of them. Only plays in which it came
    before the start count.
    """
    found: list[int] = []
    start, calls, left = Start(make), 0, True
    while left:
        world = start.again()
        before, answered = living(world), -1

        def changing(world: World = world) -> None:
            nonlocal answered
            change(world)
            answered = living(world)

        left, _ = side_by_side(world, lambda world=world: check(world, "one"), changing, (calls, ENDLESS))
        for name in others:
            check(world, name)
        invariants.check(world)
        if answered == before:
            found.append(living(world))
        calls += 1
    assert len(found) > 5
    return found


def test_w3_a_reduced_pool_starts_nothing_beyond_its_new_size() -> None:
    lives = meets(lambda: a_pool(pooled(2), "two"), lambda world: put_pool(world, pooled(1)))
    assert set(lives) == {1}


def test_w3_a_redivided_pool_never_runs_more_than_its_size() -> None:
    """Three of the four units are in use. One is reserved for the other workflow, whose job comes right after."""
    lives = meets(
        lambda: a_pool(pooled(4), "two", "two", "two"),
        lambda world: put_pool(world, pooled(4, {"flights.two": 1})),
        "two",
    )
    assert set(lives) == {4}


@pytest.mark.parametrize("slots", [2, 3])
def test_w3_a_workflow_with_more_pool_units_starts_with_them(slots: int) -> None:
    """A start after the answer takes the workflow's new number of units: here more than are free."""
    lives = meets(lambda: a_pool(pooled(2), "two"), lambda world: put_workflow(world, pool="p", slots=slots))
    assert set(lives) == {1}


def a_run_outside() -> World:
    """A run of the workflow is active, in no group and no pool. A job of its schedule waits to be checked."""
    world = World(**SMALL)
    world.deploy({**flights({"one": partitions(1, "one", by=["day"])}, one={"target": EMR}), "pools": {"p": pooled(1)}})
    world.upload(day(1))
    world.settle()
    world.upload(day(20))
    world.hints.sent = []
    return world


GROUPED = partitions(1, "one", by=["day"], constraints=[{"type": "concurrency", "group": "g", "max": 1}])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda world: put_workflow(world, pool="p"), id="the workflow names a pool"),
        pytest.param(
            lambda world: world.put("one", {**GROUPED, "on_update": "carry"}), id="the schedule names a group"
        ),
        pytest.param(
            lambda world: world.put("one", partitions(1, "one", by=["day"], pool="p", on_update="carry")),
            id="the schedule names a pool",
        ),
    ],
)
def test_c9_a_limit_added_during_a_check_counts_active_runs(
    change: Callable[[World], None],
) -> None:
    assert set(meets(a_run_outside, change)) == {1}
