"""The order in which constraints are evaluated: those that wait, those that abort, then the limits (C4, C5, C7, C8,
C10, W1).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant
from chalicelib.core.jobs.check import Abort, Expire, Launch, Wait, decide
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits.pace import Pace
from chalicelib.core.limits.rate_window import RateWindow
from chalicelib.core.limits.slots import Slots
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import (
    EMR_LIMIT,
    LIMIT,
    NAME,
    NOON,
    PARTITION,
    QUIET,
    WEATHER,
    all_of,
    came,
    concurrency,
    facts,
    job,
    met,
    schedule,
)
from tests.core.builders import RATE as START_RATE
from tests.support.reasons import says

NIGHT: dict[str, Any] = {"type": "time_window", "start": "22:00", "end": "06:00"}
DELAY: dict[str, Any] = {"type": "delay", "after": "15m"}
FRESH: dict[str, Any] = {"type": "fresh", "workflows": ["demo.flights.raw"], "within": "1d", "on_unmet": "wait"}
GAP: dict[str, Any] = {"type": "since_last_run", "at_least": "1h"}
RATE: dict[str, Any] = {"type": "rate", "max": 1, "per": "hour"}
RATE_LIMIT = f"rate:{NAME}:1/{HOUR}"
LOG = RateWindow(RATE_LIMIT, 1, HOUR)
PACE = Pace(EMR_LIMIT, START_RATE.spacing, START_RATE.burst)
TEN_HOURS = NOON + 10 * HOUR  # when the night begins
BUSY = LimitState(LIMIT, active=1, starts={"r#001": NOON - MINUTE}, last_start=NOON - MINUTE)
FULL = LimitState(RATE_LIMIT, rev=1, starts={"r#001": NOON - MINUTE})


def known(*constraints: dict[str, Any], limit_states: tuple[LimitState, ...] = (BUSY, FULL), **fields: Any) -> Facts:
    """Facts of a workflow that runs, started a minute ago, and has used up its rate, so each constraint
    can be unmet.
    """
    made = schedule(constraints=list(constraints), **fields)
    return facts(schedule=made, limit_states={each.limit_name: each for each in limit_states})


def words(decision: Any) -> list[str]:
    return [part.split(",")[0] for part in decision.why.text.split("; ")]


# -- the order -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constraints", list(permutations([NIGHT, GAP, concurrency(1), RATE])))
def test_c8_a_job_that_waits_for_the_night_is_not_aborted_by_day(constraints: tuple[dict[str, Any], ...]) -> None:
    decision = decide(met(), known(*constraints), NOON)
    assert isinstance(decision, Wait)
    assert (decision.until, decision.state) == (TEN_HOURS, "PENDING_CONSTRAINTS")
    assert words(decision) == ["between 22:00 and 06:00 in UTC"]


def test_c4_an_aborting_constraint_aborts_before_any_limit() -> None:
    decision = decide(met(), known(NIGHT, RATE, GAP, timeout="never"), TEN_HOURS)
    assert isinstance(decision, Launch), "the gap is over by then"

    decision = decide(met(), known(RATE, GAP, concurrency(1)), NOON)
    assert isinstance(decision, Abort)
    assert words(decision) == ["1h since the last successful run started", "at most 1 run of the workflow at a time"]


@pytest.mark.parametrize("constraint", [RATE, concurrency(1, "wait"), concurrency(1, "cancel_other")])
def test_c8_a_job_that_needs_a_limit_asks_for_it(constraint: dict[str, Any]) -> None:
    assert isinstance(decide(met(), known(constraint), NOON), Launch)


def test_c5_a_rate_with_abort_aborts() -> None:
    decision = decide(met(), known(RATE | {"on_unmet": "abort"}), NOON)
    assert decision == Abort(says("at most 1 run per hour, else abort: not before 2026-03-02T12:59:00.000Z"))


@pytest.mark.parametrize(
    ("constraint", "why"),
    [
        (NIGHT, "between 22:00 and 06:00 in UTC, else abort: not before 2026-03-02T22:00:00.000Z"),
        (DELAY, "15m after the job was created, else abort: not before 2026-03-02T12:15:00.000Z"),
        (FRESH, "demo.flights.raw succeeded within 1d, else abort: demo.flights.raw has not succeeded yet"),
    ],
)
def test_c8_any_constraint_with_abort_aborts(constraint: dict[str, Any], why: str) -> None:
    assert decide(met(), known(constraint | {"on_unmet": "abort"}), NOON) == Abort(says(why))


# -- until when ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraints", "until"),
    [
        ([DELAY], NOON + 15 * MINUTE),
        ([DELAY, NIGHT], TEN_HOURS),  # a check before all are met would be useless
        ([GAP | {"on_unmet": "wait"}, DELAY], NOON + 59 * MINUTE),
        ([FRESH], NOON + DAY),  # an event wakes it; else its timeout
        ([FRESH, DELAY], NOON + 15 * MINUTE),
    ],
)
def test_c8_a_waiting_job_is_checked_when_time_may_have_met_it(
    constraints: list[dict[str, Any]], until: Instant
) -> None:
    decision = decide(met(), known(*constraints), NOON)
    assert isinstance(decision, Wait)
    assert decision.until == until
    assert len(words(decision)) == len(constraints), "the reason names all that it waits for"


def test_c10_a_wait_never_outlasts_the_timeout() -> None:
    short = known(NIGHT, timeout={"after": "2h"})
    decision = decide(met(), short, NOON)
    assert isinstance(decision, Wait)
    assert decision.until == NOON + 2 * HOUR
    waited = met(reason=decision.why.text)
    assert decide(waited, short, NOON + 2 * HOUR) == Abort(
        says(f"not launched within its timeout of 2h: {decision.why.text}")
    )


def test_c7_with_no_timeout_only_the_upstream_wakes_a_job() -> None:
    assert decide(met(), known(FRESH, timeout="never"), NOON) == Wait(
        None,
        "PENDING_CONSTRAINTS",
        says("demo.flights.raw succeeded within 1d, else wait: demo.flights.raw has not succeeded yet"),
    )


def test_t12_a_job_that_waits_for_quiet_is_checked_at_its_end() -> None:
    quiet = schedule(QUIET, timeout={"after": "30m"})
    waiting = job(leaves={"0": came(1, NOON)})
    decision = decide(waiting, facts(schedule=quiet), NOON + MINUTE)
    assert isinstance(decision, Wait)
    assert (decision.until, decision.state) == (NOON + 10 * MINUTE, "PENDING_TRIGGER")
    assert isinstance(decide(waiting, facts(schedule=quiet), NOON + 10 * MINUTE), Launch)


def test_t14_an_expired_match_is_distinguished_from_a_timeout() -> None:
    half = job(leaves={"0": came(1, NOON)})
    pair = facts(schedule=schedule(all_of(PARTITION, WEATHER, within="1h")))
    waiting = decide(half, pair, NOON + HOUR - 1)
    assert isinstance(waiting, Wait)
    assert waiting.until == NOON + HOUR
    assert isinstance(decide(half, pair, NOON + HOUR), Expire)
    both = job(leaves={"0": came(1, NOON), "1": came(1, NOON)}, met_at=NOON)
    assert isinstance(decide(both, pair, NOON + HOUR), Launch)


@pytest.mark.parametrize(("last", "decision"), [(0, Launch), (50, Launch), (51, Expire), (59, Expire)])
@pytest.mark.parametrize("late", [0, 90 * MINUTE])
def test_t14_what_time_completes_after_the_window_has_expired(last: int, decision: type, late: int) -> None:
    """Both came within the hour. Ten minutes without another chunk may still fall within the window, or
    not any more.
    """
    silent = facts(schedule=schedule(all_of(QUIET, WEATHER, within="1h")))
    waiting = job(leaves={"0": came(2, NOON, NOON + last * MINUTE), "1": came(1, NOON)})
    assert isinstance(decide(waiting, silent, NOON + HOUR + 10 * MINUTE + late), decision)


# -- in a queue ----------------------------------------------------------------------------------------------------


def test_c8_a_queued_job_is_judged_again_when_it_is_served() -> None:
    queued = met(queued_in=LIMIT, rank="5", held=())
    closing = known(NIGHT, concurrency(1, "wait"), timeout="never")
    assert decide(queued, closing, NOON) == Wait(
        None, "PENDING_LAUNCH", says("waits for a slot of workflow demo.flights.clean: 1 of 1 in use")
    )
    decision = decide(queued, closing, NOON, serving=LIMIT)
    assert isinstance(decision, Wait)
    assert (decision.until, decision.yields) == (TEN_HOURS, True)


def test_c1_a_served_job_is_not_aborted_for_slot_it_queues_for() -> None:
    queued = met(queued_in=LIMIT, rank="5")
    assert isinstance(decide(queued, known(concurrency(1)), NOON, serving=LIMIT), Launch)


def test_c4_a_served_job_is_aborted_for_a_run_started_meanwhile() -> None:
    queued = met(queued_in=EMR_LIMIT, rank="5", held=(LIMIT,))
    assert isinstance(decide(queued, known(GAP), NOON, serving=EMR_LIMIT), Abort)


@pytest.mark.parametrize("others", [0, 1])
def test_c5_a_rate_entry_is_void_if_others_used_up_the_rate(others: int) -> None:
    """The entry is two hours old, and the rate has allowed another start since."""
    own = {f"{NAME}.7.first#001": NOON - 2 * HOUR}
    log = LimitState(RATE_LIMIT, rev=2, starts=own | ({"r#001": NOON - MINUTE} if others else {}))
    queued = met(queued_in=EMR_LIMIT, rank="5", held=(RATE_LIMIT, LIMIT))

    decision = decide(queued, known(RATE, limit_states=(log,)), NOON, serving=EMR_LIMIT)

    if not others:
        assert isinstance(decision, Launch)
        return
    assert isinstance(decision, Wait)
    assert (decision.until, decision.state, decision.yields) == (NOON, "PENDING_CONSTRAINTS", True)
    assert decision.why.text.startswith(
        "the rate limit was reached while this job was queued: waits for the rate limit of workflow"
    )


# -- retries and timeouts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "until"),
    [
        (GAP, NOON + 59 * MINUTE),
        (RATE | {"on_unmet": "abort"}, NOON + 59 * MINUTE),
        (NIGHT | {"on_unmet": "abort"}, TEN_HOURS),
        (FRESH | {"on_unmet": "abort"}, None),
    ],
)
def test_w1_a_retry_waits_where_any_first_attempt_would_abort(constraint: dict[str, Any], until: Instant) -> None:
    assert isinstance(decide(met(), known(constraint), NOON), Abort)
    decision = decide(job("retry"), known(constraint), NOON)
    assert isinstance(decision, Wait)
    assert (decision.until, decision.state) == (until, "PENDING_CONSTRAINTS")


@pytest.mark.parametrize("constraint", [NIGHT, DELAY | {"after": "2d"}, FRESH, GAP | {"at_least": "2d"}])
def test_c10_run_anyway_overrides_waits_for_the_clock_or_facts(constraint: dict[str, Any]) -> None:
    late = known(constraint, timeout={"after": "1h", "then": "run"})
    waiting: Job = met(reason="waits for something")
    assert not isinstance(decide(waiting, late, NOON + HOUR - 1), Launch)
    decision = decide(waiting, late, NOON + HOUR)
    assert isinstance(decision, Launch)
    assert decision.why.text == "run in spite of its timeout: waits for something"
    assert decision.asks[0] == Slots(LIMIT, None), "no gap is held any more"


def test_c10_run_anyway_never_overrides_a_limit_or_a_rate() -> None:
    rules = (concurrency(1), RATE | {"on_unmet": "abort"}, GAP)
    late = known(*rules, timeout={"after": "1h", "then": "run"})
    decision = decide(met(reason="waits"), late, NOON + HOUR)
    assert isinstance(decision, Launch)
    assert decision.asks == (LOG, Slots(LIMIT, 1), PACE)
    queued = met(queued_in=LIMIT, rank="5", held=(RATE_LIMIT,))
    assert isinstance(decide(queued, late, NOON + HOUR), Wait)
    assert decide(replace(queued, queued_in=None, rank=None), late, NOON + HOUR) == Launch(
        (LOG, Slots(LIMIT, 1), PACE), says("run in spite of its timeout: ")
    )
