"""The decision about a job: every branch, with its `why` text (C1, C8, C10, C11, C13)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant
from chalicelib.core.jobs.check import Coalesce, Decision, Duplicate, End, Launch, Wait, decide
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.jobs.permits import asks_of
from chalicelib.core.limits.permits import Pace, Slots
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import (
    EMR,
    EMR_LIMIT,
    LIMIT,
    NAME,
    NOON,
    PARTITION,
    RATE,
    SQS,
    concurrency,
    facts,
    job,
    met,
    schedule,
    schedule_state,
    workflow,
)
from tests.support.reasons import says

TWO = PARTITION | {"count": 2}
HALF = job(leaves={"0": Progress(1, NOON, NOON)}, reason="waits for 1 partition of demo.flights")
COME = "1 partition of demo.flights came at 2026-03-02T12:00:00.000Z"


def limited(most: int, active: int, on_unmet: str = "wait", waiters: int = 0, **fields: Any) -> Facts:
    """Facts about a schedule with a concurrency constraint, and the number of slots of its workflow in use."""
    busy = LimitState(LIMIT, active=active, waiters=waiters)
    return facts(schedule=schedule(constraints=[concurrency(most, on_unmet)], **fields), limit_states={LIMIT: busy})


def decided(what: Job, known: Facts, now: Instant = NOON, serving: str | None = None) -> Decision:
    return decide(what, known, now, serving)


# -- before anything else ------------------------------------------------------------------------------------------


def test_t4_a_fire_is_never_launched_before_it_is_due() -> None:
    fire = job("fire", due_at=NOON + 1)
    expected = Wait(NOON + 1, "PENDING_CONSTRAINTS", says("due at 2026-03-02T12:00:00.001Z"))
    assert decided(fire, facts()) == expected
    assert isinstance(decided(fire, facts(), NOON + 1), Launch)


def test_o3_a_job_written_again_by_a_stalled_writer_is_duplicate() -> None:
    assert decided(job("fire"), facts(already="run r")) == Duplicate(says("duplicate: this job already has run r"))


@pytest.mark.parametrize("kind", ["gathering", "fire", "retry", "run_now"])
@pytest.mark.parametrize(
    ("known", "why"),
    [
        (facts(schedule_state=None), "the schedule was deleted"),
        (facts(schedule_state=schedule_state(mode="deleted")), "the schedule was deleted"),
        (
            facts(schedule_state=schedule_state(generation=8)),
            "the schedule was replaced, or enabled again, since the job began",
        ),
    ],
)
def test_c13_a_deleted_or_replaced_schedule_starts_nothing(kind: str, known: Facts, why: str) -> None:
    assert decided(job(kind), known) == End("DROPPED", says(why))


@pytest.mark.parametrize("kind", ["gathering", "fire", "retry"])
def test_l3_a_disabled_schedule_starts_nothing(kind: str) -> None:
    assert decided(
        met() if kind == "gathering" else job(kind), facts(schedule_state=schedule_state(mode="disabled"))
    ) == End("DROPPED", says("the schedule was disabled"))


def test_l3_a_job_under_a_tombstone_is_dropped() -> None:
    assert decided(met(closed=True), facts()) == End("DROPPED", says("the schedule was disabled"))


def test_l11_run_now_passes_on_a_disabled_schedule() -> None:
    assert isinstance(decided(job("run_now"), facts(schedule_state=schedule_state(mode="disabled"))), Launch)


def test_a_job_whose_workflow_is_gone_is_aborted() -> None:
    assert decided(met(), facts(workflow=None)) == End("ABORTED", says(f"workflow {NAME} no longer exists"))
    assert decided(met(), facts(schedule=None)) == End("ABORTED", says("workflow unknown no longer exists"))


# -- the trigger and the timeout -----------------------------------------------------------------------------------


def test_t7_a_met_job_is_launched_with_its_events_as_the_reason() -> None:
    decision = decided(met(), facts())
    assert isinstance(decision, Launch)
    assert decision.why.text == f"trigger met: {COME}"
    assert [ask.limit_name for ask in decision.asks] == [LIMIT, EMR_LIMIT]


def test_t1_a_due_fire_is_launched() -> None:
    assert decided(job("fire", due_at=NOON), facts()) == Launch(
        asks_of(schedule(), workflow(), RATE, "demo"), says("due")
    )


def test_c8_an_unmet_trigger_waits_for_events_or_its_timeout() -> None:
    why = f"waits for 1 partition of demo.flights ({COME})"
    assert decided(HALF, facts(schedule=schedule(TWO))) == Wait(NOON + DAY, "PENDING_TRIGGER", says(why))
    assert decided(HALF, facts(schedule=schedule(TWO, timeout="never"))) == Wait(None, "PENDING_TRIGGER", says(why))


def test_c10_a_job_not_launched_in_time_is_aborted_with_reason() -> None:
    short = facts(schedule=schedule(TWO, timeout={"after": "90m"}))
    assert isinstance(decided(HALF, short, NOON + 90 * MINUTE - 1), Wait)
    assert decided(HALF, short, NOON + 90 * MINUTE) == End(
        "ABORTED", says("not launched within its timeout of 1h 30m: waits for 1 partition of demo.flights")
    )


def test_c10_a_job_found_after_its_timeout_says_so() -> None:
    assert decided(met(), facts(), NOON + DAY) == End(
        "ABORTED", says("not launched within its timeout of 1d: it was not checked in time")
    )


def test_c10_a_timeout_of_never_is_never_exceeded() -> None:
    assert isinstance(decided(met(), facts(schedule=schedule(timeout="never")), NOON + 1000 * DAY), Launch)


def test_c10_run_anyway_overrides_the_trigger_but_not_the_limits() -> None:
    anyway = schedule(TWO, timeout={"after": "1h", "then": "run"}, constraints=[concurrency(1)])
    full = {LIMIT: LimitState(LIMIT, active=1)}

    decision = decided(HALF, facts(schedule=anyway, limit_states=full), NOON + HOUR)

    assert isinstance(decision, Launch)
    assert decision.why.text == "run in spite of its timeout: waits for 1 partition of demo.flights"
    assert decision.asks == (Slots(LIMIT, 1), Pace(EMR_LIMIT, RATE.spacing, RATE.burst))


def test_c10_run_anyway_never_overtakes_a_queue() -> None:
    queued = replace(HALF, queued_in=LIMIT, rank="5")
    known = limited(1, active=1, trigger=TWO, timeout={"after": "1h", "then": "run"})
    decision = decided(queued, known, NOON + HOUR)
    assert decision == Wait(
        None, "PENDING_LAUNCH", says("waits for a slot of workflow demo.flights.clean: 1 of 1 in use")
    )
    assert isinstance(decided(queued, known, NOON + HOUR, serving=LIMIT), Launch)


def test_c10_a_retry_has_no_timeout() -> None:
    assert isinstance(decided(job("retry"), facts(), NOON + 30 * DAY), Launch)


@pytest.mark.parametrize(
    ("waiting", "why"),
    [
        (met(kind="detached", sort_key="JOB#1"), f"trigger met: {COME}"),
        (job("run_now"), "run now"),
        (job("retry", attempt=3), "attempt 2 failed"),
    ],
)
@pytest.mark.parametrize("waited", ["", "waits for a slot of workflow demo.flights.clean: 1 of 1 in use"])
def test_h1_a_run_keeps_its_trigger_after_any_wait(waiting: Job, why: str, waited: str) -> None:
    decision = decided(replace(waiting, reason=says(waited)), facts())
    assert isinstance(decision, Launch)
    assert decision.why.text == why


# -- concurrency ---------------------------------------------------------------------------------------------------


def test_c1_abort_applies_when_active_runs_reach_the_limit() -> None:
    assert isinstance(decided(met(), limited(2, active=1, on_unmet="abort")), Launch)
    assert decided(met(), limited(2, active=2, on_unmet="abort")) == End(
        "ABORTED", says("at most 2 runs of the workflow at a time, else abort: 2 of 2 in use")
    )


def test_c1_a_job_with_wait_asks_for_a_slot_instead_of_aborting() -> None:
    decision = decided(met(), limited(2, active=2))
    assert isinstance(decision, Launch)
    assert decision.asks[0] == Slots(LIMIT, 2)


def test_c1_only_a_constraint_with_abort_aborts_at_its_own_limit() -> None:
    mixed = schedule(constraints=[concurrency(5, "abort"), concurrency(2, "wait")])
    assert isinstance(decided(met(), facts(schedule=mixed, limit_states={LIMIT: LimitState(LIMIT, active=2)})), Launch)
    assert decided(met(), facts(schedule=mixed, limit_states={LIMIT: LimitState(LIMIT, active=5)})) == End(
        "ABORTED", says("at most 5 runs of the workflow at a time, else abort: 5 of 5 in use")
    )


def test_c1_a_free_slot_that_others_wait_for_is_queued_for() -> None:
    assert isinstance(decided(met(), limited(2, active=1, on_unmet="abort", waiters=1)), Launch)


def test_c1_the_smallest_of_several_limits_applies() -> None:
    several = schedule(constraints=[concurrency(5, "wait"), concurrency(2, "wait")])
    assert asks_of(several, workflow(), RATE, "demo")[0] == Slots(LIMIT, 2)


def test_c1_runs_are_counted_even_where_none_is_refused() -> None:
    assert asks_of(schedule(), workflow(), RATE, "demo")[0] == Slots(LIMIT, None)


def test_w1_a_retry_waits_where_a_first_attempt_is_aborted() -> None:
    assert isinstance(decided(job("retry"), limited(1, active=1, on_unmet="abort")), Launch)


def test_c1_a_queued_job_is_not_aborted() -> None:
    queued = met(queued_in=EMR_LIMIT, rank="5", held=())
    assert isinstance(decided(queued, limited(1, active=1, on_unmet="abort")), Wait)


def test_c1_a_job_holding_its_slot_is_not_aborted_for_that_slot() -> None:
    assert isinstance(decided(met(held=(LIMIT,)), limited(1, active=1, on_unmet="abort")), Launch)


# -- when it is served ---------------------------------------------------------------------------------------------


def test_w2_a_job_that_queues_waits_until_it_is_served() -> None:
    queued = met(queued_in=LIMIT, rank="5")
    known = limited(1, active=0, waiters=3)
    why = "waits for a slot of workflow demo.flights.clean: 0 of 1 in use"
    assert decided(queued, known) == Wait(NOON + DAY, "PENDING_LAUNCH", says(why))
    assert decided(queued, known, serving="workflow:another") == decided(queued, known)
    assert isinstance(decided(queued, known, serving=LIMIT), Launch)


def test_e8_a_job_that_queues_at_a_pace_shows_the_pace() -> None:
    known = facts(limit_states={EMR_LIMIT: LimitState(EMR_LIMIT, waiters=2)})
    decision = decided(met(queued_in=EMR_LIMIT, rank="5", held=(LIMIT,)), known)
    why = "waits for a permit of the EMR start rate of this account: one start every 1s, burst 20"
    assert decision == Wait(NOON + DAY, "PENDING_LAUNCH", says(why))


def test_a_job_in_a_queue_that_it_no_longer_needs_goes_on() -> None:
    assert isinstance(decided(met(queued_in="emr:app-before", rank="5"), facts()), Launch)


def test_c10_a_queue_does_not_stop_a_timeout() -> None:
    queued = met(queued_in=LIMIT, rank="5", reason="waits for a slot")
    assert decided(queued, limited(1, active=1), NOON + DAY) == End(
        "ABORTED", says("not launched within its timeout of 1d: waits for a slot")
    )


# -- one pending job per schedule ----------------------------------------------------------------------------------


def test_c11_a_fire_joins_the_waiting_job() -> None:
    waiting = replace(job("fire", sort_key="GATHERING"), job_id=f"{NAME}.7.waiting")
    assert decided(job("fire"), facts(gathering=waiting)) == Coalesce(
        says(f"joined job {NAME}.7.waiting, which was still waiting")
    )


def test_c11_a_waiting_job_does_not_join_itself() -> None:
    waiting = job("fire", sort_key="GATHERING")
    assert isinstance(decided(waiting, facts(gathering=waiting)), Launch)


def test_o3_a_fire_written_again_while_it_waits_joins_not_itself() -> None:
    waiting = job("fire", sort_key="GATHERING")
    assert decided(job("fire"), facts(gathering=waiting)) == Duplicate(says("duplicate: this fire is already waiting"))


@pytest.mark.parametrize("kind", ["retry", "run_now"])
def test_c11_retries_and_run_now_are_separate_jobs(kind: str) -> None:
    assert isinstance(decided(job(kind), facts(gathering=met())), Launch)


# -- targets -------------------------------------------------------------------------------------------------------


def test_c1_a_target_without_a_lifecycle_needs_no_permit() -> None:
    assert decided(job("fire"), facts(workflow=workflow(SQS))) == Launch((), says("due"))


def test_e8_workflow_with_its_own_application_uses_account_pace() -> None:
    own = workflow(EMR | {"application_id": "app-2"})
    assert asks_of(schedule(), own, RATE, "demo")[1] == Pace(EMR_LIMIT, RATE.spacing, RATE.burst)
