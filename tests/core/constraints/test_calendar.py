"""A calendar: on which days a job may be launched, from which instant on, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.constraints.calendar import Calendar
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, HOUR, Instant, parse_instant
from chalicelib.core.jobs import check
from chalicelib.core.jobs.check import End, Launch, Wait, decide
from tests.core.builders import NOON, PARTITION, brief, end_of, facts, job, met, schedule, sent
from tests.support.reasons import says

MORNING = [{"from": "2026-03-02T06:00:00Z", "to": "2026-03-02T13:00:00Z"}]


def at(text: str) -> Instant:
    return parse_instant(text)


def calendar(**fields: Any) -> Calendar:
    return Calendar(type="calendar", **fields)


# NOON is a Monday, the 2nd of March 2026.
@pytest.mark.parametrize(
    ("fields", "opens"),
    [
        ({"only": ["mon"]}, NOON),
        ({"only": ["tue"]}, at("2026-03-03T00:00:00Z")),
        ({"only": ["sun", "03-05"]}, at("2026-03-05T00:00:00Z")),
        ({"only": ["03-01"]}, at("2027-03-01T00:00:00Z")),
        ({"only": ["02-29"]}, at("2028-02-29T00:00:00Z")),
        ({"only": ["2026-04-01"]}, at("2026-04-01T00:00:00Z")),
        ({"only": ["2026-03-01"]}, None),
        ({"only": [{"from": "2026-03-10", "to": "2026-03-12"}]}, at("2026-03-10T00:00:00Z")),
        ({"only": [{"from": "2026-03-02T13:30:00Z", "to": "2026-03-02T14:00:00Z"}]}, at("2026-03-02T13:30:00Z")),
        ({"only": ["tue"], "zone": "Asia/Tokyo"}, at("2026-03-02T15:00:00Z")),
        ({"excluding": ["sat", "sun"]}, NOON),
        ({"excluding": ["mon", "tue", "2026-03-04"]}, at("2026-03-05T00:00:00Z")),
        ({"only": ["mon", "tue"], "excluding": ["2026-03-02", "2026-03-03"]}, at("2026-03-09T00:00:00Z")),
        ({"only": ["12-31", "01-01"], "excluding": ["2026-12-31"]}, at("2027-01-01T00:00:00Z")),
        ({"only": ["mon"], "excluding": MORNING}, at("2026-03-02T13:00:00Z")),
        ({"excluding": MORNING}, at("2026-03-02T13:00:00Z")),
    ],
)
def test_a_calendar_opens_at_the_first_instant_of_an_allowed_day(fields: Any, opens: Instant | None) -> None:
    assert calendar(**fields).opens_at(NOON) == opens


@brief
@given(
    only=st.sets(st.sampled_from(["mon", "wed", "sat", "2026-03-06", "03-08"])),
    excluding=st.sets(st.sampled_from(["mon", "fri", "2026-03-07", "03-08"]), min_size=1),
    hours=st.integers(0, 400),
)
def test_a_calendar_opens_on_the_first_listed_day_not_excluded(only: set[str], excluding: set[str], hours: int) -> None:
    def allowed(instant: Instant) -> bool:
        day = datetime.fromtimestamp(instant / 1000, UTC)
        names = {f"{day:%a}".lower(), f"{day:%Y-%m-%d}", f"{day:%m-%d}"}
        return (not only or bool(names & only)) and not names & excluding

    now = NOON + hours * HOUR
    midnight = datetime.fromtimestamp(now / 1000, UTC).replace(hour=0) + timedelta(days=1)
    days = (int(midnight.timestamp() * 1000) + number * DAY for number in range(800))
    expected = now if allowed(now) else next((day for day in days if allowed(day)), None)
    if expected is None and not any(allowed(NOON + number * DAY) for number in range(-800, 800)):
        with pytest.raises(ValidationError, match="expected at least one day"):
            calendar(only=sorted(only), excluding=sorted(excluding))
        return
    assert calendar(only=sorted(only), excluding=sorted(excluding)).opens_at(now) == expected


def test_a_job_waits_for_calendar_day_or_is_aborted_with_reason() -> None:
    rule = {"type": "calendar", "only": ["tue"], "excluding": ["12-25"], "zone": "UTC"}
    why = "only on tue, not on 12-25 in UTC, else wait: not before 2026-03-03T00:00:00.000Z"
    waits = decide(met(), facts(schedule=schedule(constraints=[rule])), NOON)
    assert isinstance(waits, Wait)
    assert waits.why.text == why
    assert waits.reason == "time"
    strict = facts(schedule=schedule(constraints=[rule | {"on_unmet": "abort"}]))
    assert decide(met(), strict, NOON) == End("ABORTED", says(why.replace("else wait", "else abort")))
    assert isinstance(decide(met(), strict, at("2026-03-03T00:00:00Z")), Launch)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"only": ["tue"]}, "only on tue in UTC"),
        ({"excluding": ["12-25"]}, "not on 12-25 in UTC"),
        ({"only": ["tue"], "excluding": ["12-25"], "zone": "Asia/Tokyo"}, "only on tue, not on 12-25 in Asia/Tokyo"),
    ],
)
def test_c14_a_calendar_describes_the_lists_that_it_has(fields: Any, words: str) -> None:
    assert calendar(**fields).rule == f"{words}, else wait"


def test_a_calendar_of_past_days_only_is_described_as_such() -> None:
    rule = {"type": "calendar", "only": ["2026-03-01"]}
    waits = decide(met(), facts(schedule=schedule(constraints=[rule])), NOON)
    assert isinstance(waits, Wait)
    assert waits.why.text == (
        "only on 2026-03-01 in UTC, else wait: no allowed day is left; replace the days of the calendar, or remove it"
    )
    assert waits.until == NOON + DAY, "the timeout of the job ends its wait"
    strict = facts(schedule=schedule(constraints=[rule | {"on_unmet": "abort"}]))
    assert end_of(decide(met(), strict, NOON)) == "ABORTED"


def test_it_waits_for_the_last_of_calendar_and_time_window() -> None:
    """A window that crosses midnight and a calendar are evaluated separately, at the instant of the launch."""
    night = {"type": "time_window", "start": "22:00", "end": "06:00"}
    both = facts(schedule=schedule(timeout="never", constraints=[night, {"type": "calendar", "only": ["wed"]}]))
    waits = decide(met(), both, NOON)
    assert isinstance(waits, Wait)
    assert waits.until == at("2026-03-04T00:00:00Z")
    assert isinstance(decide(met(), both, at("2026-03-04T05:59:00Z")), Launch), "the window of Tuesday reaches into it"
    by_day = decide(met(), both, at("2026-03-04T07:00:00Z"))
    assert isinstance(by_day, Wait)
    assert by_day.until == at("2026-03-04T22:00:00Z")
    assert isinstance(decide(met(), both, at("2026-03-04T23:59:59Z")), Launch)
    assert isinstance(decide(met(), both, at("2026-03-05T00:00:00Z")), Wait), "its window is open, its day is over"


def test_a_retry_waits_for_an_allowed_day_instead_of_aborting() -> None:
    strict = facts(schedule=schedule(constraints=[{"type": "calendar", "only": ["tue"], "on_unmet": "abort"}]))
    waits = decide(job("retry"), strict, NOON)
    assert isinstance(waits, Wait)
    assert waits.until == at("2026-03-03T00:00:00Z")


def test_run_after_a_timeout_passes_the_calendar() -> None:
    made = schedule(timeout={"after": "1h", "then": "run"}, constraints=[{"type": "calendar", "only": ["2026-03-01"]}])
    assert isinstance(decide(met(created_at=NOON - 2 * HOUR), facts(schedule=made), NOON), Launch)


def test_a_document_with_past_days_can_be_read_and_put() -> None:
    """Stored schedules are read, and apps deployed again, long after the days of a calendar."""
    made = schedule(constraints=[{"type": "calendar", "only": ["2001-01-01"]}])
    assert Schedule.model_validate(made.model_dump(mode="json")).resolved("demo", "flights", NOON).constraints


def test_a_list_has_at_most_400_entries() -> None:
    dates = [f"{datetime(2026, 1, 1) + timedelta(days=number):%Y-%m-%d}" for number in range(401)]
    assert calendar(excluding=dates[:400]).opens_at(NOON) == at("2027-02-05T00:00:00Z")
    with pytest.raises(ValidationError) as caught:
        schedule(constraints=[{"type": "calendar", "only": dates}])
    error = errors.from_validation(caught.value)
    assert (error.field, error.message) == ("constraints.0.only", "expected at most 400 entries, got '401 entries'")


def test_a_calendar_uses_the_zone_of_its_schedule_by_default() -> None:
    rules = [{"type": "calendar", "only": ["mon"]}, {"type": "calendar", "only": ["mon"], "zone": "UTC"}]
    document = {"workflow": "clean", "trigger": PARTITION, "zone": "Asia/Tokyo", "constraints": rules}
    made = Schedule.model_validate(document).resolved("demo", "flights")
    assert [each.zone for each in made.constraints] == ["Asia/Tokyo", "UTC"]


def test_a_calendar_does_not_delay_catch_up_or_backfill() -> None:
    made = schedule(constraints=[{"type": "calendar", "only": ["tue"]}])
    assert check.conditions_of(job("backfill", backfill="b1"), facts(schedule=made), made, NOON) == ()
    assert not check.conditions_of(met(), facts(schedule=made), made, NOON)[0].met


@pytest.mark.parametrize(
    ("fields", "field", "expected"),
    [
        ({}, "constraints.0", "expected a list of days: only, excluding or both, got 'no list'"),
        ({"only": ["someday"]}, "constraints.0.only.0", "expected a date such as 2026-12-25"),
        ({"only": ["mon"], "zone": "Mars/Base"}, "constraints.0.zone", "expected a time zone"),
        ({"excluding": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}, "constraints.0.excluding", "not excluded"),
        (
            {"only": ["sat", "sun"], "excluding": ["sat", "sun"]},
            "constraints.0.excluding",
            "expected at least one day that is not excluded, got ['sat', 'sun']",
        ),
        ({"only": ["2026-12-25"], "excluding": ["12-25"]}, "constraints.0.excluding", "expected at least one day"),
        (
            {"only": [{"from": "2026-01-01", "to": "9999-12-31"}]},
            "constraints.0.only.0.to",
            "expected a date from 1970",
        ),
        ({"only": "mon"}, "constraints.0.only", "expected a list of dates, days of the week and windows, got 'mon'"),
        ({"only": ["mon"], "on_unmet": "cancel_other"}, "constraints.0.on_unmet", "expected 'abort' or 'wait'"),
    ],
)
def test_an_invalid_calendar_is_refused(fields: Any, field: str, expected: str) -> None:
    with pytest.raises(ValidationError) as caught:
        sent(constraints=[{"type": "calendar", **fields}])
    error = errors.from_validation(caught.value)
    assert error.field == field
    assert expected in error.message
