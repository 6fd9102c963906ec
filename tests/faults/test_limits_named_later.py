"""A group or a pool is named while runs are active (C9, W3): they count there, and no more start than it allows."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.flow.definitions import store
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights

GROUP = "group:demo.heavy"
POOL = "pool:demo.p"


def in_group(name: str = "heavy", most: int = 1) -> dict[str, Any]:
    return {"constraints": [{"type": "concurrency", "group": name, "max": most, "on_unmet": "wait"}]}


def running(count: int, **fields: Any) -> World:
    """A world with this many active runs of a schedule, and another workflow in no group and no pool."""
    world = World(**SMALL)
    app = flights({"daily": partitions(by=["day"], **fields)}, one={"target": EMR}, two={"target": EMR})
    world.deploy({**app, "pools": {"p": {"size": 1}, "q": {"size": 1}}})
    for number in range(count):
        world.upload(day(number + 1))
    world.settle()
    assert len(going(world)) == count
    return world


def going(world: World, *names: str) -> list[str]:
    runs = [run for name in names or ("daily",) for run in world.runs(name)]
    return [run.run_id for run in runs if run.state in ("STARTING", "RUNNING")]


def put_workflow(world: World, **fields: Any) -> None:
    store.put(world.ports, "workflow", "demo.flights.clean", {"target": EMR, **fields}, "tester")


def come_and_go(world: World, *names: str) -> None:
    """Runs end one by one. After each end others may start, never more than one at a time in all."""
    while left := going(world, *names):
        invariants.check(world)
        name = next(run.name for run in world.targets.emr.runs.values() if run.name.rpartition("-")[0] == left[0])
        [emr_run] = [run for run in world.targets.emr.runs.values() if run.name == name]
        world.emr_says(emr_run.id, "SUCCESS")
        world.settle()
        assert len(going(world, *names)) <= max(1, len(left) - 1)


@pytest.mark.parametrize("how", ["replaced", "carried"])
def test_interleaving_27_a_group_of_one_is_named_with_three_runs(how: str) -> None:
    world = running(3)
    carry = {"on_update": "carry" if how == "carried" else "drop"}

    world.put("daily", partitions(by=["day"], **in_group(), **carry))
    assert world.limit_state(GROUP).active == 3
    world.upload(day(10))
    world.settle()

    assert len(going(world)) == 3, "no fourth starts"
    come_and_go(world)
    assert len(world.runs("daily")) == 4
    invariants.check_rest(world)


def test_c9_a_schedule_moving_to_another_group_takes_its_runs() -> None:
    world = running(1, **in_group("light"))
    world.put("other", partitions(by=["day"], workflow="join", **in_group()))

    world.put("daily", partitions(by=["day"], **in_group()))
    world.upload(day(10))
    world.settle()

    assert len(going(world, "daily", "other")) == 1
    assert world.limit_state("group:demo.light").active == 1, "its run counts in both as long as it goes"
    come_and_go(world, "daily", "other")
    invariants.check_rest(world)


def test_c9_runs_of_other_schedules_are_not_in_the_group() -> None:
    world = running(2)
    world.put("grouped", partitions(by=["day"], **in_group()))

    world.upload(day(10))
    world.settle()

    assert (len(going(world)), len(going(world, "grouped"))) == (3, 1)
    invariants.check(world)


def test_c9_a_group_named_again_counts_runs_started_meanwhile() -> None:
    world = running(1, **in_group())
    world.put("daily", partitions(by=["day"]))
    world.upload(day(10))
    world.settle()
    assert len(going(world)) == 2

    world.put("daily", partitions(by=["day"], **in_group()))

    assert world.limit_state(GROUP).active == 2
    world.upload(day(11))
    world.settle()
    assert len(going(world)) == 2
    come_and_go(world)
    invariants.check_rest(world)


def test_c9_a_recreated_schedule_brings_its_runs_into_its_group() -> None:
    world = running(2)
    world.delete("daily")

    world.put("daily", partitions(by=["day"], **in_group()))
    world.upload(day(10))
    world.settle()

    assert len(going(world)) == 2
    come_and_go(world)
    invariants.check_rest(world)


def test_w3_a_pool_named_by_a_schedule_counts_its_active_runs() -> None:
    world = running(3)
    world.put("other", partitions(by=["day"], workflow="join", pool="p"))

    world.put("daily", partitions(by=["day"], pool="p"))
    assert world.limit_state(POOL).active == 3
    world.upload(day(10))
    world.settle()

    assert len(going(world, "daily", "other")) == 3
    come_and_go(world, "daily", "other")
    invariants.check_rest(world)


def test_w3_a_pool_named_by_a_workflow_counts_its_active_runs() -> None:
    world = running(3)

    put_workflow(world, pool="p")
    assert world.limit_state(POOL).active == 3
    world.upload(day(10))
    world.settle()

    assert len(going(world)) == 3
    come_and_go(world)
    invariants.check_rest(world)


def test_w3_a_workflow_moved_between_pools_counts_in_both() -> None:
    world = World(**SMALL)
    app = flights({"daily": partitions(by=["day"])}, clean={"target": EMR, "pool": "p"})
    world.deploy({**app, "pools": {"p": {"size": 2}, "q": {"size": 1}}})
    world.upload(day(1))
    world.upload(day(2))
    world.settle()

    put_workflow(world, pool="q")
    assert (world.limit_state(POOL).active, world.limit_state("pool:demo.q").active) == (2, 2)
    world.upload(day(10))
    world.settle()

    assert len(going(world)) == 2
    come_and_go(world)
    invariants.check_rest(world)


def test_w3_a_new_pool_share_takes_what_fits_and_withholds_rest() -> None:
    """Four units, two of them reserved for the workflow whose three runs are active. One unit is left, for any
    workflow.
    """
    world = running(3)
    store.put(world.ports, "pool", "demo.p", {"size": 4, "shares": {"flights.clean": {"reserved": 2}}}, "tester")
    world.put("other", partitions(by=["day"], workflow="join", pool="p"))

    world.put("daily", partitions(by=["day"], pool="p"))
    assert (world.limit_state(f"{POOL}:demo.flights.clean").active, world.limit_state(POOL).active) == (2, 1)
    world.upload(day(10))
    world.upload(day(11))
    world.settle()

    assert len(going(world, "daily", "other")) == 4
    invariants.check(world)
