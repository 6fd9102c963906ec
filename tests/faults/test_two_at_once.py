"""Two Lambdas that meet, in the orders of their calls with three switches at most (C9, C13, T16, W10).

Whatever the order: the tables agree with themselves, nothing sleeps that could go on, and in the end all has run that
should, once. `crossings*.py` say who meets.
"""

from __future__ import annotations

import pytest

from tests.faults import invariants
from tests.faults.crossings import PEOPLE_CROSS, Crossing
from tests.faults.crossings_lifecycle import LIFECYCLE_CROSS
from tests.faults.crossings_rules import RULES_CROSS
from tests.faults.memory_tables import QuickWorld
from tests.faults.turns import every_order, side_by_side
from tests.support.world import flights

CROSSINGS = {**PEOPLE_CROSS, **RULES_CROSS, **LIFECYCLE_CROSS}


@pytest.mark.parametrize("name", CROSSINGS)
def test_whatever_the_order_of_two_it_comes_out_right(name: str) -> None:
    """Each ninth order, spread evenly: enough for most of what the long test finds."""
    assert _orders(name, stride=3) > 4


@pytest.mark.long
@pytest.mark.parametrize("name", CROSSINGS)
def test_whatever_the_order_of_two_it_comes_out_right_in_every_order(name: str) -> None:
    assert _orders(name, stride=1) > 20


def _orders(name: str, stride: int) -> int:
    crossing = CROSSINGS[name]
    first = every_order(lambda calls: _play(crossing, calls, swapped=False), stride)
    second = every_order(lambda calls: _play(crossing, calls, swapped=True), stride)
    orders = len([*first, *second])
    print(f"{name}: {orders} orders")
    return orders


def _play(crossing: Crossing, calls: tuple[int, int], swapped: bool) -> tuple[bool, bool]:
    """One order: the first of both begins, or (``swapped``) the second. Returns who had calls left at the switches."""
    world = QuickWorld(**crossing.tuned)
    world.deploy(flights(crossing.schedules))
    crossing.before(world)
    acts = (crossing.second, crossing.first) if swapped else (crossing.first, crossing.second)
    try:
        left = side_by_side(world, lambda: acts[0](world), lambda: acts[1](world), calls)
        invariants.check_awake(world)
        world.settle()
        crossing.after(world)
        world.settle()
        _come_to_rest(world)
        ends = {name: [run.state for run in world.runs(name)] for name in crossing.schedules}
        assert crossing.expect(ends), f"{ends} is not right"
    except Exception as error:
        who = "the second first, " if swapped else ""
        raise AssertionError(f"{who}switched after {calls} calls: {type(error).__name__} {error}") from error
    return left


def _come_to_rest(world: QuickWorld) -> None:
    """Time passes, ticks come, runs succeed."""
    for span in ("1m", "1m", "11m", "11m", "11m", "11m", "11m", "11m"):
        world.clock.pass_by(span)
        world.tick()
        world.finish()
        world.settle()
    invariants.check_rest(world)
    invariants.check_awake(world)
