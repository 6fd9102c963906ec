"""Daylight saving (T2), on real zones. A wall time that does not exist fires at the first instant after the gap. One
that exists twice fires the first time only, or as the trigger's rule says. `walk` is a second implementation of the
rules.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, iso, parse_instant
from chalicelib.core.time import expressions as time_expressions
from chalicelib.core.time import wall
from chalicelib.core.time.wall import Daylight
from tests.core.builders import thorough
from tests.core.walk import CHANGES, RULES, STEADY, Meaning, expressions, slow_next_fire, times_of_day, wall_of


def fires(expression: str, zone: str, start: str, count: int, rule: Daylight = wall.DEFAULT) -> list[str]:
    """The next fires after an instant, as minutes in UTC."""
    found, at = [], parse_instant(start)
    for _ in range(count):
        fire = time_expressions.next_fire(expression, zone, 0, at, rule)
        assert fire is not None
        at = fire
        found.append(iso(at).removesuffix(":00.000Z"))
    return found


@pytest.mark.parametrize(
    ("zone", "before", "expression", "expected"),
    [
        ("America/New_York", "2013-03-09T12:00:00Z", "30 2 * * *", ["2013-03-10T07:00", "2013-03-11T06:30"]),
        ("America/New_York", "2026-03-07T12:00:00Z", "30 2 * * *", ["2026-03-08T07:00", "2026-03-09T06:30"]),
        ("Europe/London", "2026-03-28T12:00:00Z", "30 1 * * *", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("Australia/Lord_Howe", "2026-10-03T02:00:00Z", "15 2 * * *", ["2026-10-03T15:30", "2026-10-04T15:15"]),
        ("Africa/Casablanca", "2026-03-21T12:00:00Z", "30 2 * * *", ["2026-03-22T02:00", "2026-03-23T01:30"]),
        ("America/Sao_Paulo", "2018-11-03T12:00:00Z", "0 0 * * *", ["2018-11-04T03:00", "2018-11-05T02:00"]),
        ("Pacific/Apia", "2011-12-29T12:00:00Z", "0 12 * * *", ["2011-12-29T22:00", "2011-12-30T10:00"]),
    ],
)
def test_t2_a_wall_time_in_a_gap_fires_at_first_instant_after(
    zone: str, before: str, expression: str, expected: list[str]
) -> None:
    assert fires(expression, zone, before, 2) == expected


@pytest.mark.parametrize(
    ("zone", "before", "expression", "expected"),
    [
        ("America/New_York", "2013-11-02T12:00:00Z", "30 1 * * *", ["2013-11-03T05:30", "2013-11-04T06:30"]),
        ("America/New_York", "2026-10-31T12:00:00Z", "30 1 * * *", ["2026-11-01T05:30", "2026-11-02T06:30"]),
        ("Europe/London", "2026-10-24T12:00:00Z", "30 1 * * *", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("Australia/Lord_Howe", "2026-04-04T03:00:00Z", "45 1 * * *", ["2026-04-04T14:45", "2026-04-05T15:15"]),
        ("Africa/Casablanca", "2026-02-14T12:00:00Z", "30 2 * * *", ["2026-02-15T01:30", "2026-02-16T02:30"]),
    ],
)
def test_t2_a_wall_time_that_exists_twice_fires_first_time_only(
    zone: str, before: str, expression: str, expected: list[str]
) -> None:
    assert fires(expression, zone, before, 2) == expected


def test_t2_several_wall_times_in_one_gap_are_one_fire() -> None:
    found = fires("*/15 2,3 * * *", "America/New_York", "2026-03-08T06:00:00Z", 4)
    assert found == ["2026-03-08T07:00", "2026-03-08T07:15", "2026-03-08T07:30", "2026-03-08T07:45"]


def test_t2_the_second_pass_of_a_repeated_hour_has_no_fires() -> None:
    found = fires("*/30 * * * *", "America/New_York", "2026-11-01T05:00:00Z", 3)
    assert found == ["2026-11-01T05:30", "2026-11-01T07:00", "2026-11-01T07:30"]


def test_t2_within_the_second_pass_the_next_fire_is_after_it() -> None:
    assert fires("30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", 1) == ["2026-11-02T06:30"]


def test_t2_half_an_hour_is_repeated_on_lord_howe() -> None:
    found = fires("*/15 1,2 * * *", "Australia/Lord_Howe", "2026-04-04T14:20:00Z", 4)
    assert found == ["2026-04-04T14:30", "2026-04-04T14:45", "2026-04-04T15:30", "2026-04-04T15:45"]


def test_t2_kathmandu_is_five_hours_and_45_minutes_ahead() -> None:
    assert fires("0 5 * * *", "Asia/Kathmandu", "2026-03-02T12:00:00Z", 2) == ["2026-03-02T23:15", "2026-03-03T23:15"]


NEW_YORK_SPRING = "2026-03-08T06:00:00Z"  # 01:00 in New York, an hour before the clocks go from 02:00 to 03:00
NEW_YORK_AUTUMN = "2026-11-01T04:50:00Z"  # 00:50 in New York; from 05:00Z it is 01:00, and from 06:00Z again


def test_t2_with_skip_a_wall_time_in_a_gap_does_not_fire() -> None:
    skip = Daylight(gap="skip")
    assert fires("30 2 * * *", "America/New_York", NEW_YORK_SPRING, 1, skip) == ["2026-03-09T06:30"]
    assert fires("0 3 * * *", "America/New_York", NEW_YORK_SPRING, 1, skip) == ["2026-03-08T07:00"], "03:00 exists"
    assert fires("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", 1, skip) == ["2011-12-30T22:00"]


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("first", ["2026-11-01T05:30", "2026-11-02T06:30"]),
        ("second", ["2026-11-01T06:30", "2026-11-02T06:30"]),
        ("both", ["2026-11-01T05:30", "2026-11-01T06:30", "2026-11-02T06:30"]),
    ],
)
def test_t2_a_repeated_wall_time_fires_in_the_passes_of_its_rule(
    overlap: Literal["first", "second", "both"], expected: list[str]
) -> None:
    rule = Daylight(overlap=overlap)
    assert fires("30 1 * * *", "America/New_York", NEW_YORK_AUTUMN, len(expected), rule) == expected


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("first", ["05:00", "05:30", "07:00", "07:30"]),
        ("second", ["06:00", "06:30", "07:00", "07:30"]),
        ("both", ["05:00", "05:30", "06:00", "06:30", "07:00", "07:30"]),
    ],
)
def test_t2_every_half_hour_fires_in_the_passes_of_its_rule(
    overlap: Literal["first", "second", "both"], expected: list[str]
) -> None:
    found = fires("*/30 * * * *", "America/New_York", NEW_YORK_AUTUMN, len(expected), Daylight(overlap=overlap))
    assert [fire.removeprefix("2026-11-01T") for fire in found] == expected


@pytest.mark.parametrize("gap", ["after", "skip"])
def test_t2_fires_each_minute_do_not_accumulate_in_a_gap(gap: Literal["after", "skip"]) -> None:
    found = fires("* * * * *", "America/New_York", "2026-03-08T06:58:00Z", 3, Daylight(gap=gap))
    assert found == ["2026-03-08T06:59", "2026-03-08T07:00", "2026-03-08T07:01"]


def test_t2_a_fire_each_second_skips_a_day_that_does_not_exist() -> None:
    """The work must not grow with the length of the gap: 86,400 wall times are skipped at once."""
    before = parse_instant("2011-12-30T09:59:59Z")
    for rule in RULES:
        assert time_expressions.next_fire("* * * * * *", "Pacific/Apia", 0, before, rule) == before + SECOND


def test_t2_the_half_past_of_a_missing_hour_fires_after_the_gap() -> None:
    found = fires("30 * * * *", "America/New_York", NEW_YORK_SPRING, 3)
    assert found == ["2026-03-08T06:30", "2026-03-08T07:00", "2026-03-08T07:30"]
    found = fires("30 * * * *", "America/New_York", NEW_YORK_SPRING, 2, Daylight(gap="skip"))
    assert found == ["2026-03-08T06:30", "2026-03-08T07:30"]


@pytest.mark.parametrize(("zone", "change"), [*CHANGES, STEADY])
def test_t2_every_counts_elapsed_time_over_clock_changes(zone: str, change: str) -> None:
    at = parse_instant(change) - 2 * HOUR
    found = [time_expressions.next_fire("@every 1h", zone, at, at + hours * HOUR) for hours in range(4)]
    assert found == [at + hours * HOUR for hours in range(1, 5)]


# -- compared with a walk minute by minute ---------------------------------------------------------------------------


@pytest.mark.parametrize(("zone", "change"), CHANGES)
def test_t2_the_tested_changes_are_real_clock_changes(zone: str, change: str) -> None:
    at = parse_instant(change)
    assert wall_of(at, zone) - wall_of(at - SECOND, zone) != timedelta(seconds=1)


@given(times_of_day() | times_of_day(seconds=True), st.sampled_from([*CHANGES, STEADY]), st.sampled_from(RULES),
       st.integers(-26 * HOUR, 4 * HOUR))  # fmt: skip
@example(("30 2 * * *", Meaning(minutes=frozenset({30}), hours=frozenset({2}))), CHANGES[0], RULES[0], -1)
@thorough
def test_t2_fires_around_a_clock_change_equal_exhaustive_search(
    cron: tuple[str, Meaning], change: tuple[str, str], rule: Daylight, offset: int
) -> None:
    (expression, meaning), (zone, when) = cron, change
    after = parse_instant(when) + offset
    for _ in range(3):
        until = after + 28 * HOUR
        expected = slow_next_fire(meaning, zone, after, until, rule)
        fire = time_expressions.next_fire(expression, zone, 0, after, rule)
        assert fire is not None
        if expected is None:
            assert fire > until, expression
            return
        assert iso(fire) == iso(expected), expression
        after = fire


@given(expressions(), st.sampled_from(CHANGES), st.sampled_from(RULES), st.integers(0, 15 * 365 * DAY))
@example(("* * 1 * 0-6", Meaning(days=frozenset({1}), weekdays=frozenset(range(7)))), CHANGES[0], RULES[0], 0)
@thorough
def test_t2_fires_at_any_time_equal_an_exhaustive_search(
    cron: tuple[str, Meaning], change: tuple[str, str], rule: Daylight, offset: int
) -> None:
    (expression, meaning), zone = cron, change[0]
    after = parse_instant("2012-01-01T00:00:00Z") + offset
    expected = slow_next_fire(meaning, zone, after, after + 3 * DAY, rule)
    try:
        fire = time_expressions.next_fire(expression, zone, 0, after, rule)
    except SluiceError:  # a date that never comes, such as 31 February
        assert expected is None
        return
    assert fire is not None
    if expected is None:
        assert fire > after + 3 * DAY - MINUTE, expression
        jumped = wall_of(fire, zone) - wall_of(fire - SECOND, zone) > timedelta(seconds=1)
        assert meaning.at(wall_of(fire, zone).replace(second=0)) or (rule.gap == "after" and jumped)
    else:
        assert iso(fire) == iso(expected), expression
