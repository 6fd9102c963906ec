"""What a claim, a queue and an end write to the limits: rates, gaps, and the starts that they remember (C1, C4, C5,
C10).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.instants import DAY, HOUR, MINUTE
from chalicelib.core.jobs import claim
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.permits import Pace, RateWindow, Slots
from chalicelib.core.limits.route import Route
from chalicelib.core.limits.writes import AcquirePermit, Ended, JoinQueue, LeaveQueue, RecordStart, ReleasePermit
from chalicelib.core.rows import limit
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import Failures
from chalicelib.core.runs import complete
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import CountFailure, DeleteJob, Put, RemoveWaiter, Replace, Write
from tests.core.builders import (
    EMR_LIMIT,
    LIMIT,
    NAME,
    NOON,
    QUIET,
    came,
    concurrency,
    facts,
    job,
    met,
    run,
    schedule,
)
from tests.core.builders import RATE as START_RATE
from tests.support.reasons import says

RATE: dict[str, Any] = {"type": "rate", "max": 2, "per": "hour"}
RATE_LIMIT = f"rate:{NAME}:2/{HOUR}"
LOG = RateWindow(RATE_LIMIT, 2, HOUR)
NOT_BINDING = replace(LOG, binding=False)
SLOT, PACE = Slots(LIMIT, None), Pace(EMR_LIMIT, START_RATE.spacing, START_RATE.burst)
RUN = f"{NAME}.7.first#001"  # the holder under which a limit remembers the run
HELD = met(queued_in=EMR_LIMIT, rank="4#x", held=(RATE_LIMIT, LIMIT))
WAITER = limit.Waiter(EMR_LIMIT, "4#x", NAME, 7, HELD.sort_key, HELD.job_id)
RECORD = Record(f"{NAME}.7.first", "DROPPED", NAME, 7, says("the schedule was deleted"), NOON)


def limited(*constraints: dict[str, Any], **states: LimitState) -> Facts:
    made = schedule(constraints=list(constraints))
    return facts(schedule=made, limit_states={state.limit_name: state for state in states.values()})


def permits(plan: list[Write]) -> list[tuple[str, str | None]]:
    return [(write.ask.limit_name, write.begins) for write in plan if isinstance(write, AcquirePermit)]


def begun(plan: list[Write]) -> list[str]:
    return [write.ask.limit_name for write in plan if isinstance(write, RecordStart)]


# -- claim ---------------------------------------------------------------------------------------------------------


def test_c5_a_claim_enters_its_start_in_every_rate_as_read() -> None:
    log = LimitState(RATE_LIMIT, rev=3, starts={"other#001": NOON - MINUTE})
    plan = claim.claim(met(), run(), limited(RATE, log=log), Route((LOG, SLOT, PACE), None), NOON)
    assert permits(plan) == [(RATE_LIMIT, RUN), (LIMIT, RUN), (EMR_LIMIT, RUN)]
    assert AcquirePermit(LOG, NOON, log, from_queue=False, begins=RUN) in plan


def test_c9_a_claim_records_its_start_in_limits_held_in_queue() -> None:
    known = limited(RATE, concurrency(2, "wait") | {"group": "spark"})
    held = replace(HELD, held=(RATE_LIMIT, "group:demo.spark", LIMIT))
    plan = claim.claim(held, run(), known, Route((PACE,), None), NOON)
    assert permits(plan) == [(EMR_LIMIT, RUN)]
    assert begun(plan) == [RATE_LIMIT, "group:demo.spark", LIMIT]


def test_c4_the_gap_of_a_held_slot_is_expected_as_it_was_read() -> None:
    busy = LimitState(LIMIT, active=1, rev=8)
    known = limited({"type": "since_last_run", "at_least": "1h"}, busy=busy)
    plan = claim.claim(replace(HELD, held=(LIMIT,)), run(), known, Route((PACE,), None), NOON)
    assert RecordStart(Slots(LIMIT, None, HOUR), NOON, busy, RUN, numbers=True) in plan


def test_w1_each_attempt_is_a_start_of_its_own() -> None:
    plan = claim.claim(job("retry", attempt=2), run(), limited(RATE), Route((LOG, SLOT), None), NOON)
    assert permits(plan) == [(RATE_LIMIT, f"{NAME}.7.first#002"), (LIMIT, f"{NAME}.7.first#002")]
    assert ids.attempt_of(ids.holder_of("a.b.c#d", 12)) == ("a.b.c#d", 12)


def test_t12_a_revocable_match_is_claimed_only_as_it_was_read() -> None:
    def taken_out(what: Job, known: Facts) -> DeleteJob:
        [out, *_] = claim.claim(what, run(), known, Route((), None), NOON)
        assert isinstance(out, DeleteJob)
        return out

    quiet = facts(schedule=schedule(QUIET))
    waiting = job(leaves={"0": came()}, met_at=NOON)
    assert taken_out(waiting, quiet).exact
    assert not taken_out(replace(waiting, queued_in=LIMIT, rank="5"), quiet).exact, "what queues is settled"
    assert not taken_out(replace(waiting, kind="detached"), quiet).exact
    assert not taken_out(met(), facts()).exact, "a steady stream of events must not starve a claim"


# -- queue ---------------------------------------------------------------------------------------------------------


def test_c5_a_job_that_waits_for_its_rate_keeps_no_slot() -> None:
    used_up = LimitState(RATE_LIMIT, rev=2, starts={"a": NOON - 20 * MINUTE, "b": NOON - 10 * MINUTE})
    known = limited(RATE, concurrency(1, "wait"), log=used_up)

    route = limit_route.route(known.asks("demo"), (), known.limit_states, NOON, None)
    plan = claim.queue(met(), known, route, NOON)

    assert route == Route((), LOG)
    assert permits(plan) == []
    [queued] = [write.row for write in plan if isinstance(write, Replace)]
    assert isinstance(queued, Job)
    assert (queued.held, queued.queued_in) == ((), RATE_LIMIT)


def test_c5_a_job_queued_behind_its_rate_keeps_its_rate_entry() -> None:
    plan = claim.queue(met(), limited(RATE), Route((LOG, SLOT), PACE), NOON)
    assert permits(plan) == [(RATE_LIMIT, RUN), (LIMIT, None)]
    [queued] = [write.row for write in plan if isinstance(write, Replace)]
    assert isinstance(queued, Job)
    assert (queued.held, queued.queued_in) == ((RATE_LIMIT, LIMIT), EMR_LIMIT)


def test_c5_rate_that_only_counts_records_starts_not_queued_jobs() -> None:
    plan = claim.queue(met(), limited(), Route((NOT_BINDING, SLOT), PACE), NOON)
    assert permits(plan) == [(LIMIT, None)]
    [queued] = [write.row for write in plan if isinstance(write, Replace)]
    assert isinstance(queued, Job)
    assert queued.held == (LIMIT,)
    # When it is served, it reaches that rate window again, and acquires its entry, too.
    route = limit_route.route((NOT_BINDING, SLOT, PACE), queued.held, {}, NOON, EMR_LIMIT)
    assert route == Route((NOT_BINDING, PACE), None, appointment=NOON)


def test_c5_a_full_rate_is_queued_at_and_served_when_free() -> None:
    log = LimitState(RATE_LIMIT, rev=3, starts={"a": NOON - 20 * MINUTE, "b": NOON - 10 * MINUTE})
    plan = claim.queue(met(), limited(RATE, log=log), Route((), LOG), NOON)
    assert JoinQueue(LOG, NOON, NOON + 40 * MINUTE, rev=3) in plan


# -- out of a queue ------------------------------------------------------------------------------------------------


def test_c5_a_dropped_job_returns_its_rate_entry_unspent() -> None:
    states = {
        RATE_LIMIT: LimitState(RATE_LIMIT, rev=3, starts={RUN: NOON}, waiters=1),
        LIMIT: LimitState(LIMIT, active=1),
    }
    assert claim.drop_plan(HELD, [Put(RECORD)], states, NOON)[2:] == [
        RemoveWaiter(WAITER),
        LeaveQueue(EMR_LIMIT),
        ReleasePermit(RATE_LIMIT, NOON, Ended(RUN, states[RATE_LIMIT])),
        ReleasePermit(LIMIT, None),
    ]


def test_c8_a_job_that_yields_leaves_its_queue_and_its_permits() -> None:
    later = replace(HELD, rev=2, state="PENDING_CONSTRAINTS", wake_at=NOON + HOUR, reason=says("waits for the night"))
    plan = claim.yield_queue(HELD, later, {}, NOON)
    assert plan[0] == Replace(replace(later, held=(), queued_in=None, rank=None))
    assert plan[1:3] == [RemoveWaiter(WAITER), LeaveQueue(EMR_LIMIT)]
    assert [write.limit_name for write in plan[3:] if isinstance(write, ReleasePermit)] == [RATE_LIMIT, LIMIT]


# -- the end of a run ----------------------------------------------------------------------------------------------


def ended(state: Any, before: Any = None, **fields: Any) -> list[Write]:
    before = before or run("RUNNING", permits=(RATE_LIMIT, "group:demo.spark", LIMIT, EMR_LIMIT), **fields)
    step = complete.advance(before, RunUpdate(state, NOON + 5), NOON + MINUTE, None)
    assert step is not None
    return complete.plan(before, step, {}, NOON + MINUTE)


def test_c4_a_limit_records_the_times_of_successes_only() -> None:
    success = Ended(RUN, LimitState(LIMIT), started_at=NOON, succeeded_at=NOON + MINUTE)
    assert ReleasePermit(LIMIT, None, success) in ended("SUCCEEDED")
    assert ReleasePermit(LIMIT, None, Ended(RUN, LimitState(LIMIT))) in ended("FAILED")
    assert ReleasePermit(LIMIT, None, Ended(RUN, LimitState(LIMIT))) in ended("CANCELLED")


def test_c1_finished_run_releases_slots_but_keeps_its_rate_entry() -> None:
    back = [write.limit_name for write in ended("SUCCEEDED") if isinstance(write, ReleasePermit)]
    assert back == ["group:demo.spark", LIMIT]


def test_l19_failures_in_a_row_are_counted_and_success_resets_it() -> None:
    assert CountFailure(NAME) in ended("FAILED", pause_after=3)
    assert Put(Failures(NAME, 0)) in ended("SUCCEEDED", pause_after=3)
    for plan in (ended("CANCELLED", pause_after=3), ended("FAILED"), ended("SUCCEEDED")):
        assert not [write for write in plan if isinstance(write, CountFailure | Put)]


def test_l19_a_failed_attempt_that_is_retried_is_no_failure_yet() -> None:
    before = run("RUNNING", attempts=2, pause_after=3)
    step = complete.advance(before, RunUpdate("FAILED", NOON), NOON, 1_000)
    assert step is not None
    assert not [write for write in complete.plan(before, step, {}, NOON) if isinstance(write, CountFailure)]


def test_l19_run_remembers_how_many_failures_its_schedule_allows() -> None:
    made = claim.build_run(met(), facts(schedule=schedule(pause_after_failures=3)), (), "", NOON)
    assert made.pause_after == 3


def test_h1_backfill_job_launched_at_once_has_waited_for_nothing() -> None:
    at_once = job("backfill", reason="backfill b1", due_at=NOON - DAY, backfill="b1")
    assert claim.waited_for(at_once, NOON).text == ""
    assert claim.waited_for(replace(at_once, rev=2, reason=says("waits for a slot")), NOON).text == "waits for a slot"
