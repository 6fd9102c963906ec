"""A start call is answered after its lease has ended, when its run already queues for the next call (W7, W10)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from chalicelib.core.runs import launch as launch_rules
from chalicelib.flow.runs import launch
from tests.faults import invariants
from tests.support import batch_jobs
from tests.support.schedules import partitions
from tests.support.state_machines import refused
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


def test_a_late_refusal_leaves_the_lease_of_the_next_call() -> None:
    """The first call outlives its lease. The invocation that makes the second one dies, so that one may have started a
    job, and the third call must wait."""
    world = World()
    world.deploy(flights({"daily": partitions(by=["day"])}, clean={"target": batch_jobs.TARGET}))
    client, plain = world.targets.batch_jobs, world.targets.batch_jobs.submit_job

    def dies(**asked: Any) -> Any:
        client.submit_job = plain  # type: ignore[method-assign]
        raise SystemError("the invocation ends")

    def slow(**asked: Any) -> Any:
        client.submit_job = dies  # type: ignore[method-assign]
        world.clock.pass_by("51s")
        [run] = world.runs("daily")
        with suppress(SystemError):
            launch.start(world.ports, run.run_id, 1)
        raise refused("ThrottlingException")

    client.submit_job = slow  # type: ignore[method-assign]
    world.upload(day(1))
    world.settle()

    [run] = world.runs("daily")
    assert (run.calls, run.unknown_answer, run.lease_until) == (2, True, world.clock.now() + launch_rules.CALL_LEASE)
    world.pass_by("2m")
    assert [each.target_id for each in world.runs("daily")] == list(client.jobs)
