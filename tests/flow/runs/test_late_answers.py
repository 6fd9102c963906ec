"""A start call is answered after its lease has ended, when its run already queues for the next call (W7, W10)."""

from __future__ import annotations

from typing import Any

from tests.faults import invariants
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights

POLICY = "policy:demo.calm"


def with_a_slow_first_call() -> World:
    """One start in two minutes. The first call takes as long, and its run queues when the answer comes."""
    world = World()
    app = flights({"daily": partitions(by=["day"], policy="calm")}, clean={"target": EMR})
    world.deploy({**app, "policies": {"calm": {"max_events": 1, "interval": "2m"}}})
    start = world.targets.emr.start

    def slow(run: Any, context: Any) -> Any:
        world.targets.emr.start = start
        answer = start(run, context)
        for _ in range(110):
            world.pass_by("1s")
            [now] = world.runs("daily")
            if now.queued_in == POLICY:
                return answer
        raise AssertionError(f"expected a run that queues at {POLICY}, got {now}")

    world.targets.emr.start = slow
    world.upload(day(1))
    world.settle()
    return world


def test_a_run_whose_call_is_answered_late_leaves_its_queue() -> None:
    world = with_a_slow_first_call()
    [run] = world.runs("daily")
    assert run.target_id is not None
    assert (run.queued_in, run.rank, world.limit_state(POLICY).waiters) == (None, None, 0)
    world.finish()
    world.pass_by("1m")
    assert [each.state for each in world.runs("daily")] == ["SUCCEEDED"]
    invariants.check_rest(world)


def test_waiters_behind_a_late_answer_are_served() -> None:
    world = with_a_slow_first_call()
    world.upload(day(2))
    world.settle()
    world.pass_by("5m")
    assert [run.target_id is not None for run in world.runs("daily")] == [True, True]
    assert (world.limit_state(POLICY).waiters, len(world.targets.emr.runs)) == (0, 2)
