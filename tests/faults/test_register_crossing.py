"""A run ends and registers its partition while something else happens, in each order of calls (L22).

The partition counts once, by the workflow as it was at the claim, and for a schedule that was enabled in time.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chalicelib.core.rows.event import Partition
from chalicelib.flow.definitions import workflows
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.faults.scenarios_produced import CHAIN, REGISTERS
from tests.support.crossings import at_each_call, cross
from tests.support.snapshot import Start
from tests.support.world import EMR, World, day, flights, full

ACTS: dict[str, Callable[[World], object]] = {
    "the workflow registers nothing any more": lambda world: workflows.put(
        world.ports, full("clean"), {"target": EMR}, "tester"
    ),
    "an object of the partition arrives": lambda world: world.upload(day(1, "weather", "part-0.csv")),
    "EMR repeats the end": lambda world: world.emr_says("jr00001", "SUCCESS"),
    "the sweep runs": lambda world: world.tick(),
}


def _begun() -> World:
    world = World(**SMALL)
    world.deploy(flights(CHAIN, **REGISTERS))
    world.upload(day(1))
    world.settle()
    return world


@pytest.mark.parametrize("act", ACTS)
def test_l22_the_end_of_a_run_and_another_act_cross(act: str) -> None:
    start = Start(_begun)
    at_each_call(lambda before: _cross(start, before, ACTS[act]), least=4)


def _cross(start: Start, before: int | None, act: Callable[[World], object]) -> int:
    world = start.again()
    calls = cross(world, before, lambda: act(world), lambda: world.emr_says("jr00001", "SUCCESS"))
    world.settle()
    for _ in range(3):
        world.clock.pass_by("11m")
        world.tick()
        world.finish()
    invariants.check_rest(world)
    row = world.ports.rows.get(Partition, "demo.weather", ("2013", "1", "1"))
    assert row is not None
    assert row.wake_at is None
    assert {name: [run.state for run in world.runs(name)] for name in CHAIN} == {
        "clean": ["SUCCEEDED"],
        "join": ["SUCCEEDED"],
    }
    return calls
