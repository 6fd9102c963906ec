"""Decisions in edge cases: requests larger than a pool, locked matches, backfills, and what fired a job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import DAY, HOUR, MINUTE, iso
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.check import (
    Abort,
    Drop,
    Duplicate,
    Expire,
    Launch,
    Skip,
    Wait,
    decide,
    is_prepared,
    verdict_of,
)
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import permits, slots
from chalicelib.core.limits.pace import Pace
from chalicelib.core.limits.rate_window import RateWindow
from chalicelib.core.limits.slots import Slots
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import (
    EMR_LIMIT,
    LIMIT,
    NAME,
    NOON,
    PARTITION,
    QUIET,
    RATE,
    WEATHER,
    all_of,
    came,
    concurrency,
    facts,
    job,
    met,
    schedule,
    schedule_state,
)
from tests.support.reasons import says

POOL = "pool:demo.p"
PACE = Pace(EMR_LIMIT, RATE.spacing, RATE.burst)
TWO = PARTITION | {"count": 2}
HOURLY: dict[str, Any] = {"type": "rate", "max": 1, "per": "hour"}
RATE_LIMIT = f"rate:{NAME}:1/{HOUR}"
COME = f"1 partition of demo.flights came at {iso(NOON)}"


def pooled(units: int, limit: int = 4, **fields: Any) -> Facts:
    state = {POOL: LimitState(POOL, active=1)}
    return facts(pool=Slots(POOL, limit, units=units), limit_states=state, **fields)


def backfill(state: Any = "RUNNING", **fields: Any) -> Backfill:
    kept = {"plan": "p", "total": 3, "first": "1", "last": "3", "order": "oldest", "concurrency": 1}
    return Backfill(NAME, "b1", 7, 1, state, **{**kept, "created_at": NOON, **fields})


# -- requests larger than the pool (W3) ----------------------------------------------------------------------------


@pytest.mark.parametrize(("queued_in", "yields"), [(None, False), (POOL, True)])
def test_w3_job_larger_than_its_pool_yields_and_is_checked_again(queued_in: str | None, yields: bool) -> None:
    known = pooled(5)
    decision = decide(met(queued_in=queued_in, rank="5" if queued_in else None), known, NOON, serving=queued_in)
    why = permits.why(known.pool, known.limit_state(POOL))
    assert "more than the whole pool: request less, or enlarge the pool" in why.text
    assert decision == Wait(NOON + slots.TOO_LARGE, "PENDING_CONSTRAINTS", why, yields=yields)


def test_w3_a_job_too_large_is_checked_at_an_earlier_timeout() -> None:
    known = pooled(5, schedule=schedule(timeout={"after": "5m", "then": "abort"}))
    decision = decide(met(), known, NOON)
    assert isinstance(decision, Wait)
    assert decision.until == NOON + 5 * MINUTE


def test_w3_job_holding_units_is_not_too_large_for_reduced_pool() -> None:
    known = pooled(5)
    decision = decide(met(held=(LIMIT, POOL), units=5), known, NOON)
    assert isinstance(decision, Launch)
    assert isinstance(decide(met(), pooled(4), NOON), Launch)


def test_w3_a_job_with_a_changed_number_of_units_asks_again() -> None:
    decision = decide(met(held=(LIMIT, POOL), units=2), pooled(3), NOON)
    assert isinstance(decision, Wait)
    assert (decision.until, decision.state, decision.yields) == (NOON, "PENDING_CONSTRAINTS", True)
    assert isinstance(decide(met(held=(LIMIT, POOL), units=3), pooled(3), NOON), Launch)


# -- limits --------------------------------------------------------------------------------------------------------


def test_w2_job_that_queues_shows_whom_it_inherits_priority_from() -> None:
    full = facts(schedule=schedule(constraints=[concurrency(1)]), limit_states={LIMIT: LimitState(LIMIT, active=1)})
    waits = "waits for a slot of workflow demo.flights.clean: 1 of 1 in use"
    queued = met(queued_in=LIMIT, rank="5")
    assert decide(queued, full, NOON) == Wait(NOON + DAY, "PENDING_LAUNCH", says(waits))
    inherited = "priority 7, inherited from demo.flights.report"
    assert decide(replace(queued, inherited=says(inherited)), full, NOON) == Wait(
        NOON + DAY, "PENDING_LAUNCH", says(f"{waits}; {inherited}")
    )


def rated(starts: dict[str, int]) -> Facts:
    made = schedule(constraints=[HOURLY | {"on_unmet": "wait"}])
    return facts(schedule=made, limit_states={RATE_LIMIT: LimitState(RATE_LIMIT, starts=starts)})


def test_c5_a_rate_entry_is_kept_for_its_job_and_lost_to_another() -> None:
    held = met(held=(RATE_LIMIT,))
    own = f"{held.job_id}#001"
    assert isinstance(decide(held, rated({own: NOON - MINUTE}), NOON), Launch)
    decision = decide(held, rated({own: NOON - MINUTE, "other#001": NOON - MINUTE}), NOON)
    ask = RateWindow(RATE_LIMIT, 1, HOUR)
    state = LimitState(RATE_LIMIT, starts={own: NOON - MINUTE, "other#001": NOON - MINUTE})
    why = f"the rate limit was reached while this job was queued: {permits.why(ask, state).text}"
    assert decision == Wait(NOON, "PENDING_CONSTRAINTS", says(why), yields=True)


def test_c5_a_held_limit_is_never_out_of_order_with_itself() -> None:
    full = facts(schedule=schedule(constraints=[concurrency(2)]))
    assert decide(met(held=(LIMIT,)), full, NOON) == Launch((Slots(LIMIT, 2), PACE), says(f"trigger met: {COME}"))
    again = decide(met(held=(EMR_LIMIT,)), full, NOON)
    assert isinstance(again, Wait)
    assert again.yields


# -- a locked match ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "queued_in", "is_met"),
    [
        (TWO, None, True),
        (TWO, LIMIT, True),
        (all_of(QUIET, PARTITION), None, False),
        (all_of(QUIET, PARTITION), LIMIT, True),
    ],
)
def test_t12_a_met_trigger_stays_met_unless_time_can_undo_it(
    trigger: dict[str, Any], queued_in: str | None, is_met: bool
) -> None:
    """A locked match reports nothing as missing, although its leaves alone would not meet it."""
    made = schedule(trigger)
    leaves = {"0": came(last=NOON), "1": came()}
    found = verdict_of(met(leaves=leaves, queued_in=queued_in), made, NOON)
    assert found is not None
    assert found.met is is_met
    assert (found.missing == ()) is is_met
    open_one = verdict_of(met(leaves=leaves, met_at=None, queued_in=queued_in), made, NOON)
    assert open_one is not None
    assert not open_one.met
    assert verdict_of(job("fire"), made, NOON) is None


def test_t14_an_expired_partial_match_is_removed_with_its_reason() -> None:
    made = schedule(all_of(PARTITION, WEATHER, within="1h"))
    half = job(leaves={"0": came()})
    assert isinstance(decide(half, facts(schedule=made), NOON + HOUR - 1), Wait)
    late = NOON + HOUR + 1
    assert decide(half, facts(schedule=made), late) == Expire(says(gather.expiry(half, made, late).reason.text))


# -- what fired it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (job("run_now"), "run now"),
        (job("run_now", due_at=NOON - HOUR), f"run requested for {iso(NOON - HOUR)}"),
        (job("redrive"), "delivered again on request"),
        (job("retry", attempt=3), "attempt 2 failed"),
        (job("fire", due_at=NOON), "due"),
        (job("detached", leaves={"0": came()}), f"trigger met: {COME}"),
        (met(), f"trigger met: {COME}"),
    ],
)
def test_c14_a_launch_says_what_fired_it(what: Any, why: str) -> None:
    decision = decide(what, facts(), NOON)
    assert isinstance(decision, Launch)
    assert decision.why.text == why


def test_c14_a_backlog_names_all_its_events() -> None:
    made = schedule(all_of(PARTITION, WEATHER))
    decision = decide(job("detached", leaves={"0": came(), "1": came()}), facts(schedule=made), NOON)
    assert isinstance(decision, Launch)
    assert decision.why.text == f"trigger met: {COME}; 1 partition of demo.weather came at {iso(NOON)}"


def test_c14_backlog_job_shows_its_events_however_old_its_quiet() -> None:
    made = schedule(all_of(QUIET, WEATHER))
    decision = decide(job("detached", leaves={"0": came(), "1": came()}), facts(schedule=made), NOON + HOUR)
    assert isinstance(decision, Launch)
    assert decision.why.text.startswith("trigger met: ")
    assert decision.why.text.endswith(f"; 1 partition of demo.weather came at {iso(NOON)}")


# -- backfills (L12) -----------------------------------------------------------------------------------------------


def test_l12_a_backfill_job_launches_while_its_backfill_runs() -> None:
    part = job("backfill", backfill="b1")
    decision = decide(part, facts(backfill=backfill()), NOON)
    assert isinstance(decision, Launch)
    assert decision.why.text == "backfill b1"
    assert decide(part, facts(), NOON) == Drop(says("the backfill of this job no longer exists"))
    over = backfill("CANCELLED", reason="cancelled by ann")
    assert decide(part, facts(backfill=over), NOON) == Drop(says("cancelled by ann"))


@pytest.mark.parametrize("kind", ["backfill", "retry"])
def test_l12_no_pause_of_the_schedule_stops_its_backfill(kind: str) -> None:
    on_hold = facts(backfill=backfill(), schedule_state=schedule_state(mode="hold"))
    assert isinstance(decide(job(kind, backfill="b1"), on_hold, NOON), Launch)
    assert isinstance(
        decide(job(kind, backfill="b1"), replace(on_hold, schedule_state=schedule_state(mode="disabled")), NOON), Launch
    )


# -- fires ---------------------------------------------------------------------------------------------------------


def test_l19_an_occurrence_is_skipped_by_nominal_not_due_instant() -> None:
    spread = job("fire", nominal_at=NOON - HOUR, due_at=NOON)
    skipped = Skip(says(f"the occurrence of {iso(NOON - HOUR)} was skipped on request"))
    assert decide(spread, facts(schedule_state=schedule_state(skips=(NOON - HOUR,))), NOON) == skipped
    assert isinstance(decide(spread, facts(schedule_state=schedule_state(skips=(NOON,))), NOON), Launch)
    plain = job("fire", due_at=NOON)
    assert decide(plain, facts(schedule_state=schedule_state(skips=(NOON,))), NOON) == Skip(
        says(f"the occurrence of {iso(NOON)} was skipped on request")
    )


def test_o3_a_fire_that_already_waits_elsewhere_is_a_duplicate() -> None:
    waiting = job("fire", sort_key="JOB#1")
    assert not is_prepared(waiting)
    duplicate = Duplicate(says("duplicate: this fire is already waiting"))
    assert decide(job("fire"), facts(gathering=waiting), NOON) == duplicate
    assert isinstance(decide(job("fire"), facts(gathering=replace(waiting, closed=True)), NOON), Launch)


# -- timeouts (C10) ------------------------------------------------------------------------------------------------


def test_c10_an_abort_names_the_timeout_and_the_awaited_event() -> None:
    made = schedule(TWO, timeout={"after": "2h", "then": "abort"})
    half = job(leaves={"0": came()})
    why = "not launched within its timeout of 2h: it was not checked in time"
    assert decide(half, facts(schedule=made), NOON + 2 * HOUR) == Abort(says(why))
    answer = replace(half, reason=says("waits for data"))
    assert decide(answer, facts(schedule=made), NOON + 2 * HOUR) == Abort(
        says(why.partition(": ")[0] + ": waits for data")
    )


def test_c10_on_hold_a_job_waits_for_its_timeout_or_the_resume() -> None:
    held = schedule_state(mode="hold", mode_at=NOON, reason="maintenance")
    why = f"the schedule has been paused (hold) since {iso(NOON)} (maintenance)"
    aborts = facts(schedule_state=held, schedule=schedule(timeout={"after": "2h", "then": "abort"}))
    assert decide(met(), aborts, NOON) == Wait(NOON + 2 * HOUR, "PENDING_CONSTRAINTS", says(why))
    assert decide(met(queued_in=LIMIT), aborts, NOON) == Wait(
        NOON + 2 * HOUR, "PENDING_CONSTRAINTS", says(why), yields=True
    )
    runs = facts(schedule_state=held, schedule=schedule(timeout={"after": "2h", "then": "run"}))
    assert decide(met(), runs, NOON + 2 * HOUR) == Wait(None, "PENDING_CONSTRAINTS", says(why))
    silent = facts(schedule_state=replace(held, reason=""), schedule=schedule(timeout="never"))
    assert decide(met(), silent, NOON) == Wait(
        None, "PENDING_CONSTRAINTS", says(f"the schedule has been paused (hold) since {iso(NOON)}")
    )
