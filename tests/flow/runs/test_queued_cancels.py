"""A run that queues for its next start call and is cancelled leaves its queue at once (W7, C13)."""

from __future__ import annotations

from chalicelib.flow.runs import actions
from tests.faults import invariants
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights

POLICY = "policy:demo.calm"


def unanswered_and_queued() -> World:
    """One start a minute: the first call of a run got no answer, and the next waits for its permit."""
    world = World()
    world.targets.emr.lose_answers = 1
    app = flights({"daily": partitions(by=["day"], policy="calm")}, clean={"target": EMR})
    world.deploy({**app, "policies": {"calm": {"max_events": 1, "interval": "1m"}}})
    world.upload(day(1))
    world.settle()
    for _ in range(60):
        world.pass_by("1s")
        [run] = world.runs("daily")
        if run.queued_in == POLICY:
            assert run.unknown_answer and run.lease_until is not None and run.lease_until > world.clock.now()
            return world
    raise AssertionError(f"expected a run that queues at {POLICY}, got {run}")


def test_a_cancelled_run_with_unanswered_call_leaves_its_queue() -> None:
    world = unanswered_and_queued()
    [run] = world.runs("daily")

    actions.cancel(world.ports, run.run_id, "tester")
    world.pass_by("5s")

    [left] = world.runs("daily")
    assert (left.queued_in, left.rank, world.limit_state(POLICY).waiters) == (None, None, 0)
    assert left.wake_at == run.lease_until, "an unanswered call may still arrive until then"

    world.pass_by("2m")
    [ended] = world.runs("daily")
    assert ended.state == "CANCELLED"
    assert [made.state for made in world.targets.emr.runs.values()] == ["CANCELLED"], "the lost call had started it"
    invariants.check_rest(world)


def test_waiters_behind_a_cancelled_run_go_on() -> None:
    world = unanswered_and_queued()
    [run] = world.runs("daily")
    world.upload(day(2))
    world.settle()

    actions.cancel(world.ports, run.run_id, "tester")
    world.pass_by("3m")

    assert [each.state for each in world.runs("daily")] == ["CANCELLED", "STARTING"]
    assert (world.limit_state(POLICY).waiters, world.jobs("daily")) == (0, [])
