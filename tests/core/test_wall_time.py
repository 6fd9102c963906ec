"""Daylight saving (T2), on real zones: a wall time that does not exist fires at the first instant after the gap, one
that exists twice fires the first time only. `slow_next_fire` is a second, slow implementation of the same two rules.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.core import calendar
from chalicelib.core.calendar import DAY, HOUR, MINUTE, Instant, iso, parse_instant
from tests.core.builders import brief, thorough

# Each: a zone and an instant at which its clocks change.
CHANGES = [
    ("America/New_York", "2013-03-10T07:00:00Z"),
    ("America/New_York", "2013-11-03T06:00:00Z"),
    ("America/New_York", "2026-03-08T07:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("Europe/London", "2026-03-29T01:00:00Z"),
    ("Europe/London", "2026-10-25T01:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ("Africa/Casablanca", "2026-02-15T02:00:00Z"),
    ("Africa/Casablanca", "2026-03-22T02:00:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),  # the gap swallows midnight
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),  # the gap swallows a day
    ("Asia/Kathmandu", "2026-03-29T01:00:00Z"),  # no change, but minutes of its own
]


def fires(expression: str, zone: str, start: str, count: int) -> list[str]:
    """The next fires after an instant, as minutes in UTC."""
    found, at = [], parse_instant(start)
    for _ in range(count):
        at = calendar.next_fire(expression, zone, 0, at)
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
def test_t2_a_wall_time_that_does_not_exist_fires_at_the_first_instant_after_the_gap(
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
def test_t2_a_wall_time_that_exists_twice_fires_the_first_time_only(
    zone: str, before: str, expression: str, expected: list[str]
) -> None:
    assert fires(expression, zone, before, 2) == expected


def test_t2_several_wall_times_in_one_gap_are_one_fire() -> None:
    found = fires("*/15 2,3 * * *", "America/New_York", "2026-03-08T06:00:00Z", 4)
    assert found == ["2026-03-08T07:00", "2026-03-08T07:15", "2026-03-08T07:30", "2026-03-08T07:45"]


def test_t2_the_second_pass_of_a_repeated_hour_has_no_fires() -> None:
    found = fires("*/30 * * * *", "America/New_York", "2026-11-01T05:00:00Z", 3)
    assert found == ["2026-11-01T05:30", "2026-11-01T07:00", "2026-11-01T07:30"]


def test_t2_asked_within_the_second_pass_the_next_fire_is_after_it() -> None:
    assert fires("30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", 1) == ["2026-11-02T06:30"]


def test_t2_half_an_hour_is_repeated_on_lord_howe() -> None:
    found = fires("*/15 1,2 * * *", "Australia/Lord_Howe", "2026-04-04T14:20:00Z", 4)
    assert found == ["2026-04-04T14:30", "2026-04-04T14:45", "2026-04-04T15:30", "2026-04-04T15:45"]


def test_t2_kathmandu_is_five_hours_and_three_quarters_ahead() -> None:
    assert fires("0 5 * * *", "Asia/Kathmandu", "2026-03-02T12:00:00Z", 2) == ["2026-03-02T23:15", "2026-03-03T23:15"]


@pytest.mark.parametrize(("zone", "change"), CHANGES)
def test_t2_every_counts_elapsed_time_whatever_the_clocks_do(zone: str, change: str) -> None:
    at = parse_instant(change) - 2 * HOUR
    found = [calendar.next_fire("@every 1h", zone, at, at + hours * HOUR) for hours in range(4)]
    assert found == [at + hours * HOUR for hours in range(1, 5)]


# -- the slow implementation ---------------------------------------------------------------------------------------

# Minutes, hours, days of month, months, days of week (0 is Sunday). Empty stands for a star, which restricts nothing.
Fields = tuple[frozenset[int], ...]
ANY: frozenset[int] = frozenset()
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def slow_next_fire(fields: Fields, zone: str, after: Instant, until: Instant) -> Instant | None:
    """Walk minute by minute: at each instant fire for every wall minute that the clock reaches for the first time.

    Where the clock jumps ahead it reaches all the minutes of the gap at once; where it is put back it reaches none
    until it is past the highest minute that it has shown.
    """
    place, minute = ZoneInfo(zone), timedelta(minutes=1)
    instant = (after - 3 * HOUR) // MINUTE * MINUTE  # no clock of these zones is put back by more
    shown = _wall(instant, place)
    while instant < until:
        instant += MINUTE
        wall, matched = _wall(instant, place), False
        while shown < wall:
            shown += minute
            matched = matched or _matches(fields, shown)
        if matched and instant > after:
            return instant
    return None


def _wall(instant: Instant, place: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(instant // 1000, UTC).astimezone(place).replace(tzinfo=None)


def _matches(fields: Fields, wall: datetime) -> bool:
    shown = (wall.minute, wall.hour, wall.day, wall.month, wall.isoweekday() % 7)
    minute, hour, day, month, weekday = (not field or number in field
                                         for field, number in zip(fields, shown, strict=True))  # fmt: skip
    # As in every cron: restricted both by day of month and of week, be it only in form (0-6), one of the two is enough.
    both = bool(fields[2]) and bool(fields[4])
    return minute and hour and month and ((day or weekday) if both else (day and weekday))


@st.composite
def part(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int]]:
    """A field of a cron expression and the numbers that it stands for."""
    form = draw(st.sampled_from(["any", "any", "list", "range", "step"]))
    if form == "list":
        chosen = draw(st.sets(st.integers(low, high), min_size=1, max_size=4))
        return ",".join(map(str, sorted(chosen))), frozenset(chosen)
    if form == "range":
        first = draw(st.integers(low, high - 1))
        last = draw(st.integers(first + 1, high))
        step = draw(st.integers(1, 4))
        spelled = f"{first}-{last}" if step == 1 else f"{first}-{last}/{step}"
        return spelled, frozenset(range(first, last + 1, step))
    if form == "step" and high > 12:
        step = draw(st.integers(2, (high - low) // 2))
        return f"*/{step}", frozenset(range(low, high + 1, step))
    return "*", ANY


@st.composite
def crons(draw: st.DrawFn) -> tuple[str, Fields]:
    parts = [draw(part(low, high)) for low, high in RANGES]
    return " ".join(text for text, _ in parts), tuple(numbers for _, numbers in parts)


@st.composite
def hourly_crons(draw: st.DrawFn) -> tuple[str, Fields]:
    """Expressions that name minutes and hours only: every day is a day of theirs."""
    parts = [draw(part(low, high)) for low, high in RANGES[:2]]
    days = [("*", ANY)] * 3
    return " ".join(text for text, _ in parts + days), tuple(numbers for _, numbers in parts + days)


@given(hourly_crons(), st.sampled_from(CHANGES), st.integers(-26 * HOUR, 4 * HOUR))
@example(("30 2 * * *", (frozenset({30}), frozenset({2}), ANY, ANY, ANY)), CHANGES[0], -1)
@thorough
def test_t2_the_fires_around_a_change_are_those_of_a_walk_through_wall_time(
    cron: tuple[str, Fields], change: tuple[str, str], offset: int
) -> None:
    (expression, fields), (zone, when) = cron, change
    after = parse_instant(when) + offset
    for _ in range(3):
        expected = slow_next_fire(fields, zone, after, after + 2 * DAY)
        assert expected is not None
        fire = calendar.next_fire(expression, zone, 0, after)
        assert iso(fire) == iso(expected)
        after = fire


@given(crons(), st.sampled_from(CHANGES), st.integers(0, 15 * 365 * DAY))
@example(("* * 1 * 0-6", (ANY, ANY, frozenset({1}), ANY, frozenset(range(7)))), CHANGES[0], 0)
@brief
def test_t2_the_fires_at_any_time_are_those_of_a_walk_through_wall_time(
    cron: tuple[str, Fields], change: tuple[str, str], offset: int
) -> None:
    (expression, fields), zone = cron, change[0]
    after = parse_instant("2012-01-01T00:00:00Z") + offset
    expected = slow_next_fire(fields, zone, after, after + 3 * DAY)
    try:
        fire = calendar.next_fire(expression, zone, 0, after)
    except ValueError:  # a date that never comes, such as 31 February
        assert expected is None
        return
    if expected is None:
        assert fire > after + 3 * DAY - MINUTE
        assert _matches(fields, _wall(fire, ZoneInfo(zone)))
    else:
        assert iso(fire) == iso(expected)
