"""The plans that claim a job, queue it or delete it: exactly these writes, and no other (C9, C11, C13, W10)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core.definitions import overrides
from chalicelib.core.instants import DAY, HOUR
from chalicelib.core.jobs import claim
from chalicelib.core.jobs.check import Launch
from chalicelib.core.jobs.permits import asks_of
from chalicelib.core.limits import permits, returns
from chalicelib.core.limits import permits as limit_permits
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.permits import Pace, Slots
from chalicelib.core.limits.route import Route
from chalicelib.core.limits.writes import AcquirePermit, JoinQueue, LeaveQueue, RecordStart, ReleasePermit
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.why import NONE
from chalicelib.core.writes import Create, DeleteJob, ExpectMode, ExpectNoneGathering, Put, RemoveWaiter, Replace
from tests.core.builders import (
    EMR_LIMIT,
    LIMIT,
    NAME,
    NOON,
    RATE,
    SQS,
    concurrency,
    facts,
    job,
    met,
    run,
    schedule,
    schedule_state,
    workflow,
)
from tests.core.builders import partition_event as event
from tests.support.reasons import says

OPEN = ("enabled", "drain", "completed")  # the modes in which prepared fires and met jobs are launched
RUN = f"{NAME}.7.first#001"  # the holder under which a limit remembers the run
SLOT, PACE = Slots(LIMIT, 1), Pace(EMR_LIMIT, RATE.spacing, RATE.burst)
LIMITED = schedule(constraints=[concurrency(1, "wait")])
FREE = Route((SLOT, PACE), None)


def waiter_of(queued: Job) -> Waiter:
    assert queued.queued_in is not None
    assert queued.rank is not None
    return Waiter(queued.queued_in, queued.rank, queued.schedule, queued.generation, queued.sort_key, queued.job_id)


# -- the run that a job becomes ------------------------------------------------------------------------------------


def test_a_run_keeps_the_id_of_its_job_and_is_its_own_outbox() -> None:
    made = claim.build_run(met(reason="trigger met"), facts(), (LIMIT, EMR_LIMIT), "s3://c/x.json", NOON + 5)

    assert (made.run_id, made.attempt, made.state) == (f"{NAME}.7.first", 1, "STARTING")
    assert (made.permits, made.fired_by.text) == ((LIMIT, EMR_LIMIT), "trigger met")
    assert (made.claimed_at, made.created_at, made.wake_at) == (NOON + 5, NOON, NOON + 5)
    assert made.request.name == f"{NAME}.7.first-1"
    assert made.request.context_uri == "s3://c/x.json"


def test_l9_arguments_are_those_of_workflow_schedule_and_run_now() -> None:
    known = facts(
        workflow=workflow(properties={"a": "workflow", "b": "workflow", "c": "workflow"}),
        schedule=schedule(properties={"b": "schedule", "c": "schedule"}),
    )
    made = claim.build_run(job("run_now", properties={"c": "now"}), known, (), "", NOON)
    assert made.request.properties == {"a": "workflow", "b": "schedule", "c": "now"}


def test_w2_a_schedule_priority_overrides_the_workflow_priority() -> None:
    assert overrides.priority_of(schedule(), workflow(priority=8)) == 8
    assert overrides.priority_of(schedule(priority=0), workflow(priority=8)) == 0
    assert overrides.priority_of(schedule(), workflow()) == 5


def test_w10_each_attempt_has_its_own_token_and_name() -> None:
    first = claim.build_run(met(), facts(), (), "", NOON)
    again = claim.build_run(met(), facts(), (), "", NOON + DAY)
    second = claim.build_run(replace(met(), attempt=2), facts(), (), "", NOON)
    assert first.request == again.request
    assert first.request.client_token != second.request.client_token
    assert second.request.name == f"{NAME}.7.first-2"


def test_w10_the_longest_names_fit_into_an_emr_run_name() -> None:
    longest = ".".join(["n" * 63] * 3)
    made = claim.build_run(met(job_id=f"{longest}.{'z' * 9}.{'f' * 20}", attempt=20), facts(), (), "", NOON)
    assert made.request.name == f"{made.run_id}-20"


def test_w1_a_target_without_a_lifecycle_is_attempted_once() -> None:
    thrice = {"attempts": 3}
    assert claim.build_run(met(), facts(workflow=workflow(retries=thrice)), (), "", NOON).attempts == 3
    assert claim.build_run(met(), facts(workflow=workflow(SQS, retries=thrice)), (), "", NOON).attempts == 1


def test_t17_only_a_fire_has_a_nominal_time() -> None:
    fire = replace(event(at=NOON - 9), kind="time")
    assert claim.build_run(met(event=fire), facts(), (), "", NOON).nominal_at == NOON - 9
    assert claim.build_run(met(event=event()), facts(), (), "", NOON).nominal_at is None


def test_h1_a_new_run_has_no_end() -> None:
    assert claim.build_run(met(), facts(), (), "", NOON).expires_at is None


def test_a_job_without_its_facts_is_not_claimed() -> None:
    with pytest.raises(ValueError, match="expected a schedule state, a schedule and a workflow"):
        claim.build_run(met(), facts(workflow=None), (), "", NOON)


# -- claim ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("of", "exact"), [("shown", True), ("", False)])
def test_c16_no_event_comes_between_an_approved_job_and_its_run(of: str, exact: bool) -> None:
    approved = met(approvals={"owner": {"by": "ann", "at": NOON, "of": of}})
    run = claim.build_run(approved, facts(), (), "", NOON)
    assert claim.claim(approved, run, facts(), FREE, NOON)[0] == DeleteJob(approved, exact)


def test_c9_a_claim_deletes_job_creates_run_and_takes_permits() -> None:
    head = LimitState(EMR_LIMIT, head=NOON + 3)
    claimed, known = met(), facts(limit_states={EMR_LIMIT: head})

    plan = claim.claim(claimed, run(), known, FREE, NOON)

    assert plan == [
        DeleteJob(claimed),
        Create(run()),
        ExpectMode(schedule_state(), OPEN),
        AcquirePermit(SLOT, NOON, LimitState(LIMIT), from_queue=False, begins=RUN, numbers=True),
        AcquirePermit(PACE, NOON, head, from_queue=False, begins=RUN),
    ]


def test_h1_a_job_with_a_number_takes_none_with_its_claim() -> None:
    numbered = met(number=4)
    plan = claim.claim(numbered, run(), facts(), FREE, NOON)
    assert AcquirePermit(SLOT, NOON, LimitState(LIMIT), from_queue=False, begins=RUN) in plan
    assert claim.build_run(numbered, facts(), (LIMIT,), "", NOON).number == 4
    assert claim.wants_number(numbered, Launch((SLOT, PACE), NONE)) is None
    assert claim.wants_number(met(), Launch((SLOT, PACE), NONE)) == LIMIT
    assert claim.wants_number(met(held=(LIMIT,)), Launch((PACE,), NONE)) == LIMIT


def test_l11_run_now_is_claimed_from_a_disabled_schedule_too() -> None:
    [_, _, expected_mode] = claim.claim(job("run_now"), run(), facts(), Route((), None), NOON)
    assert expected_mode == ExpectMode(
        schedule_state(), ("enabled", "hold", "backlog", "drain", "completed", "disabled")
    )


def test_c11_a_fire_is_claimed_only_if_no_other_job_of_its_waits() -> None:
    assert ExpectNoneGathering(NAME, 7) in claim.claim(job("fire"), run(), facts(), FREE, NOON)
    waiting = job("fire", sort_key=GATHERING)
    assert ExpectNoneGathering(NAME, 7) not in claim.claim(waiting, run(), facts(), FREE, NOON)


def test_w2_a_claim_out_of_a_queue_removes_its_waiter() -> None:
    queued = met(queued_in=EMR_LIMIT, rank="4#x", held=(LIMIT,))

    plan = claim.claim(queued, run(), facts(), Route((PACE,), None), NOON)

    assert plan[3:] == [
        AcquirePermit(PACE, NOON, LimitState(EMR_LIMIT), from_queue=True, begins=RUN),
        RecordStart(Slots(LIMIT, None), NOON, LimitState(LIMIT), RUN, numbers=True),
        RemoveWaiter(waiter_of(queued)),
    ]


def test_a_claim_leaves_a_queue_that_it_no_longer_needs() -> None:
    queued = met(queued_in="emr:app-before", rank="4#x")
    plan = claim.claim(queued, run(), facts(), FREE, NOON)
    assert plan[-2:] == [RemoveWaiter(waiter_of(queued)), LeaveQueue("emr:app-before")]


# -- queue ---------------------------------------------------------------------------------------------------------


def test_c9_a_blocked_job_holds_earlier_permits_and_queues() -> None:
    head = NOON + RATE.burst * RATE.spacing + 5
    full = LimitState(EMR_LIMIT, head=head)
    known = facts(schedule=LIMITED, limit_states={EMR_LIMIT: full})

    plan = claim.queue(met(), known, Route((SLOT,), PACE), NOON)

    rank = limit_permits.rank(5, None, NOON, met().job_id)
    queued = replace(
        met(),
        state="PENDING_LAUNCH",
        held=(LIMIT,),
        queued_in=EMR_LIMIT,
        rank=rank,
        reason=limit_permits.why(PACE, full),
        rev=2,
        wake_at=NOON + DAY,
    )
    assert plan == [
        Replace(queued),
        ExpectMode(schedule_state(), OPEN),
        AcquirePermit(SLOT, NOON, LimitState(LIMIT), from_queue=False),
        JoinQueue(PACE, NOON, head - PACE.slack - permits.SERVED_EARLY),
        Create(waiter_of(queued)),
    ]


def test_c11_a_fire_that_must_wait_becomes_the_gathering_job() -> None:
    fire = job("fire")

    plan = claim.queue(fire, facts(schedule=LIMITED), Route((), SLOT), NOON)

    [out, create, expected_mode, join, waiter] = plan
    assert out == DeleteJob(fire, exact=True)
    assert isinstance(create, Create)
    assert isinstance(create.row, Job)
    assert (create.row.sort_key, create.row.rev, create.row.job_id) == (GATHERING, 1, fire.job_id)
    assert (create.row.kind, create.row.state, create.row.queued_in) == ("fire", "PENDING_LAUNCH", LIMIT)
    assert expected_mode == ExpectMode(schedule_state(), OPEN)
    assert join == JoinQueue(SLOT, NOON, NOON + permits.SLOTS_RECHECK)
    assert waiter == Create(waiter_of(create.row))


def test_c9_a_job_served_at_one_limit_and_blocked_at_next_moves() -> None:
    queued = met(queued_in=LIMIT, rank="4#x")

    [stored, _, permit, left, joined, waiter] = claim.queue(queued, facts(schedule=LIMITED), Route((SLOT,), PACE), NOON)

    assert permit == AcquirePermit(SLOT, NOON, LimitState(LIMIT), from_queue=True)
    assert left == RemoveWaiter(waiter_of(queued))
    assert isinstance(joined, JoinQueue)
    assert isinstance(stored, Replace)
    assert isinstance(stored.row, Job)
    assert (stored.row.held, stored.row.queued_in) == ((LIMIT,), EMR_LIMIT)
    assert waiter == Create(waiter_of(stored.row))


def test_c10_a_queued_job_is_checked_at_its_timeout_retry_is_not() -> None:
    def wakes(queued: Job, **fields: object) -> int | None:
        plan = claim.queue(queued, facts(schedule=schedule(**fields)), Route((), SLOT), NOON)
        [row] = [write.row for write in plan if isinstance(write, Replace)]
        return row.wake_at

    assert wakes(met(), timeout={"after": "2h"}) == NOON + 2 * HOUR
    assert wakes(met(), timeout="never") is None
    assert wakes(job("retry")) is None


def test_a_free_route_is_not_queued() -> None:
    with pytest.raises(ValueError, match="expected a route that a limit blocks"):
        claim.queue(met(), facts(), FREE, NOON)


# -- off the queue -------------------------------------------------------------------------------------------------

RECORD = Record(f"{NAME}.7.first", "DROPPED", NAME, 7, says("the schedule was deleted"), NOON)


def test_l3_a_dropped_job_is_deleted_with_its_record() -> None:
    assert claim.drop_plan(met(), [Put(RECORD)], {}, NOON) == [DeleteJob(met()), Put(RECORD)]


def test_c9_dropped_job_leaves_its_queue_and_releases_its_slots() -> None:
    queued = met(queued_in=EMR_LIMIT, rank="4#x", held=(LIMIT,))
    assert claim.drop_plan(queued, [Put(RECORD)], {LIMIT: LimitState(LIMIT, active=1)}, NOON) == [
        DeleteJob(queued),
        Put(RECORD),
        RemoveWaiter(waiter_of(queued)),
        LeaveQueue(EMR_LIMIT),
        ReleasePermit(LIMIT, None),
    ]


def test_o3_a_job_that_has_run_is_deleted_without_a_record() -> None:
    queued = met(queued_in=LIMIT, rank="4#x")
    assert claim.delete_plan(queued, {}, NOON) == [
        DeleteJob(queued),
        RemoveWaiter(waiter_of(queued)),
        LeaveQueue(LIMIT),
    ]


def test_c8_a_released_slot_wakes_its_waiters() -> None:
    limits = {LIMIT: LimitState(LIMIT, active=1, waiters=2)}
    assert returns.give_back((LIMIT,), limits, NOON) == [ReleasePermit(LIMIT, NOON)]
    assert returns.give_back((LIMIT,), {}, NOON) == [ReleasePermit(LIMIT, None)]


def test_e8_a_permitted_start_is_spent_and_not_released() -> None:
    assert returns.give_back((LIMIT, EMR_LIMIT), {}, NOON) == [ReleasePermit(LIMIT, None)]
    assert returns.give_back((EMR_LIMIT,), {}, NOON) == []


def test_every_permit_of_a_launch_was_asked_for_by_the_decision() -> None:
    asks = asks_of(LIMITED, workflow(), RATE, "demo")
    route = limit_route.route(asks, (), {}, NOON, None)
    plan = claim.claim(met(), run(), facts(schedule=LIMITED), route, NOON)
    assert [write.ask for write in plan if isinstance(write, AcquirePermit)] == list(asks)
