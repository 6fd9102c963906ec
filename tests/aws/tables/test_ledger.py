"""Every write checks its condition, on both implementations: a refused plan changes nothing and names the refused
writes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.core.limits.permits import Pace, RateWindow, Slots
from chalicelib.core.limits.writes import (
    AcquirePermit,
    ClearQueueWake,
    JoinQueue,
    LeaseQueue,
    LeaveQueue,
    ReleasePermit,
)
from chalicelib.core.rows import kinds
from chalicelib.core.rows.delivery_lease import lease_of, renewed
from chalicelib.core.rows.event import LastArrival, NewestPartition, Partition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Failures, ScheduleState, Timer
from chalicelib.core.writes import (
    ClearStateWake,
    CloseGeneration,
    CountFailure,
    Create,
    DeleteJob,
    DeleteNotice,
    EndLease,
    EndTimer,
    ExpectMode,
    ExpectNewest,
    ExpectNoneGathering,
    ExpectNoPartition,
    ExpectOpen,
    MarkWoken,
    Put,
    PutLastArrival,
    PutNewest,
    PutState,
    RemoveWaiter,
    Replace,
    TakeLease,
    Write,
)
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says

LIMIT = "workflow:demo.flights.w"
ONE = Slots(LIMIT, 1)
PACE = Pace("emr:app", 1000, 3)


def ok(dynamo: Dynamo, *writes: Write) -> bool:
    return dynamo.commit(writes) is None


def stored(dynamo: Dynamo, place: str = "GATHERING") -> Job | None:
    return dynamo.get(kinds.key(Job, rows.SCHEDULE, rows.GENERATION, place), Job)


def test_a_row_is_created_once_and_read_back_as_it_was(dynamo: Dynamo) -> None:
    run = rows.run(event=rows.event(), correlation={"day": "1"}, announce=("STARTED",))
    assert ok(dynamo, Create(run))
    refused = dynamo.commit([Create(run)])
    assert refused is not None
    assert refused.of(Create)
    assert dynamo.get(kinds.key(Run, "r1", 1), Run) == run


def test_a_replacement_names_the_revision_it_read(dynamo: Dynamo) -> None:
    job = rows.job()
    assert ok(dynamo, Create(job))
    assert ok(dynamo, Replace(replace(job, rev=2, reason=says("second"))))
    assert not ok(dynamo, Replace(replace(job, rev=2, reason=says("late"))))
    assert not ok(dynamo, Replace(replace(job, rev=3, job_id="another")))
    found = stored(dynamo)
    assert found is not None
    assert found.reason.text == "second"


def test_a_refused_plan_leaves_nothing_behind(dynamo: Dynamo) -> None:
    job, schedule_state = rows.job(), rows.schedule_state()
    assert ok(dynamo, Create(job), PutState(schedule_state, None))
    closed = replace(schedule_state, mode="disabled")
    refused = dynamo.commit([DeleteJob(job), Create(rows.run()), ExpectMode(closed, ("disabled",))])
    assert refused is not None
    assert [type(write) for write in refused.writes] == [ExpectMode]
    assert stored(dynamo) == job
    assert dynamo.get(kinds.key(Run, "r1", 1), Run) is None


def test_a_schedule_state_is_checked_by_generation_and_mode(dynamo: Dynamo) -> None:
    schedule_state = rows.schedule_state()
    assert ok(dynamo, PutState(schedule_state, None))
    assert not ok(dynamo, PutState(schedule_state, None))
    for other in (replace(schedule_state, generation=1), replace(schedule_state, version=2)):
        assert not ok(dynamo, ExpectMode(other, ("enabled",)), Create(rows.run()))
    assert not ok(dynamo, ExpectMode(schedule_state, ("disabled",)), Create(rows.run()))
    assert ok(dynamo, ExpectMode(schedule_state, ("disabled", "enabled")), Create(rows.run()))
    disabled = replace(schedule_state, mode="disabled")
    assert ok(dynamo, PutState(disabled, schedule_state))
    assert not ok(dynamo, PutState(replace(schedule_state, version=2), schedule_state))
    assert dynamo.get(kinds.key(ScheduleState, rows.SCHEDULE), ScheduleState) == disabled


def test_l4_a_schedule_state_is_also_checked_by_its_revision(
    dynamo: Dynamo,
) -> None:
    schedule_state = rows.schedule_state()
    paused = replace(schedule_state, rev=2, mode="hold", pauses=((NOON, NOON + 5), (NOON + 9, None)), skips=(NOON + 1))
    resumed = replace(paused, rev=3, mode="enabled", reason="", wake_at=NOON)
    assert ok(dynamo, PutState(schedule_state, None))
    assert ok(dynamo, PutState(paused, schedule_state))
    assert dynamo.get(kinds.key(ScheduleState, rows.SCHEDULE), ScheduleState) == paused
    assert ok(dynamo, PutState(resumed, paused))
    assert not ok(dynamo, ExpectMode(schedule_state, ("enabled",)), Create(rows.run())), (
        "it looks the same, but it is not"
    )
    assert not ok(dynamo, PutState(replace(schedule_state, rev=2), schedule_state))
    assert ok(dynamo, ExpectMode(resumed, ("enabled",)), Create(rows.run()))


def test_l4_a_state_wake_is_cleared_only_if_unchanged(dynamo: Dynamo) -> None:
    awake = rows.schedule_state(rev=2, wake_at=NOON)
    assert ok(dynamo, PutState(awake, None))
    assert not ok(dynamo, ClearStateWake(replace(awake, rev=1)))
    assert dynamo.get(kinds.key(ScheduleState, rows.SCHEDULE), ScheduleState) == awake
    assert ok(dynamo, ClearStateWake(awake))
    assert dynamo.get(kinds.key(ScheduleState, rows.SCHEDULE), ScheduleState) == replace(awake, wake_at=None)


def test_l4_a_cursor_of_waking_counts_for_its_revision(dynamo: Dynamo) -> None:
    awake = rows.schedule_state(rev=2, wake_at=NOON)
    assert ok(dynamo, PutState(awake, None))
    assert not ok(dynamo, MarkWoken(replace(awake, rev=1), "a"))
    assert ok(dynamo, MarkWoken(awake, "b"))
    marked = dynamo.get(kinds.key(ScheduleState, rows.SCHEDULE), ScheduleState)
    assert marked is not None
    assert (marked.woken_to, marked.rev, marked.wake_at) == ("b", 2, NOON)
    assert replace(marked, rev=3).woken_to is None, "there is another reason to wake the jobs"
    assert ok(dynamo, ClearStateWake(awake))
    assert dynamo.get(kinds.key(ScheduleState, rows.SCHEDULE), ScheduleState) == replace(awake, wake_at=None)


def test_t18_a_last_arrival_is_written_over_row_that_was_read(dynamo: Dynamo) -> None:
    seen = LastArrival(rows.SCHEDULE, rows.GENERATION, "0", NOON)
    assert ok(dynamo, PutLastArrival(seen, None))
    assert not ok(dynamo, PutLastArrival(replace(seen, at=NOON + 1), None)), "somebody was first"
    assert ok(dynamo, PutLastArrival(replace(seen, at=NOON + 5), NOON))
    assert not ok(dynamo, PutLastArrival(replace(seen, at=NOON + 3), NOON)), "a late writer does not set it back"
    assert dynamo.get(kinds.key(LastArrival, rows.SCHEDULE, rows.GENERATION, "0"), LastArrival) == replace(
        seen, at=NOON + 5
    )


def test_c18_an_older_partition_does_not_replace_the_newest(dynamo: Dynamo) -> None:
    first = NewestPartition("demo.flights", {"month": "09", "day": "01"}, NOON)
    assert ok(dynamo, PutNewest(first))
    assert not ok(dynamo, PutNewest(first)), "the same once more"
    assert not ok(dynamo, PutNewest(replace(first, partition={"month": "08", "day": "31"}, at=NOON - 1)))
    assert dynamo.get(kinds.key(NewestPartition, "demo.flights"), NewestPartition) == first
    later = replace(first, partition={"month": "09", "day": "02"}, at=NOON + 1)
    assert ok(dynamo, PutNewest(later))
    assert dynamo.get(kinds.key(NewestPartition, "demo.flights"), NewestPartition) == later


def test_t29_a_decision_expects_the_newest_that_was_read(dynamo: Dynamo) -> None:
    first, run = NewestPartition("demo.flights", {"day": "1"}, NOON), Create(rows.run())
    assert not ok(dynamo, ExpectNewest("demo.flights", first), run), "it has not come"
    assert ok(dynamo, ExpectNewest("demo.flights", None), Create(rows.applied_event()))
    assert ok(dynamo, PutNewest(first))
    assert not ok(dynamo, ExpectNewest("demo.flights", None), run)
    assert not ok(dynamo, ExpectNewest("demo.flights", replace(first, at=NOON - 1)), run)
    assert ok(dynamo, ExpectNewest("demo.flights", first), run)


def test_t29_an_absence_expects_that_its_partition_is_missing(dynamo: Dynamo) -> None:
    partition = Partition("demo.flights", ("1",), rows.event(), "raw/flights/day=1/_SUCCESS")
    absent = ExpectNoPartition(partition.dataset, partition.values)
    assert ok(dynamo, absent, Create(rows.applied_event()))
    assert ok(dynamo, Create(partition))
    assert not ok(dynamo, absent, Create(rows.run()))


def test_l19_parallel_failures_are_counted_and_reset_at_once(dynamo: Dynamo) -> None:
    for expected in (1, 2):
        assert ok(dynamo, CountFailure(rows.SCHEDULE))
        assert dynamo.get(kinds.key(Failures, rows.SCHEDULE), Failures) == Failures(rows.SCHEDULE, expected)
    assert ok(dynamo, CountFailure(rows.SCHEDULE), Create(rows.run()))
    assert not ok(dynamo, CountFailure(rows.SCHEDULE), Create(rows.run()))
    assert dynamo.get(kinds.key(Failures, rows.SCHEDULE), Failures) == Failures(rows.SCHEDULE, 3)
    assert ok(dynamo, Put(Failures(rows.SCHEDULE, 0)))
    assert ok(dynamo, CountFailure(rows.SCHEDULE))
    assert dynamo.get(kinds.key(Failures, rows.SCHEDULE), Failures) == Failures(rows.SCHEDULE, 1)


def test_a_job_is_removed_by_its_id_with_any_events(dynamo: Dynamo) -> None:
    job = rows.job()
    assert ok(dynamo, Create(job))
    assert ok(dynamo, Replace(replace(job, rev=2)))
    assert not ok(dynamo, DeleteJob(rows.job("another")))
    assert ok(dynamo, DeleteJob(job))
    assert stored(dynamo) is None


def test_a_job_that_queued_is_not_removed_by_an_older_read(dynamo: Dynamo) -> None:
    job = rows.job()
    assert ok(dynamo, Create(job))
    queued = replace(job, rev=2, queued_in=LIMIT, rank="5#~#x")
    assert ok(dynamo, Replace(queued))
    assert not ok(dynamo, DeleteJob(job))
    assert ok(dynamo, DeleteJob(queued))


def test_a_tombstone_keeps_the_job_under_it_and_takes_no_events(dynamo: Dynamo) -> None:
    job = rows.job(held=(LIMIT,))
    close = CloseGeneration(rows.SCHEDULE, rows.GENERATION, NOON + 1)
    assert ok(dynamo, Create(job))
    assert ok(dynamo, close)
    found = stored(dynamo)
    assert found is not None
    assert (found.closed, found.held, found.job_id) == (True, (LIMIT,), "j1")
    assert not ok(dynamo, Replace(replace(job, rev=2)))
    assert not ok(dynamo, DeleteJob(job))
    assert not ok(dynamo, ExpectOpen(rows.SCHEDULE, rows.GENERATION), Create(rows.run()))
    assert ok(dynamo, ExpectNoneGathering(rows.SCHEDULE, rows.GENERATION), Create(rows.run())), (
        "nothing gathers under it"
    )


def test_c11_a_fire_passes_only_where_no_job_gathers(dynamo: Dynamo) -> None:
    none = ExpectNoneGathering(rows.SCHEDULE, rows.GENERATION)
    assert ok(dynamo, none, Create(rows.run("first")))
    assert ok(dynamo, Create(rows.job()))
    assert not ok(dynamo, none, Create(rows.run("second")))


def test_t14_a_new_job_replaces_one_whose_match_has_expired(dynamo: Dynamo) -> None:
    old, new = rows.job("old", rev=4), rows.job("new", rev=5)
    assert ok(dynamo, Create(old))
    assert not ok(dynamo, Replace(new)), "another job stands there"
    assert not ok(dynamo, Replace(replace(new, rev=6), over=old)), "it has changed since"
    assert ok(dynamo, Replace(new, over=old))
    assert stored(dynamo) == new
    assert not ok(dynamo, Replace(new, over=old))


def test_l4_a_tombstone_is_put_over_a_detached_job(dynamo: Dynamo) -> None:
    job = rows.job(rev=2)
    grave = rows.job("", rev=3, closed=True)
    assert ok(dynamo, Create(job))
    assert ok(dynamo, Replace(grave, over=job), Create(replace(job, sort_key="JOB#1")))
    assert not ok(dynamo, Replace(rows.job(rev=4))), "nothing joins it"
    assert ok(dynamo, DeleteJob(grave)), "a resume takes it off"
    assert stored(dynamo) is None


def test_t12_a_job_is_removed_exactly_as_read_where_asked(dynamo: Dynamo) -> None:
    job = rows.job()
    assert ok(dynamo, Create(job))
    later = replace(job, rev=2)
    assert ok(dynamo, Replace(later))
    assert not ok(dynamo, DeleteJob(job, exact=True))
    assert ok(dynamo, DeleteJob(later, exact=True))


def test_a_tombstone_without_a_job_blocks_the_first_event(dynamo: Dynamo) -> None:
    assert ok(dynamo, CloseGeneration(rows.SCHEDULE, rows.GENERATION, NOON))
    assert not ok(dynamo, Create(rows.applied_event()), Create(rows.job()))


def test_slots_admit_a_new_job_only_when_nobody_waits(dynamo: Dynamo) -> None:
    take = AcquirePermit(ONE, NOON, LimitState(LIMIT), from_queue=False)
    assert ok(dynamo, take)
    assert not ok(dynamo, take)
    assert ok(dynamo, JoinQueue(ONE, NOON, NOON + 60_000))
    assert not ok(dynamo, ReleasePermit(LIMIT, None)), "a job waits: the write must wake the queue"
    assert ok(dynamo, ReleasePermit(LIMIT, NOON + 5))
    limit = DynamoJobs(dynamo).limit_state(LIMIT)
    assert (limit.active, limit.waiters, limit.wake_at) == (0, 1, NOON + 5)
    assert not ok(dynamo, take), "a permit is free, but it belongs to who waits"
    assert ok(dynamo, replace(take, from_queue=True))
    limit = DynamoJobs(dynamo).limit_state(LIMIT)
    assert (limit.active, limit.waiters) == (1, 0)


def test_no_job_joins_a_queue_while_a_permit_is_free(dynamo: Dynamo) -> None:
    join = JoinQueue(ONE, NOON, NOON)
    assert not ok(dynamo, join)
    assert ok(dynamo, AcquirePermit(ONE, NOON, LimitState(LIMIT), from_queue=False))
    assert ok(dynamo, join)
    assert ok(dynamo, LeaveQueue(LIMIT))
    assert not ok(dynamo, LeaveQueue(LIMIT))
    assert ok(dynamo, ReleasePermit(LIMIT, None))


def test_a_job_joins_the_queue_of_a_new_full_rate_window(dynamo: Dynamo) -> None:
    """The window has counted nothing, and has the starts of another one. The first start is written with them."""
    window, jobs = RateWindow("rate:a.b.c:1/60000", 1, 60_000), DynamoJobs(dynamo)
    read = LimitState(window.limit_name, starts={"r1#1": NOON})
    join, take = JoinQueue(window, NOON, NOON + 60_000), AcquirePermit(window, NOON + 60_000, read, True, "r2#1")
    assert ok(dynamo, join)
    assert ok(dynamo, take)
    assert jobs.limit_state(window.limit_name).starts == {"r1#1": NOON, "r2#1": NOON + 60_000}
    assert not ok(dynamo, take)
    assert not ok(dynamo, join), "it has counted a start since it was read"
    assert ok(dynamo, replace(join, rev=1))


def test_an_unlimited_slot_is_counted_and_never_refused(dynamo: Dynamo) -> None:
    for _ in range(3):
        assert ok(dynamo, AcquirePermit(Slots(LIMIT, None), NOON, LimitState(LIMIT), from_queue=False))
    assert DynamoJobs(dynamo).limit_state(LIMIT).active == 3


def test_a_pace_admits_a_burst_and_then_one_at_a_time(dynamo: Dynamo) -> None:
    jobs = DynamoJobs(dynamo)

    def take(now: int, head: int, from_queue: bool = False) -> bool:
        return ok(dynamo, AcquirePermit(PACE, now, LimitState("emr:app", head=head), from_queue))

    for _ in range(3):
        assert take(NOON, jobs.limit_state("emr:app").head)
    assert jobs.limit_state("emr:app").head == NOON + 3000
    assert not take(NOON, NOON + 3000)
    assert ok(dynamo, JoinQueue(PACE, NOON, NOON + 1000))
    assert not take(NOON + 1000, NOON + 3000), "a job waits"
    assert take(NOON + 1000, NOON + 3000, from_queue=True)
    assert take(NOON + 9000, NOON + 4000)
    assert jobs.limit_state("emr:app").head == NOON + 10_000


def test_one_server_leases_a_queue_and_clears_an_empty_one(dynamo: Dynamo) -> None:
    assert ok(dynamo, AcquirePermit(ONE, NOON, LimitState(LIMIT), from_queue=False))
    assert ok(dynamo, JoinQueue(ONE, NOON, NOON + 7))
    assert ok(dynamo, LeaseQueue(LIMIT, NOON + 7, NOON + 60_000))
    assert not ok(dynamo, LeaseQueue(LIMIT, NOON + 7, NOON + 60_000))
    assert not ok(dynamo, ClearQueueWake(LIMIT))
    assert ok(dynamo, LeaveQueue(LIMIT))
    assert ok(dynamo, ClearQueueWake(LIMIT))
    assert DynamoJobs(dynamo).limit_state(LIMIT).wake_at is None


def test_a_waiter_is_removed_once(dynamo: Dynamo) -> None:
    waiter = Waiter(LIMIT, "5#~#x", rows.SCHEDULE, rows.GENERATION, "GATHERING", "j1")
    assert ok(dynamo, Create(waiter))
    assert ok(dynamo, RemoveWaiter(waiter))
    assert not ok(dynamo, RemoveWaiter(waiter))


def test_a_pending_notice_is_removed_once_and_as_it_was_read(dynamo: Dynamo) -> None:
    assert ok(dynamo, Create(rows.notice()))
    assert ok(dynamo, Replace(rows.notice(rev=2)))
    assert not ok(dynamo, DeleteNotice(rows.notice()))
    assert ok(dynamo, DeleteNotice(rows.notice(rev=2)))
    assert not ok(dynamo, DeleteNotice(rows.notice(rev=2)))


def test_a_timer_ends_once_and_as_it_was_read(dynamo: Dynamo) -> None:
    timer = Timer(rows.SCHEDULE, rows.GENERATION, 1, NOON, {"0": NOON}, wake_at=NOON)
    following = replace(timer, generation=timer.generation + 1)
    assert ok(dynamo, Put(timer))
    for read in (replace(timer, rev=2), following, replace(timer, anchor=timer.anchor + 1)):
        assert not ok(dynamo, EndTimer(read))
        assert not ok(dynamo, EndTimer(read, following))
    assert ok(dynamo, EndTimer(timer, following))
    assert dynamo.get(kinds.key(Timer, timer.schedule), Timer) == following
    assert ok(dynamo, EndTimer(following))
    assert dynamo.get(kinds.key(Timer, timer.schedule), Timer) is None


def test_a_batch_over_the_dynamodb_limit_is_written_repeatably(dynamo: Dynamo) -> None:
    fires = [rows.job(f"j{index}", sort_key=f"FIRE#{index:03d}", kind="fire") for index in range(60)]
    for _ in range(2):
        dynamo.put_all([Put(fire) for fire in fires])
    assert len(DynamoJobs(dynamo).jobs(rows.SCHEDULE, rows.GENERATION, 100, None).items) == 60


def test_a_plan_with_a_repeated_key_raises_an_error(dynamo: Dynamo) -> None:
    with pytest.raises(ValueError, match="each key once"):
        dynamo.commit([ReleasePermit(LIMIT, None), LeaveQueue(LIMIT)])


def test_a_delivery_lease_is_taken_once_until_it_expires(dynamo: Dynamo) -> None:
    job = rows.job("j1", due_at=NOON)
    lease = lease_of([job], NOON + 10, "one", NOON)
    assert ok(dynamo, TakeLease(lease, NOON))
    assert not ok(dynamo, TakeLease(renewed(lease, NOON + 30), NOON + 9))
    assert DynamoJobs(dynamo).delivery_leases(NOON) == (lease,)
    assert ok(dynamo, TakeLease(renewed(lease, NOON + 30), NOON + 10)), "it has expired"
    assert not ok(dynamo, TakeLease(renewed(lease, NOON + 40), NOON + 5, over=NOON + 10)), "another has it"
    assert ok(dynamo, TakeLease(renewed(lease, NOON + 40), NOON + 5, over=NOON + 30))


def test_a_delivery_lease_is_ended_only_by_its_holder(dynamo: Dynamo) -> None:
    lease = lease_of([rows.job("j1", due_at=NOON)], NOON + 10, "one", NOON)
    assert ok(dynamo, TakeLease(lease, NOON))
    assert not ok(dynamo, EndLease(renewed(lease, NOON + 30)))
    assert not ok(dynamo, EndLease(replace(lease, holder="other")))
    assert ok(dynamo, EndLease(lease))
    assert DynamoJobs(dynamo).delivery_leases(NOON) == ()
