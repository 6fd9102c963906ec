"""Every form of an expression (T1): its normal form, its number of fires a day, and the fires themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import instants as core_instants
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from chalicelib.core.time import expressions as time_expressions
from chalicelib.core.time import wall
from tests.core.builders import NOON, brief, thorough
from tests.core.walk import RULES, Meaning, expressions

ZONES = ["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "Pacific/Apia"]
instants = st.integers(parse_instant("2005-01-01T00:00:00Z"), parse_instant("2060-01-01T00:00:00Z"))


def refusal(expression: object) -> SluiceError:
    with pytest.raises(SluiceError) as caught:
        time_expressions.normalise(expression)
    return caught.value


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        (" 0 5 * * MON-FRI ", "0 5 * * mon-fri"),
        ("0 0 5 * * 1-5", "0 5 * * mon-fri"),
        ("@Daily", "0 0 * * *"),
        ("@weekly", "0 0 * * sun"),
        ("@yearly", "0 0 1 jan *"),
        ("@every 90m", "@every 1h30m"),
        ("@EVERY PT1H30M", "@every 1h30m"),
        ("@every 1.5s", "@every 1s500ms"),
        ("R/PT90M", "@every 1h30m"),
        ("r4/pt3s", "R4/PT3S"),
        ("R4/PT90S", "R4/PT1M30S"),
        ("R4/PT1.50S", "R4/PT1.5S"),
        ("R2/P1W", "R2/P7D"),
        ("R2/P1DT2H3M4S", "R2/P1DT2H3M4S"),
        ("R4/2026-01-01T01:00:00+01:00/PT3S", "R4/2026-01-01T00:00:00Z/PT3S"),
        ("r/2026-01-01t00:00:00.250z/pt1m", "R/2026-01-01T00:00:00.250Z/PT1M"),
        ({"hour": 5}, "0 5 * * *"),
        ({"hour": "5", "minute": "30", "day_of_week": "mon-fri"}, "30 5 * * mon-fri"),
        ({"Hour": 5, "DayOfMonth": "L", "Month": [1, "jul"]}, "0 5 L jan,jul *"),
        ({"dayOfWeek": ["mon", 3]}, "0 * * * mon,wed"),
        ({"minute": "*"}, "* * * * *"),
        ({"minute": "*", "second": "*/10"}, "*/10 * * * * *"),
        ({"second": 30}, "30 0 * * * *"),
        ({"day_of_month": "?", "day_of_week": "fri#1", "hour": 0}, "0 0 * * fri#1"),
    ],
)
def test_t1_each_form_has_one_normal_form(written: object, normal: str) -> None:
    assert time_expressions.normalise(written) == normal
    assert time_expressions.normalise(normal) == normal


def test_t1_a_missing_minute_in_the_object_form_is_zero() -> None:
    """So an omission never means 1,440 fires a day. A user who writes `"*"` gets them, and is warned."""
    assert time_expressions.fires_per_day(time_expressions.normalise({"day_of_week": "*"})) == 24
    assert time_expressions.fires_per_day(time_expressions.normalise({"hour": 5})) == 1
    assert time_expressions.fires_per_day(time_expressions.normalise({"minute": "*"})) == 1_440


@pytest.mark.parametrize(
    ("document", "code", "field", "message"),
    [
        ({}, "invalid", "expression", "expected an object with at least one field such as minute or hour, got {}"),
        (5, "invalid", "expression", "expected text, or an object with fields such as minute and hour, got 5"),
        (None, "invalid", "expression", "expected text, or an object with fields such as minute and hour, got None"),
        ({"minut": 1}, "unknown_field", "expression.minut", "unknown field 'minut'"),
        ({"hour": 5, "Hour": 6}, "invalid", "expression.Hour", "expected hour once, got 'hour twice'"),
        ({"hour": True}, "invalid", "expression.hour", "expected a number, text such as '*/15' or 'mon-fri', or a "),
        ({"hour": 1.5}, "invalid", "expression.hour", "expected a number, text such as '*/15' or 'mon-fri', or a "),
        ({"hour": "1 2"}, "invalid", "expression.hour", "expected a number, text such as '*/15' or 'mon-fri', or a "),
        ({"hour": []}, "invalid", "expression.hour", "expected a number, text such as '*/15' or 'mon-fri', or a "),
        ({"hour": 24}, "invalid", "expression", "expected a 5-field cron expression such as '0 5 * * mon-fri', "),
        ({"day_of_month": 31, "month": 2}, "invalid", "expression", "expected a cron expression that some date "),
    ],
)
def test_t1_object_that_is_no_expression_is_refused_by_its_field(
    document: Any, code: str, field: str, message: str
) -> None:
    error = refusal(document)
    assert (error.code, error.field) == (code, field)
    assert error.message.startswith(message)


def test_t1_the_hint_says_what_is_wrong_with_a_field() -> None:
    assert refusal({"hour": 24}).hint == "hour: '24' is not from 0 to 23"
    assert refusal({"minut": 24}).hint == "did you mean 'minute'?"
    assert refusal("*/90 * * * *").hint == (
        "minute: the step '90' is not from 1 to 59; for a longer interval, write @every 90m"
    )


@pytest.mark.parametrize(
    ("expression", "fires"),
    [
        ("* * * * *", 1_440),
        ("*/10 * * * * *", 8_640),
        ("@hourly", 24),
        ("0 5 * * mon-fri", 0.7143),
        ("@every 1h30m", 16),
        ("@every 7h", 3.4286),
        ("@every 2d", 0.5),
        ("R4/PT3S", 4),
        ("R4/P1D", 1),
        ("R/2026-01-01T00:00:00Z/PT1H", 24),
    ],
)
def test_t1_an_expression_has_its_fires_per_day(expression: str, fires: float) -> None:
    answer = time_expressions.fires_per_day(expression)
    assert answer == fires
    assert isinstance(answer, int) == isinstance(fires, int)


def all_fires(expression: str, anchor: int, after: int, most: int = 10) -> list[int]:
    found: list[int] = []
    while (fire := time_expressions.next_fire(expression, "UTC", anchor, found[-1] if found else after)) is not None:
        found.append(fire)
        if len(found) == most:
            break
    return found


def test_t1_repeats_with_a_start_begin_at_it() -> None:
    text, start = "R4/2026-03-02T13:00:00Z/PT3S", NOON + HOUR
    every = [start + seconds * SECOND for seconds in (0, 3, 6, 9)]
    assert all_fires(text, NOON, NOON) == every
    assert all_fires(text, NOON, start) == every[1:]
    assert all_fires(text, start + 4 * SECOND, NOON) == every[2:], "nothing fires before its anchor"
    assert all_fires(text, NOON, start + 9 * SECOND) == []
    assert not time_expressions.is_interval(text), "its fires are instants by themselves"


def test_t1_repeats_without_a_number_go_on_for_ever() -> None:
    assert all_fires("R/PT1M", NOON, NOON, 3) == [NOON + minutes * MINUTE for minutes in (1, 2, 3)]
    start = "R/2026-03-02T13:00:00Z/PT1M"
    assert all_fires(start, NOON, NOON + 10 * DAY, 2) == [NOON + 10 * DAY + minutes * MINUTE for minutes in (1, 2)]
    assert time_expressions.repeats("R/PT1M") is None


def test_t1_a_seconds_cron_fires_at_its_seconds() -> None:
    found = all_fires("*/20 59 11 * * *", 0, NOON - MINUTE, 4)
    assert found == [NOON - 40 * SECOND, NOON - 20 * SECOND, NOON + DAY - MINUTE, NOON + DAY - 40 * SECOND]


def test_t4_after_the_last_year_there_are_no_fires() -> None:
    assert time_expressions.next_fire("@daily", "UTC", 0, core_instants.parse_instant("9998-12-31T12:00:00Z")) is None
    assert (
        time_expressions.next_fire("@every 1h", "UTC", 0, core_instants.parse_instant("9998-12-31T23:30:00Z")) is None
    )


intervals = st.builds(
    lambda head, span, unit: f"{head} {span}{unit}", st.just("@every"), st.integers(1, 90), st.sampled_from("smhd")
) | st.builds(
    lambda times, start, span, unit: f"R{times}/{start}PT{span}{unit}",
    st.integers(1, 99) | st.just(""),
    st.sampled_from(["", "2026-03-02T12:00:00Z/", "2030-01-01T00:00:00.500+05:45/"]),
    st.integers(1, 90),
    st.sampled_from("SMH"),
)
forms = intervals | expressions().map(lambda written: written[0])


@given(forms, st.sampled_from(ZONES), instants, instants, st.sampled_from(RULES))
@thorough
def test_t4_fires_strictly_increase_and_equal_their_normal_form(
    expression: str, zone: str, anchor: int, after: int, rule: wall.Daylight
) -> None:
    try:
        normal = time_expressions.normalise(expression)
    except SluiceError as error:
        assert "that some date matches" in error.message
        return
    assert time_expressions.normalise(normal) == normal
    last = after
    for _ in range(4):
        fire = time_expressions.next_fire(expression, zone, anchor, last, rule)
        assert fire == time_expressions.next_fire(normal, zone, anchor, last, rule)
        if fire is None:
            break
        assert fire > max(last, anchor)
        last = fire


@given(expressions(), st.sampled_from(ZONES), instants, instants, st.sampled_from(RULES))
@brief
def test_t4_from_any_instant_before_a_fire_the_next_is_that_fire(
    written: tuple[str, Meaning], zone: str, after: int, other: int, rule: wall.Daylight
) -> None:
    try:
        fire = time_expressions.next_fire(written[0], zone, 0, after, rule)
    except SluiceError:
        return
    assert fire is not None
    between = after + other % (fire - after)
    assert time_expressions.next_fire(written[0], zone, 0, between, rule) == fire
