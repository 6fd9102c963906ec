"""Lists of days in a zone: whether they contain an instant, the next instant of theirs, and lists without a day (T6,
C17).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, Instant, iso, parse_instant
from chalicelib.core.time import days
from chalicelib.core.time.days import Days
from tests.core.builders import NOON, brief

# Clocks go forward at midnight in Cairo (24 April 2026) and Beirut (29 March), by half an hour on Lord Howe.
ZONES = ["UTC", "Asia/Tokyo", "America/New_York", "Africa/Cairo", "Asia/Beirut", "Australia/Lord_Howe"]
ENTRIES: list[Any] = [
    "mon", "sat", "sun", "12-25", "01-01", "02-29", "2026-03-06", "2026-04-24", "2026-12-31",
    {"from": "2026-03-03", "to": "2026-03-05"}, {"from": "2026-03-05", "to": "2026-03-20"},
    {"from": "2026-12-24", "to": "2027-01-06"}, {"from": "03-10", "to": "03-17"}, {"from": "11-15", "to": "02-15"},
    {"from": "2026-03-04T09:30:00Z", "to": "2026-03-04T17:00:00Z"},
]  # fmt: skip
lists = st.lists(st.sampled_from(ENTRIES), max_size=5)


def read(entries: list[Any], zone: str = "UTC") -> Days:
    return days.read(days.parse(entries, "only"), zone)


def holds(entries: list[Any], zone: str, instant: Instant) -> bool:
    """The rule itself: whether an instant falls into one of the entries."""
    day = datetime.fromtimestamp(instant / 1000, ZoneInfo(zone)).date()
    for entry in entries:
        if isinstance(entry, dict) and "T" in entry["from"]:
            found = parse_instant(entry["from"]) <= instant < parse_instant(entry["to"])
        elif isinstance(entry, dict) and len(entry["from"]) == 5:
            first, last, shown = entry["from"], entry["to"], f"{day:%m-%d}"
            found = first <= shown <= last if first <= last else shown >= first or shown <= last
        elif isinstance(entry, dict):
            found = entry["from"] <= day.isoformat() <= entry["to"]
        else:
            found = entry in (f"{day:%a}".lower(), f"{day:%m-%d}", day.isoformat())
        if found:
            return True
    return False


@brief
@given(only=lists, excluding=lists, zone=st.sampled_from(ZONES), hours=st.integers(0, 24 * 330))
def test_it_opens_where_a_search_of_each_day_finds_it(
    only: list[Any], excluding: list[Any], zone: str, hours: int
) -> None:
    """Every entry begins and ends at half an hour in UTC, so a walk by half hours misses nothing."""
    now = NOON + hours * HOUR
    walk = range(now, now + 40 * 24 * HOUR, HOUR // 2)
    first = next((at for at in walk if (not only or holds(only, zone, at)) and not holds(excluding, zone, at)), None)
    opens = days.first_allowed(read(only, zone) if only else None, read(excluding, zone), now)
    if first is not None:
        assert opens == first
    else:
        assert opens is None or opens > walk[-1]


@pytest.mark.parametrize(
    ("zone", "only", "now", "opens"),
    [
        # On this Friday the clocks of Cairo go from 24:00 to 01:00: its first instant is 01:00.
        ("Africa/Cairo", "2026-04-24", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00.000Z"),
        ("Pacific/Kiritimati", "01-01", "2026-12-31T09:59:59Z", "2026-12-31T10:00:00.000Z"),
        ("America/New_York", "01-01", "2027-01-01T04:59:59Z", "2027-01-01T05:00:00.000Z"),
        # Of the clocks that go back at 24:00 in Cairo, the second 23:00 still belongs to Thursday.
        ("Africa/Cairo", "fri", "2026-10-29T21:30:00Z", "2026-10-29T22:00:00.000Z"),
        # Samoa had no 30 December 2011, so that day never comes; the next Friday does.
        ("Pacific/Apia", "fri", "2011-12-30T09:00:00Z", "2012-01-05T10:00:00.000Z"),
    ],
)
def test_a_day_begins_at_its_first_instant_in_the_zone(zone: str, only: str, now: str, opens: str) -> None:
    assert iso(days.first_allowed(read([only], zone), read([], zone), parse_instant(now)) or 0) == opens


def test_a_day_is_over_at_the_midnight_of_its_zone() -> None:
    friday = read(["fri"], "Africa/Cairo")
    assert iso(friday.end_of(parse_instant("2026-04-24T12:00:00Z")) or 0) == "2026-04-24T21:00:00.000Z"


@pytest.mark.parametrize(
    ("entries", "end"),
    [
        (["2026-03-02", "2026-03-03"], "2026-03-04"),
        (["2026-03-02", "2026-03-04"], "2026-03-03"),
        ([{"from": "2026-03-01", "to": "2026-03-05"}, {"from": "2026-03-05", "to": "2026-03-20"}], "2026-03-21"),
        ([{"from": "2026-03-01", "to": "2026-03-20"}, "2026-03-05"], "2026-03-21"),
        ([{"from": "2026-03-02T09:00:00Z", "to": "2026-03-02T17:00:00Z"}, "mon"], "2026-03-03"),
    ],
)
def test_days_that_touch_or_overlap_end_together(entries: Any, end: str) -> None:
    assert read(entries).end_of(NOON) == parse_instant(f"{end}T00:00:00Z")


def test_the_end_of_a_day_is_later_than_each_instant_in_it() -> None:
    """In 2010, the clocks of St. John's went back from Sunday 00:01 to Saturday 23:01: Saturday was over twice."""
    again = parse_instant("2010-11-07T03:00:00Z")
    assert read(["sat"], "America/St_Johns").end_of(again) == again + 1


