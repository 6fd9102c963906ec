"""Periods (T24), on real zones. A second implementation walks minute by minute and asks the standard library what the
clocks show.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.core import zones
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, iso, parse_instant
from chalicelib.core.time.periods import Calendar, Period, Unit, Weekday, shown_twice
from tests.core.builders import thorough

UNUSUAL = (
    *("America/New_York", "Europe/Paris", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe"),
    *("Africa/Casablanca", "Asia/Kolkata", "Asia/Kathmandu", "America/Havana", "America/St_Johns", "UTC"),
    *("Antarctica/Troll", "Asia/Amman", "Africa/Cairo", "America/Asuncion", "Pacific/Kwajalein", "Asia/Gaza"),
)
# Days since 1970, from 1973 to 2037. Before, the offset of one zone had seconds, at which this file does not look.
FIRST, LAST = parse_instant("1973-01-01T00:00:00Z") // DAY, parse_instant("2037-12-20T00:00:00Z") // DAY
EVERY = tuple(sorted((zones.PINNED.folder / "zones").read_text().split()))
LENGTHS: tuple[tuple[Unit, int], ...] = (
    *(("minute", count) for count in (15, 20, 30)),
    *(("hour", count) for count in (1, 2, 3, 4, 6, 8, 12)),
    *((unit, 1) for unit in ("day", "week", "month", "quarter", "year")),
)


def calendar(unit: Unit, zone: str = "UTC", count: int = 1, starts: Weekday = "mon", offsets: bool = False) -> Calendar:
    tz = zones.zone(zone)
    assert tz is not None
    return Calendar(unit, count, zone, tz, starts, offsets)


def spans(found: Iterator[Period] | list[Period]) -> list[tuple[str, str]]:
    """The label of each period, and its start to the minute in UTC."""
    return [(period.label, iso(period.start)[:16]) for period in found]


def of_day(day: str, parts: Calendar) -> list[Period]:
    """The periods of a calendar date in their zone."""
    days = calendar("day", parts.zone)
    found = days.named(datetime.fromisoformat(day))
    assert found is not None
    return list(parts.between(found.start, found.end))


# -- the second implementation -----------------------------------------------------------------------------------------


def name_of(moment: datetime, unit: Unit, count: int, starts: str) -> str:
    """The name of the period with this wall time, spelled in a way of its own."""
    match unit:
        case "minute":
            return f"{moment:%Y-%m-%d %H} {moment.minute // count}"
        case "hour":
            return f"{moment:%Y-%m-%d} {moment.hour // count}"
        case "day":
            return f"{moment:%Y-%m-%d}"
        case "week":
            return f"{moment:%G %V}" if starts == "mon" else f"{moment + timedelta(days=1):%G %V}"
        case "month":
            return f"{moment:%Y-%m}"
        case "quarter":
            return f"{moment:%Y} {(moment.month + 2) // 3}"
        case "year":
            return f"{moment:%Y}"


def walked(parts: Calendar, since: Instant, until: Instant) -> list[Instant]:
    """The starts of the periods in a span, of which each name is new: minute by minute."""
    seen: set[str] = set()
    starts = []
    for instant in range(since, until, MINUTE):
        moment = datetime.fromtimestamp(instant // 1000, parts.tz)
        name = name_of(moment, parts.unit, parts.count, parts.week_starts)
        name += f" {moment.utcoffset()}" if parts.offsets else ""
        if name not in seen:
            seen.add(name)
            starts.append(instant)
    return starts


@cache
def changes(zone: str) -> tuple[Instant, ...]:
    """Instants less than a day after which the clocks of a zone change."""
    tz = calendar("day", zone).tz
    offsets = [datetime.fromtimestamp(day * DAY // 1000, tz).utcoffset() for day in range(FIRST, LAST)]
    return tuple(FIRST * DAY + number * DAY for number, (one, other) in enumerate(pairwise(offsets)) if one != other)


@st.composite
def near_changes(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[str, Instant]:
    """A zone, and the beginning of a span of some days, mostly one in which its clocks change."""
    zone = draw(st.sampled_from(names))
    some_day = st.integers(FIRST, LAST).map(lambda day: day * DAY)
    return zone, draw(st.sampled_from(changes(zone)) | some_day if changes(zone) else some_day)


APIA = ("Pacific/Apia", parse_instant("2011-12-30T00:00:00Z"))
ST_JOHNS = ("America/St_Johns", parse_instant("2006-10-29T00:00:00Z"))


@thorough
@given(near_changes((*UNUSUAL, *EVERY)), st.sampled_from(LENGTHS), st.booleans(), st.sampled_from(["mon", "sun"]))
@example(APIA, ("day", 1), False, "mon")
@example(ST_JOHNS, ("day", 1), False, "mon")
@example(ST_JOHNS, ("minute", 15), False, "mon")
@example(("Australia/Lord_Howe", parse_instant("2026-04-04T00:00:00Z")), ("hour", 1), True, "mon")
@example(("America/Sao_Paulo", parse_instant("2018-11-03T00:00:00Z")), ("hour", 6), False, "mon")
@example(("Antarctica/Troll", parse_instant("2026-10-25T00:00:00Z")), ("hour", 1), False, "mon")
def test_t24_periods_begin_where_the_clocks_first_show_them(
    near: tuple[str, Instant], length: tuple[Unit, int], offsets: bool, starts: Weekday
) -> None:
    zone, change = near
    offsets = offsets and length[0] in ("minute", "hour")
    parts = calendar(length[0], zone, length[1], starts, offsets)
    since, until = change - 2 * DAY, change + 2 * DAY
    # A period that has begun before the span may be seen again within it, so only the middle is compared.
    expected = [at for at in walked(parts, since, until) if at >= since + DAY]
    assert [period.start for period in parts.between(since + DAY, until)] == expected


@thorough
@given(near_changes((*UNUSUAL, *EVERY)), st.integers(0, 3 * DAY), st.sampled_from(LENGTHS), st.booleans())
def test_t24_every_instant_is_in_one_period(
    near: tuple[str, Instant], later: int, length: tuple[Unit, int], offsets: bool
) -> None:
    zone, change = near
    parts = calendar(length[0], zone, length[1], offsets=offsets and length[0] in ("minute", "hour"))
    period = parts.at(change + later)
    assert period.start <= change + later < period.end
    assert parts.at(period.start) == parts.at(period.end - 1) == period == parts.named(period.wall, period.offset)
    assert parts.previous(parts.next(period)) == period == parts.next(parts.previous(period))
    assert parts.next(period).start == period.end


# -- examples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "day", "hours", "with_offsets"),
    [
        ("America/New_York", "2026-03-07", 24, 24),
        ("America/New_York", "2026-03-08", 23, 23),
        ("America/New_York", "2026-11-01", 24, 25),
        ("Europe/Paris", "2026-03-29", 23, 23),
        ("Europe/Paris", "2026-10-25", 24, 25),
        ("America/Sao_Paulo", "2018-11-04", 23, 23),  # midnight is skipped
        ("America/Sao_Paulo", "2018-02-17", 24, 25),  # 23:00 comes twice
        ("Australia/Lord_Howe", "2026-10-04", 24, 24),  # 02:00 to 02:30 is skipped
        ("Australia/Lord_Howe", "2026-04-05", 24, 25),  # 01:30 to 02:00 comes twice
        ("Africa/Casablanca", "2026-02-15", 24, 25),
        ("Africa/Casablanca", "2026-03-22", 23, 23),
        ("Asia/Kolkata", "2026-03-29", 24, 24),
        ("Pacific/Apia", "2011-12-31", 24, 24),
    ],
)
def test_t24_hours_of_a_local_day(zone: str, day: str, hours: int, with_offsets: int) -> None:
    assert len(of_day(day, calendar("hour", zone))) == hours
    assert len(of_day(day, calendar("hour", zone, offsets=True))) == with_offsets


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-03-30", 24), ("2026-10-25", 25)])
def test_t24_hours_in_utc_of_a_local_day(day: str, hours: int) -> None:
    found = calendar("day", "Europe/Paris").named(datetime.fromisoformat(day))
    assert found is not None
    parts = list(calendar("hour").between(found.start, found.end))
    assert (len(parts), parts[0].start, parts[-1].end) == (hours, found.start, found.end)


def test_t24_an_hour_that_comes_twice_is_one_of_two_hours() -> None:
    found = of_day("2026-10-25", calendar("hour", "Europe/Paris"))
    assert spans(found[1:4]) == [
        ("2026-10-25T01", "2026-10-24T23:00"),
        ("2026-10-25T02", "2026-10-25T00:00"),
        ("2026-10-25T03", "2026-10-25T02:00"),
    ]
    assert found[2].end - found[2].start == 2 * HOUR


def test_t24_with_offsets_an_hour_that_comes_twice_is_two() -> None:
    found = of_day("2026-10-25", calendar("hour", "Europe/Paris", offsets=True))
    assert spans(found[1:5]) == [
        ("2026-10-25T01+02:00", "2026-10-24T23:00"),
        ("2026-10-25T02+02:00", "2026-10-25T00:00"),
        ("2026-10-25T02+01:00", "2026-10-25T01:00"),
        ("2026-10-25T03+01:00", "2026-10-25T02:00"),
    ]


def test_t24_a_date_that_a_zone_skips_is_no_period() -> None:
    days = calendar("day", "Pacific/Apia")
    assert days.named(datetime(2011, 12, 30)) is None
    before = days.named(datetime(2011, 12, 29))
    assert before is not None
    assert days.next(before).label == "2011-12-31"
    week = calendar("week", "Pacific/Apia").at(before.start)
    assert (week.label, week.end - week.start) == ("2011-W52", 6 * DAY)


def test_t24_an_hour_that_the_clocks_skip_is_no_period() -> None:
    hours = calendar("hour", "Europe/Paris")
    assert hours.named(datetime(2026, 3, 29, 2)) is None
    half_skipped = calendar("hour", "Australia/Lord_Howe").named(datetime(2026, 10, 4, 2))
    assert half_skipped is not None
    assert (iso(half_skipped.start)[11:16], half_skipped.end - half_skipped.start) == ("15:30", HOUR // 2)


def test_t24_the_offset_of_a_period_must_be_that_of_the_zone() -> None:
    hours = calendar("hour", "Europe/Paris", offsets=True)
    assert hours.named(datetime(2026, 7, 1, 5), timedelta(hours=1)) is None
    assert hours.named(datetime(2026, 7, 1, 5), timedelta(hours=2)) is not None


def test_t24_a_day_begins_after_a_midnight_that_is_skipped() -> None:
    day = calendar("day", "America/Sao_Paulo").named(datetime(2018, 11, 4))
    assert day is not None
    assert (iso(day.start), day.end - day.start) == ("2018-11-04T03:00:00.000Z", 23 * HOUR)


@pytest.mark.parametrize(
    ("unit", "starts", "labels"),
    [
        ("week", "mon", ["2020-W53", "2021-W01", "2021-W02"]),
        ("week", "sun", ["week-2020-12-27", "week-2021-01-03", "week-2021-01-10"]),
        ("month", "mon", ["2020-12", "2021-01", "2021-02"]),
        ("quarter", "mon", ["2020-Q4", "2021-Q1", "2021-Q2"]),
        ("year", "mon", ["2020", "2021", "2022"]),
        ("day", "mon", ["2020-12-31", "2021-01-01", "2021-01-02"]),
    ],
)
def test_t24_labels_around_a_new_year(unit: Unit, starts: Weekday, labels: list[str]) -> None:
    periods = calendar(unit, starts=starts)
    first = periods.at(parse_instant("2020-12-31T12:00:00Z"))
    second = periods.next(first)
    assert [first.label, second.label, periods.next(second).label] == labels


@pytest.mark.parametrize(("year", "days"), [(2023, 365), (2024, 366)])
def test_t24_days_of_a_year(year: int, days: int) -> None:
    found = calendar("year", "Europe/Paris").named(datetime(year, 1, 1))
    assert found is not None
    parts = list(calendar("day", "Europe/Paris").between(found.start, found.end))
    assert (len(parts), parts[0].label, parts[-1].label) == (days, f"{year}-01-01", f"{year}-12-31")


def test_t24_a_period_of_quarters_of_an_hour() -> None:
    found = calendar("minute", "Asia/Kathmandu", 15).at(parse_instant("2026-03-01T00:07:00Z"))
    assert spans([found]) == [("2026-03-01T05:45", "2026-03-01T00:00")]


def test_t24_the_last_year_has_an_end() -> None:
    for unit in ("day", "week", "month", "quarter", "year"):
        last = calendar(unit).at(parse_instant("9998-12-31T23:59:59Z"))
        assert last.end > last.start > parse_instant("9997-12-31T00:00:00Z")


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("UTC", 0), ("Asia/Kolkata", 0), ("Europe/Paris", 1), ("Australia/Lord_Howe", 0.5), ("Antarctica/Troll", 2)],
)
def test_t24_the_span_that_clocks_show_twice(zone: str, hours: float) -> None:
    assert shown_twice(calendar("day", zone).tz, 2020, 2037) == timedelta(hours=hours)
