"""The evaluation of each constraint at an instant: met or not, its text, and when time alone meets it (C1-C5, C7)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.constraints.constraint import Condition
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, parse_instant
from chalicelib.core.jobs import check
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import LIMIT, NAME, NOON, concurrency, facts, job, met, schedule

GROUP_LIMIT = "group:demo.spark"
GROUP = concurrency(2, "wait") | {"group": "spark"}
DELAY: dict[str, Any] = {"type": "delay", "after": "15m"}
NIGHT: dict[str, Any] = {"type": "time_window", "start": "22:00", "end": "06:00"}
GAP: dict[str, Any] = {"type": "since_last_run", "at_least": "1h"}
RATE: dict[str, Any] = {"type": "rate", "max": 2, "per": "hour"}
RATE_LIMIT = f"rate:{NAME}:2/{HOUR}"
FRESH: dict[str, Any] = {
    "type": "fresh",
    "workflows": ["demo.flights.raw", "demo.flights.weather"],
    "within": "1d",
    "on_unmet": "wait",
}


def evaluate(
    constraint: dict[str, Any], now: Instant = NOON, what: Job | None = None, limit_states: Any = (), **known: Any
) -> Condition:
    made = schedule(constraints=[constraint])
    [condition] = check.conditions_of(
        what or met(),
        facts(schedule=made, limit_states={each.limit_name: each for each in limit_states}, **known),
        made,
        now,
    )
    return condition


def succeeded(raw: Instant | None, weather: Instant | None) -> dict[str, Any]:
    return {"successes": {"demo.flights.raw": raw, "demo.flights.weather": weather}}


# -- slots (C1) ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("active", "is_met"), [(0, True), (1, True), (2, False), (3, False)])
def test_c1_a_group_limit_is_met_while_fewer_of_its_runs_live(active: int, is_met: bool) -> None:
    condition = evaluate(GROUP, limit_states=[LimitState(GROUP_LIMIT, active=active), LimitState(LIMIT, active=9)])
    assert condition.met is is_met
    assert condition.why.text == f"at most 2 runs of group spark at a time, else wait: {active} of 2 in use"


def test_c1_a_group_belongs_to_the_namespace_of_the_schedule() -> None:
    elsewhere = met(schedule="sales.flights.clean")
    assert evaluate(GROUP, what=elsewhere, limit_states=[LimitState(GROUP_LIMIT, active=2)]).met
    assert not evaluate(GROUP, what=elsewhere, limit_states=[LimitState("group:sales.spark", active=2)]).met


def test_c1_a_job_holding_its_slot_does_not_block_itself() -> None:
    condition = evaluate(concurrency(1), what=met(held=(LIMIT,)), limit_states=[LimitState(LIMIT, active=1)])
    assert condition.met
    assert condition.why.text == "at most 1 run of the workflow at a time, else abort: this job holds a slot"


# -- delays (C2) ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "what", "opens"),
    [
        ("created", met(met_at=NOON + HOUR), NOON),
        ("created", job("fire"), NOON),
        ("met", met(met_at=NOON + HOUR), NOON + HOUR),
        ("met", met(met_at=NOON + HOUR, kind="detached"), NOON + HOUR),
        ("met", job("fire"), NOON),  # a job without a trigger was met when it was created
        ("met", job("run_now"), NOON),
        ("met", job("retry", created_at=NOON + DAY), NOON + DAY),
    ],
)
def test_c2_a_delay_counts_from_creation_or_from_the_match(since: str, what: Job, opens: Instant) -> None:
    until = opens + 15 * MINUTE
    before, after = (evaluate(DELAY | {"since": since}, now, what) for now in (until - 1, until))
    assert (before.met, before.until) == (False, until)
    assert (after.met, after.until) == (True, None)


def test_c2_a_delay_shows_from_when_it_counts_and_until_when() -> None:
    assert evaluate(DELAY).why.text == "15m after the job was created, else wait: not before 2026-03-02T12:15:00.000Z"
    since_met = evaluate(DELAY | {"since": "met"}, NOON + HOUR)
    assert since_met.why.text == "15m after its trigger was met, else wait: met"


# -- windows (C3) --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "zone", "opens"),
    [
        ("2026-03-02T21:59:59.999Z", "UTC", "2026-03-02T22:00:00Z"),
        ("2026-03-02T22:00:00Z", "UTC", None),
        ("2026-03-03T05:59:59.999Z", "UTC", None),
        ("2026-03-03T06:00:00Z", "UTC", "2026-03-03T22:00:00Z"),
        ("2026-03-02T16:29:59Z", "Asia/Kolkata", "2026-03-02T16:30:00Z"),
        ("2026-03-02T16:30:00Z", "Asia/Kolkata", None),
    ],
)
def test_c3_a_window_over_midnight_is_open_from_start_to_end(now: str, zone: str, opens: str | None) -> None:
    condition = evaluate(NIGHT | {"zone": zone}, parse_instant(now))
    assert condition.met is (opens is None)
    assert condition.until == (parse_instant(opens) if opens else None)


def test_c3_a_window_shows_when_it_opens() -> None:
    assert evaluate(NIGHT).why.text == "between 22:00 and 06:00 in UTC, else wait: not before 2026-03-02T22:00:00.000Z"


# -- since the last run (C4) ---------------------------------------------------------------------------------------

FAILED_LATER = LimitState(LIMIT, last_start=NOON, last_success_start=NOON - 2 * HOUR)


def test_c4_a_failed_run_counts_only_where_any_run_does() -> None:
    assert evaluate(GAP, limit_states=[FAILED_LATER]).met
    condition = evaluate(GAP | {"of": "any"}, limit_states=[FAILED_LATER])
    assert (condition.met, condition.until) == (False, NOON + HOUR)
    assert condition.why.text == "1h since the last run started, else abort: not before 2026-03-02T13:00:00.000Z"


def test_c4_an_active_run_counts_as_a_success() -> None:
    living = LimitState(LIMIT, active=1, starts={"r#001": NOON - 59 * MINUTE}, last_start=NOON - 59 * MINUTE)
    assert evaluate(GAP, limit_states=[living]).until == NOON + MINUTE
    assert evaluate(GAP, NOON + MINUTE, limit_states=[living]).met


def test_c4_the_first_run_of_all_does_not_wait() -> None:
    assert evaluate(GAP).met
    assert evaluate(GAP | {"of": "any"}).met


# -- rates (C5) ----------------------------------------------------------------------------------------------------


def test_c5_a_rate_is_unmet_until_the_nth_last_start_leaves_span() -> None:
    log = LimitState(RATE_LIMIT, starts={"a": NOON - 50 * MINUTE, "b": NOON - MINUTE})
    condition = evaluate(RATE, limit_states=[log])
    assert (condition.met, condition.until) == (False, NOON + 10 * MINUTE)
    assert condition.why.text == "at most 2 runs per hour, else wait: not before 2026-03-02T12:10:00.000Z"
    assert evaluate(RATE, NOON + 10 * MINUTE, limit_states=[log]).met
    assert evaluate(RATE, what=met(held=(RATE_LIMIT,)), limit_states=[log]).met, "its own start is one of them"


# -- freshness (C7) ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "weather", "stale"),
    [
        (NOON, NOON, ""),
        (NOON - DAY, NOON, ""),
        (NOON - DAY - 1, NOON, "demo.flights.raw last succeeded at 2026-03-01T11:59:59.999Z"),
        (NOON, None, "demo.flights.weather has not succeeded yet"),
        (None, None, "demo.flights.raw has not succeeded yet; demo.flights.weather has not succeeded yet"),
    ],
)
def test_c7_each_upstream_must_have_succeeded_within_the_span(
    raw: Instant | None, weather: Instant | None, stale: str
) -> None:
    condition = evaluate(FRESH, **succeeded(raw, weather))
    rule = "demo.flights.raw, demo.flights.weather succeeded within 1d, else wait"
    assert condition.met is (not stale)
    assert condition.why.text == f"{rule}: {stale or 'met'}"
    assert condition.until is None, "no clock brings a success: its event wakes the job"


# -- the effect of an unmet constraint -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "waits", "aborts"),
    [
        (concurrency(1), False, True),
        (concurrency(1, "wait"), False, False),  # it waits in the queue of its limit
        (concurrency(1, "cancel_other"), False, False),
        (DELAY, True, False),
        (DELAY | {"on_unmet": "abort"}, False, True),
        (NIGHT, True, False),
        (GAP, False, True),
        (GAP | {"on_unmet": "wait"}, True, False),
        (RATE, False, False),
        (RATE | {"on_unmet": "abort"}, False, True),
        (FRESH, True, False),
        (FRESH | {"on_unmet": "abort"}, False, True),
    ],
)
def test_c8_an_unmet_constraint_waits_aborts_or_queues(constraint: dict[str, Any], waits: bool, aborts: bool) -> None:
    condition = evaluate(constraint)
    assert (condition.waits, condition.aborts) == (waits, aborts)


def test_c14_all_constraints_are_shown_in_written_order() -> None:
    made = schedule(constraints=[FRESH, DELAY, concurrency(1)])
    found = check.conditions_of(met(), facts(schedule=made), made, NOON)
    assert [condition.constraint.type for condition in found] == ["fresh", "delay", "concurrency"]
    assert [condition.met for condition in found] == [False, False, True]