def test_a_search_ends_with_its_horizon_or_the_calendar() -> None:
    """Any day comes within 40 years, so a search that takes longer finds nothing."""
    for ends, opens in ((days.HORIZON - 1, NOON + days.HORIZON - 1), (days.HORIZON, None)):
        window = {"from": iso(NOON), "to": iso(NOON + ends)}
        assert days.first_allowed(None, read([window]), NOON) == opens
    assert read(["12-25"]).next_begin(parse_instant("9999-12-24T12:00:00Z")) == parse_instant("9999-12-25T00:00:00Z")
    assert read(["12-25"]).next_begin(parse_instant("9999-12-25T12:00:00Z")) is None


def test_years_of_single_dates_are_skipped_at_once() -> None:
    dates = [f"{date(2026, 3, 2) + timedelta(days=number)}" for number in range(days.MAX_ENTRIES)]
    opens = days.first_allowed(None, read(dates), NOON)
    assert opens == parse_instant("2027-04-06T00:00:00Z")
    only = read(["mon"])
    assert days.first_allowed(only, read(dates), NOON) == parse_instant("2027-04-12T00:00:00Z")


def test_a_day_that_comes_once_in_decades_is_found() -> None:
    """The next 29 February that is a Monday after 2072 is that of 2112: 2100 is no leap year."""
    others = read(["tue", "wed", "thu", "fri", "sat", "sun"])
    after = parse_instant("2072-03-01T00:00:00Z")
    opens = days.first_allowed(read(["02-29"]), others, after)
    assert opens is not None
    day = datetime.fromtimestamp(opens / 1000, UTC)
    assert (f"{day:%a %m-%d}", opens - after < days.HORIZON) == ("Mon 02-29", True)


def test_each_day_of_the_year_is_each_weekday_in_40_years() -> None:
    """The reason for the bound of every search."""
    last: dict[tuple[int, int, int], date] = {}
    longest = timedelta()
    for number in range(400 * 366):
        day = date(2000, 1, 1) + timedelta(days=number)
        pair = (day.month, day.day, day.weekday())
        longest = max(longest, day - last.get(pair, day))
        last[pair] = day
    assert len(last) == 366 * 7
    assert longest.days * 24 * HOUR < days.HORIZON


YEAR = [f"{date(2024, 1, 1) + timedelta(days=number):%m-%d}" for number in range(366)]
WORKING = ["mon", "tue", "wed", "thu", "fri"]


