"""Rows in queues, tombstones and timers: a write that removes one names its owner, on both implementations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.aws.tables.rows import DynamoRows
from chalicelib.core.errors import SluiceError
from chalicelib.core.limits.permits import MOST_RATES, Slots
from chalicelib.core.limits.writes import AcquirePermit, JoinQueue, LeaveQueue
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.runs.queued import waiter_of
from chalicelib.core.writes import (
    CloseGeneration,
    Create,
    ExpectNotQueued,
    ExpectNotWaiting,
    Put,
    PutState,
    RemoveWaiter,
    Replace,
    Write,
)
from chalicelib.flow.jobs import drop
from tests.support import rows
from tests.support.clock import NOON
from tests.support.schedules import at_most, partitions
from tests.support.world import World, day, flights

LIMIT = "workflow:demo.flights.w"
ONE = Slots(LIMIT, 1)
WAITER = Waiter(LIMIT, "5#~#x", rows.SCHEDULE, rows.GENERATION, "GATHERING", "j1")
QUEUED = rows.job(queued_in=LIMIT, rank="5#~#x", state="PENDING_LAUNCH")
CLOSE = CloseGeneration(rows.SCHEDULE, rows.GENERATION, NOON + 1)
CLEAN = "workflow:demo.flights.clean"


def ok(dynamo: Dynamo, *writes: Write) -> bool:
    return dynamo.commit(writes) is None


def stored(dynamo: Dynamo) -> Job | None:
    return dynamo.get(kinds.key(Job, rows.SCHEDULE, rows.GENERATION, "GATHERING"), Job)


# -- queues --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"job_id": "j2"}, {"job_sort_key": "JOB#1"}])
@pytest.mark.parametrize("along", [False, True])
def test_w2_a_waiter_is_removed_only_by_its_own_job(dynamo: Dynamo, other: dict[str, str], along: bool) -> None:
    """A job that moved, and queues again at its rank, is not removed by a server that read its earlier row."""
    rest: list[Write] = [Create(rows.run())] if along else []
    assert ok(dynamo, Create(WAITER))
    assert not ok(dynamo, RemoveWaiter(replace(WAITER, **other)), *rest)
    assert dynamo.get(kinds.key_of(WAITER), Waiter) == WAITER
    assert ok(dynamo, RemoveWaiter(WAITER), *rest)
    assert not ok(dynamo, RemoveWaiter(WAITER))


def queue_up(dynamo: Dynamo) -> None:
    assert ok(dynamo, AcquirePermit(ONE, NOON, LimitState(LIMIT), from_queue=False))
    assert ok(dynamo, JoinQueue(ONE, NOON, NOON + 60_000), Create(WAITER))


def clear(dynamo: Dynamo, read: Job | None = None) -> bool:
    """Remove a waiter as the server of a queue does: its job does not exist, or does not wait in this queue."""
    return ok(dynamo, ExpectNotWaiting(WAITER, read), RemoveWaiter(WAITER), LeaveQueue(LIMIT))


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("read", [None, rows.job("j0"), replace(QUEUED, queued_in=None, rank=None, rev=0)])
def test_w2_a_waiter_is_not_cleared_while_its_job_waits(dynamo: Dynamo, closed: bool, read: Job | None) -> None:
    queue_up(dynamo)
    assert ok(dynamo, Create(QUEUED))
    if closed:
        assert ok(dynamo, CLOSE), "the drain drops the job under a tombstone, and its waiter with it"
    refused = dynamo.commit([ExpectNotWaiting(WAITER, read), RemoveWaiter(WAITER), LeaveQueue(LIMIT)])
    assert refused is not None
    assert [type(write) for write in refused.writes] == [ExpectNotWaiting]
    assert dynamo.get(kinds.key_of(WAITER), Waiter) == WAITER
    assert DynamoJobs(dynamo).limit_state(LIMIT).waiters == 1


@pytest.mark.parametrize(
    "there",
    [
        None,
        rows.job(),
        replace(QUEUED, queued_in="emr:app"),
        replace(QUEUED, job_id="j2"),
        rows.job("", closed=True),
    ],
)
def test_w2_a_waiter_left_by_its_job_is_cleared_once(dynamo: Dynamo, there: Job | None) -> None:
    queue_up(dynamo)
    if there is not None:
        assert ok(dynamo, Create(there))
    assert clear(dynamo, there)
    assert DynamoJobs(dynamo).limit_state(LIMIT).waiters == 0
    assert not clear(dynamo, there)
    assert stored(dynamo) == there


def test_w2_expecting_no_waiters_changes_nothing(dynamo: Dynamo) -> None:
    assert ok(dynamo, ExpectNotWaiting(WAITER, None))
    assert stored(dynamo) is None
    assert ok(dynamo, Create(QUEUED))
    assert not ok(dynamo, ExpectNotWaiting(WAITER, None))


def test_e8_the_waiter_of_a_run_that_queued_again_is_not_cleared(dynamo: Dynamo) -> None:
    read = rows.run(queued_in=None)
    again = replace(read, queued_in="emr:app", rank="5#~#x", rev=read.rev + 1)
    waiter = waiter_of(again)
    assert waiter is not None
    assert ok(dynamo, Create(again))
    assert ok(dynamo, Create(waiter))

    assert not ok(dynamo, ExpectNotWaiting(waiter, read), RemoveWaiter(waiter))
    assert ok(dynamo, ExpectNotWaiting(waiter, again), RemoveWaiter(waiter))


def test_w2_expecting_no_waiter_fails_while_one_exists(dynamo: Dynamo) -> None:
    assert ok(dynamo, ExpectNotQueued(WAITER))
    assert ok(dynamo, Create(WAITER))
    assert not ok(dynamo, ExpectNotQueued(WAITER))


# -- tombstones ----------------------------------------------------------------------------------------------------


def test_l3_a_finished_tombstone_has_no_job_and_still_blocks(dynamo: Dynamo) -> None:
    assert ok(dynamo, Create(QUEUED))
    assert ok(dynamo, CLOSE)
    found = stored(dynamo)
    assert found is not None
    settled = replace(found, job_id="", queued_in=None, rank=None, held=(), wake_at=None, rev=found.rev + 1)
    assert not ok(dynamo, Replace(settled)), "there is a job under it, which must be named"
    assert ok(dynamo, Replace(settled, over=found))
    assert stored(dynamo) == settled
    assert not ok(dynamo, Replace(settled, over=found)), "another drain was first"
    assert not ok(dynamo, Replace(replace(QUEUED, rev=settled.rev + 1)))
    assert not ok(dynamo, Create(rows.job("j2")))


def test_l5_a_drain_removes_the_job_under_a_tombstone_once(world: World) -> None:
    world.deploy(flights({"daily": partitions(**at_most(1))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    assert world.limit_state(CLEAN).waiters == 1
    schedule_state = world.ports.rows.get(ScheduleState, "demo.flights.daily")
    assert isinstance(schedule_state, ScheduleState)

    world.disable("daily")
    world.settle()

    grave = world.ports.rows.get(Job, "demo.flights.daily", schedule_state.generation, "GATHERING")
    assert grave is not None
    assert (grave.closed, grave.job_id, grave.queued_in, grave.held, grave.wake_at) == (True, "", None, (), None)
    assert world.limit_state(CLEAN).waiters == 0
    assert [record.kind for record in world.records("daily")] == ["DROPPED"]
    assert drop.drain(world.ports, "demo.flights.daily", schedule_state.generation) == 0
    assert len(world.records("daily")) == 1


# -- timers --------------------------------------------------------------------------------------------------------


def test_l4_emitter_stalled_over_drain_and_resume_writes_nothing(dynamo: Dynamo) -> None:
    """The generation is the same, and both timers have the first revision, but their anchors differ."""
    before = Timer(rows.SCHEDULE, rows.GENERATION, 1, NOON, {"0": NOON + 10}, wake_at=NOON + 10)
    resumed = replace(before, anchor=NOON + 5, next={"0": NOON + 15}, wake_at=NOON + 15)
    assert ok(dynamo, PutState(rows.schedule_state(), None), Put(resumed))
    late = replace(before, next={"0": NOON + 20}, rev=2, wake_at=NOON + 20)
    assert not ok(dynamo, Replace(late))
    assert not ok(dynamo, Replace(replace(resumed, generation=1, rev=2)))
    assert DynamoRows(dynamo).get(Timer, rows.SCHEDULE) == resumed
    assert ok(dynamo, Replace(replace(resumed, next={"0": NOON + 25}, rev=2, wake_at=NOON + 25)))


# -- the rates of one workflow -------------------------------------------------------------------------------------


def rated(*limits: int) -> dict[str, object]:
    return partitions(constraints=[{"type": "rate", "max": limit, "per": "hour"} for limit in limits])


def test_c5_a_workflow_has_at_most_twenty_different_rates(world: World) -> None:
    world.deploy(flights({f"s{number}": rated(2 * number + 1, 2 * number + 2) for number in range(10)}))
    assert len(world.limit_state(CLEAN).rates) == 20

    with pytest.raises(SluiceError) as refused:
        world.put("another", rated(21))

    assert (refused.value.code, refused.value.field) == ("invalid", "constraints")
    assert "at most 20 different rates of one workflow, got 21" in str(refused.value)
    assert world.ports.rows.get(ScheduleState, "demo.flights.another") is None
    assert len(world.limit_state(CLEAN).rates) == 20
    world.put("another", rated(1, 20))
    world.put("elsewhere", rated(21) | {"workflow": "join"})
    assert world.limit_state("workflow:demo.flights.join").rates == ("21/3600000",)


def test_c5_the_rates_of_a_whole_deployment_are_counted(world: World) -> None:
    with pytest.raises(SluiceError) as refused:
        world.deploy(flights({f"s{number:02d}": rated(number + 1) for number in range(98)}))
    assert {problem.field for problem in refused.value.problems} == {
        f"schedules.s{number:02d}.constraints" for number in range(20, 98)
    }
    world.deploy(flights({f"s{number}": rated(number + 1) for number in range(20)}))
    more = {f"s{number}": rated(number + 1) for number in range(20)} | {"again": rated(3, 5)}
    world.deploy(flights(more))
    with pytest.raises(SluiceError):
        world.deploy(flights(more | {"new": rated(21)}))


def test_c5_puts_at_the_same_time_do_not_pass_what_a_claim_takes(world: World) -> None:
    """Each of many puts passes the check before any of them writes. No write passes the second limit."""
    world.deploy(flights({}))
    for number in range(MOST_RATES + 3):
        try:
            world.put(f"s{number}", rated(number + 1), checked=True)
        except SluiceError as error:
            assert error.code == "changed_meanwhile"
    assert len(world.limit_state(CLEAN).rates) == MOST_RATES
    world.put("again", rated(1, MOST_RATES), checked=True)  # rates that are counted already
    world.upload(day(1))
    world.settle()
    assert len(world.runs("s0")) + len(world.runs("again")) > 0
