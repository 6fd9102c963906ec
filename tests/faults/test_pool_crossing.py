"""Jobs of two workflows meet at the last slot of their pool, in the orders of their calls (C9, W3)."""

from __future__ import annotations

from chalicelib.flow.check import check_job
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.faults.memory_tables import QuickWorld
from tests.faults.turns import every_order, side_by_side
from tests.support.schedules import partitions
from tests.support.world import EMR, day, flights, full

LINE = "pool:demo.p"


def test_c9_two_workflows_that_meet_at_the_last_slot_of_a_pool_never_exceed_it() -> None:
    orders = [
        order
        for swapped in (False, True)
        for order in every_order(lambda calls, swapped=swapped: _play(calls, swapped), stride=3)
    ]
    assert len(orders) > 10


def _play(calls: tuple[int, int], swapped: bool) -> tuple[bool, bool]:
    world = QuickWorld(**SMALL)
    pooled = {"target": EMR, "pool": "p"}
    both = {name: partitions(1, name, by=["day"]) for name in ("one", "two")}
    world.deploy({**flights(both, one=pooled, two=pooled), "pools": {"p": {"size": 1}}})
    world.upload(day(1))
    first, second = ("two", "one") if swapped else ("one", "two")
    hints, world.hints.sent = world.hints.sent, []
    left = side_by_side(world, lambda: _check(world, first), lambda: _check(world, second), calls)
    assert (_live(world), world.line(LINE).active, world.line(LINE).waiters) == (1, 1, 1)

    world.hints.sent += hints
    world.settle()
    assert _live(world) == 1
    world.finish()
    world.settle()
    assert (_live(world), world.line(LINE).waiters) == (1, 0)
    world.finish()
    invariants.check_rest(world)
    assert [len(world.runs(name)) for name in both] == [1, 1]
    return left


def _check(world: QuickWorld, name: str) -> None:
    [job] = world.jobs(name)
    assert job.schedule == full(name)
    check_job(world.ports, (job.schedule, job.generation, job.place))


def _live(world: QuickWorld) -> int:
    return sum(run.state in ("STARTING", "RUNNING") for name in ("one", "two") for run in world.runs(name))