@pytest.mark.parametrize(
    ("only", "excluding", "nothing"),
    [
        ([], YEAR, True),
        ([], YEAR[:-1], False),
        ([], [day for day in YEAR if day != "02-29"], False),
        (["12-25"], ["12-25"], True),
        (["sat", "sun"], ["sat", "sun"], True),
        (["sat", "12-25"], ["sat"], False),
        (["2026-03-07"], ["sat"], True),
        (["2026-03-07", "2026-03-09"], ["sat"], False),
        (["2026-03-09"], [{"from": "2026-03-01", "to": "2026-03-31"}], True),
        (["12-25", {"from": "12-30", "to": "01-02"}], [{"from": "12-24", "to": "01-02"}], True),
        (["12-25"], [{"from": "12-26", "to": "12-24"}], False),
        ([], [{"from": "01-01", "to": "12-31"}], True),
        ([{"from": "2026-03-07", "to": "2026-03-08"}], ["sat", "sun"], True),
        ([{"from": "2026-03-07", "to": "2026-03-09"}], ["sat", "sun"], False),
        ([{"from": "2026-03-07", "to": "9998-12-31"}], [{"from": "2026-03-07", "to": "2090-01-01"}], False),
        (WORKING, [{"from": "1970-01-01", "to": "2090-01-01"}], False),
        # Of a Saturday in UTC, some hours are Friday in America.
        ([{"from": "2026-03-07T00:00:00Z", "to": "2026-03-07T08:00:00Z"}], ["sat"], False),
        ([{"from": "2026-03-07T00:00:00Z", "to": "2026-03-07T08:00:00Z"}], YEAR, True),
        (["2020-01-01"], ["sat"], False),  # past, and no contradiction
        (["sat", "2026-03-09"], ["sat", "2026-03-09"], True),
        (["sat", "2026-03-09"], ["sat", "2026-03-10"], False),
        # Of a window that is longer than a search, the last day alone is left.
        (
            [{"from": "2026-03-07", "to": f"{date(2026, 3, 7) + timedelta(days=days.MAX_DAYS)}"}],
            [{"from": "2026-03-07", "to": f"{date(2026, 3, 7) + timedelta(days=days.MAX_DAYS - 1)}"}],
            False,
        ),
    ],
)
def test_contradictory_rules_allow_no_day_at_any_time(only: Any, excluding: Any, nothing: bool) -> None:
    assert days.is_contradiction(read(only) if only else None, read(excluding)) is nothing


@pytest.mark.parametrize(
    ("entry", "field", "words"),
    [
        ("9999-12-31", "only.0", "expected a date from 1970-01-01 to 9998-12-31, got '9999-12-31'"),
        ("1969-12-31", "only.0", "expected a date from 1970-01-01 to 9998-12-31, got "),
        ({"from": "2026-01-01", "to": "9999-12-31"}, "only.0.to", "expected a date from 1970-01-01 to 9998-12-31"),
        ({"from": "2026-01-01T00:00:00Z", "to": "9999-12-31T00:00:00Z"}, "only.0.to", "expected a date from 1970"),
        ({"from": "0001-01-01", "to": "2026-01-01"}, "only.0.from", "expected a date from 1970-01-01"),
        ({"from": "2026-03-01", "to": "2026-03-02T00:00:00Z"}, "only.0.from", "expected an RFC 3339 instant"),
        ("2026-W10-1", "only.0", "expected a date such as 2026-12-25"),
    ],
)
def test_a_date_that_no_zone_can_be_applied_to_is_refused(entry: Any, field: str, words: str) -> None:
    with pytest.raises(SluiceError) as caught:
        days.parse([entry], "only")
    assert (caught.value.field, caught.value.message[: len(words)]) == (field, words)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_the_last_accepted_date_ends_in_any_zone(zone: str) -> None:
    forever = read([{"from": "1970-01-01", "to": "9998-12-31"}], zone)
    assert (forever.end_of(NOON) or 0) > parse_instant("9998-12-31T00:00:00Z")
    assert days.first_allowed(None, forever, NOON) is None


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["mon"], "mon"),
        (["sat", "sun"], "sat and sun"),
        (["fri", "mon", "wed", "tue", "thu"], "mon to fri"),
        (["12-25", "mon", "tue", "wed", {"from": "2026-08-01", "to": "2026-08-14"}],
         "mon to wed, 12-25 and 2026-08-01 to 2026-08-14"),
        (["mon", "wed", "fri"], "mon, wed and fri"),
        (YEAR, "01-01, 01-02, 01-03 and 363 more"),
    ],
)  # fmt: skip
def test_a_long_list_is_shortened_in_its_description(entries: Any, words: str) -> None:
    assert days.describe(days.parse(entries, "only")) == words
