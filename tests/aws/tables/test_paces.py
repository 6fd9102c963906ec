"""The rows of a pace: permits acquired without queueing, queues behind another pace, a delayed pace."""

from __future__ import annotations

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.core.limits.permits import Pace
from chalicelib.core.limits.writes import AcquireBlock, AcquirePermit, AdvancePace, DelayPace, JoinQueue, LeaveQueue
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.writes import Write
from tests.support.clock import NOON

LIMIT = "policy:demo.calm"
PACE = Pace(LIMIT, 1_000, 3)


def ok(dynamo: Dynamo, *writes: Write) -> bool:
    return dynamo.commit(writes) is None


def test_a_passing_permit_is_taken_if_free_and_waiters_stay(dynamo: Dynamo) -> None:
    passing = AcquirePermit(PACE, NOON, LimitState(LIMIT), from_queue=False, passing=True)
    assert ok(dynamo, JoinQueue(PACE, NOON, NOON, behind=True))
    assert not ok(dynamo, AcquirePermit(PACE, NOON, LimitState(LIMIT), from_queue=False)), "a job waits"
    assert ok(dynamo, passing)
    assert not ok(dynamo, passing), "read before the permit was taken"
    limit = DynamoJobs(dynamo).limit_state(LIMIT)
    assert (limit.head, limit.waiters) == (NOON + 1_000, 1)


def test_a_job_blocked_by_another_pace_joins_despite_a_permit(dynamo: Dynamo) -> None:
    assert not ok(dynamo, JoinQueue(PACE, NOON, NOON + 7))
    assert ok(dynamo, JoinQueue(PACE, NOON, NOON + 7, behind=True))
    limit = DynamoJobs(dynamo).limit_state(LIMIT)
    assert (limit.waiters, limit.wake_at) == (1, NOON + 7)
    assert ok(dynamo, LeaveQueue(LIMIT))


def test_e8_a_delayed_pace_gives_no_permit_before_and_only_grows(dynamo: Dynamo) -> None:
    jobs = DynamoJobs(dynamo)
    assert ok(dynamo, DelayPace(PACE, NOON + 5_000))
    head = jobs.limit_state(LIMIT).head
    assert head == NOON + 5_000 + PACE.slack
    assert not ok(dynamo, DelayPace(PACE, NOON + 4_000))
    assert not ok(dynamo, AcquirePermit(PACE, NOON + 4_999, jobs.limit_state(LIMIT), from_queue=False))
    assert ok(dynamo, AcquirePermit(PACE, NOON + 5_000, jobs.limit_state(LIMIT), from_queue=False))
    assert not ok(dynamo, AcquirePermit(PACE, NOON + 5_000, jobs.limit_state(LIMIT), from_queue=False)), (
        "the burst is used up"
    )


def test_e3_a_block_moves_the_head_as_it_was_read_and_no_waiter(dynamo: Dynamo) -> None:
    jobs = DynamoJobs(dynamo)
    assert ok(dynamo, JoinQueue(PACE, NOON, NOON, behind=True, count=24))
    assert ok(dynamo, AcquireBlock(LIMIT, 0, NOON + 500))
    assert not ok(dynamo, AcquireBlock(LIMIT, 0, NOON + 700)), "another invocation has acquired one"
    assert ok(dynamo, AcquireBlock(LIMIT, NOON + 500, NOON + 700))
    assert (jobs.limit_state(LIMIT).head, jobs.limit_state(LIMIT).waiters) == (NOON + 700, 24)


def test_e3_jobs_leave_a_queue_together_only_if_they_stand_there(dynamo: Dynamo) -> None:
    assert ok(dynamo, JoinQueue(PACE, NOON, NOON, behind=True, count=3))
    assert not ok(dynamo, LeaveQueue(LIMIT, 4))
    assert ok(dynamo, LeaveQueue(LIMIT, 2))
    assert DynamoJobs(dynamo).limit_state(LIMIT).waiters == 1


def test_e3_a_faster_policy_brings_the_next_permit_forward(dynamo: Dynamo) -> None:
    jobs = DynamoJobs(dynamo)
    assert ok(dynamo, AcquirePermit(Pace(LIMIT, 60_000, 1), NOON, LimitState(LIMIT), from_queue=False))
    assert ok(dynamo, JoinQueue(Pace(LIMIT, 60_000, 1), NOON, NOON + 60_000))
    advance = AdvancePace(LIMIT, jobs.limit_state(LIMIT), NOON + 3_000)
    assert ok(dynamo, advance)
    assert not ok(dynamo, advance), "somebody was faster"
    limit = jobs.limit_state(LIMIT)
    assert (limit.head, limit.wake_at, limit.waiters) == (NOON + 3_000, NOON + 3_000, 1)
