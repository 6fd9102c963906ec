"""Two servers of one queue, call by call, with several switches: every waiting job keeps its row in the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import pytest

from chalicelib.core.limits.names import EMR_STARTS
from chalicelib.core.limits.writes import LeaveQueue
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.runs.queued import waiter_of
from chalicelib.core.targets.answers import NotNow
from chalicelib.core.writes import RemoveWaiter
from chalicelib.flow.jobs.actions import withdraw
from chalicelib.flow.jobs.check import check_job
from chalicelib.flow.jobs.queue import serve
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.faults.meetings.side_by_side import play
from tests.support.schedules import at_most, partitions
from tests.support.world import World, day, flights

EMR_QUEUE = EMR_STARTS
WORKFLOW_QUEUE = "workflow:demo.flights.clean"


def orders() -> Iterator[tuple[int, int, int]]:
    """Numbers of calls of the first server, then the second, then the first again. They cover the moment when the first
    has read the queue and the second has recorded its call. For the second, they leave out waits and calls to payloads.
    """
    yield from product((2, 3, 4), (8, 9, 11, 12, 14, 16), (1, 2))


def a_run_and_a_job_that_queue_for_a_start() -> World:
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(by=["day"])}))
    world.targets.emr.answers = [NotNow("throttled")]
    world.upload(day(1))
    world.upload(day(2))
    world.settle()
    assert [row.queued_in for row in (*world.runs("daily"), *world.jobs("daily"))] == [EMR_QUEUE, EMR_QUEUE]
    world.clock.pass_by("10s")
    world.hints.sent = []
    world.targets.emr.answers = [NotNow("throttled")]
    return world


def test_e8_two_servers_of_the_start_queue_lose_no_waiter() -> None:
    """One of them sleeps longer than its lease after its read, and a call is throttled in that time."""
    played = 0
    for turns in orders():
        world = a_run_and_a_job_that_queue_for_a_start()
        first, second, third = turns

        def again(world: World = world) -> None:
            world.clock.pass_by("61s")
            serve(world.ports, EMR_QUEUE)

        segments = [(0, first), (1, second), (0, third), (1, None)]
        play(world, [lambda world=world: serve(world.ports, EMR_QUEUE), again], segments)
        try:
            invariants.check(world)
            for _ in range(3):
                world.pass_by("11m")
            world.finish()
            world.settle()
            invariants.check_rest(world)
        except AssertionError as error:
            raise AssertionError(f"in turns of {turns} calls: {error}") from error
        assert [run.state for run in world.runs("daily")] == ["SUCCEEDED"] * 2
        played += 1
    assert played == 36


# -- a row that is missing in its queue ------------------------------------------------------------------------------


def lose_row(world: World, row: Job | Run) -> None:
    """Delete the row in the queue, as a restore of the tables from backups of different instants would."""
    waiter = waiter_of(row)
    assert waiter is not None
    assert world.ports.ledger.commit([RemoveWaiter(waiter), LeaveQueue(waiter.limit_name)]) is None


def a_run_without_its_row() -> World:
    world = a_run_and_a_job_that_queue_for_a_start()
    world.targets.emr.answers = []
    lose_row(world, world.runs("daily")[0])
    return world


def a_job_without_its_row() -> World:
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(by=["day"], **at_most(1))}))
    world.upload(day(1))
    world.upload(day(2))
    world.settle()
    lose_row(world, world.jobs("daily")[0])
    return world


def test_e8_a_run_that_lost_its_waiter_queues_again_and_starts() -> None:
    world = a_run_without_its_row()

    world.pass_by("12m")

    assert [run.queued_in for run in world.runs("daily")] == [None, None]
    assert len(world.targets.emr.runs) == 2
    world.finish()
    world.settle()
    invariants.check_rest(world)


def test_c9_a_job_that_lost_its_waiter_queues_again_at_its_check() -> None:
    world = a_job_without_its_row()
    [job] = world.jobs("daily")

    check_job(world.ports, (job.schedule, job.generation, job.sort_key))

    invariants.check(world)
    assert world.limit_state(WORKFLOW_QUEUE).waiters == 1
    world.finish()
    world.settle()
    assert len(world.runs("daily")) == 2


@pytest.mark.parametrize("make", [a_run_without_its_row, a_job_without_its_row])
def test_c13_a_job_that_lost_its_waiter_is_dropped_by_a_disable(make: Callable[[], World]) -> None:
    world = make()

    world.disable("daily")
    world.pass_by("12m")
    world.finish()
    world.settle()

    assert world.jobs("daily") == []
    invariants.check_rest(world)


def test_w8_a_job_that_lost_its_waiter_can_be_withdrawn() -> None:
    world = a_job_without_its_row()
    [job] = world.jobs("daily")

    withdraw(world.ports, job.job_id, "tester")

    assert world.jobs("daily") == []
    invariants.check(world)


def test_l4_a_drain_detaches_a_job_that_lost_its_waiter() -> None:
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(**at_most(1))}))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()
    lose_row(world, world.jobs("daily")[0])

    world.pause("daily", "drain")
    invariants.check(world)
    world.settle()
    world.finish()
    world.pass_by("2m")
    world.finish()
    world.settle()

    assert len(world.runs("daily")) == 2
    invariants.check_rest(world)
