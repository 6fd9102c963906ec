"""Windows of wall time (C3) and the next time that a clock shows an hour (T18), on real zones.

`shown` walks through the minutes and yields the wall times that the clock shows for the first time: mostly one, all
minutes of a gap at once, none in a second pass. Openings, closings and arrivals follow from these.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, iso, parse_instant
from chalicelib.core.time import windows
from chalicelib.core.time.windows import DAYS, Window
from tests.core.builders import brief, thorough

HOWE = "Australia/Lord_Howe"
# A zone and an instant at which its clocks change.
CHANGES = [
    ("America/New_York", "2026-03-08T07:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("Europe/Paris", "2026-03-29T01:00:00Z"),
    ("Europe/Paris", "2026-10-25T01:00:00Z"),
    (HOWE, "2026-04-04T15:00:00Z"),  # half an hour is repeated
    (HOWE, "2026-10-03T15:30:00Z"),  # half an hour is skipped
    ("Africa/Casablanca", "2026-02-15T02:00:00Z"),
    ("Africa/Casablanca", "2026-03-22T02:00:00Z"),
    ("America/Sao_Paulo", "2018-02-18T02:00:00Z"),  # the hour before midnight is repeated
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),  # the hour after midnight is skipped
    ("America/St_Johns", "2010-11-07T02:31:00Z"),  # a minute past midnight, back to yesterday
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),  # a Friday is skipped
    ("Asia/Kolkata", "2026-03-29T01:00:00Z"),  # no change, but an offset of half an hour
]
NIGHT = Window("22:00", "06:00", "UTC", ("fri",))  # 2026-03-06 is a Friday


def short(instant: Instant) -> str:
    return iso(instant).removesuffix(":00.000Z")


def next_window(window: Window, after: str) -> tuple[str, str]:
    """The next opening and its closing, as minutes in UTC."""
    opens = windows.next_opening(window, parse_instant(after))
    return short(opens), short(windows.opening(window, opens)[1])


# -- the window ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "inside"),
    [
        ("2026-03-02T08:59:59.999Z", False),
        ("2026-03-02T09:00:00Z", True),
        ("2026-03-02T16:59:59.999Z", True),
        ("2026-03-02T17:00:00Z", False),
    ],
)
def test_c3_a_window_includes_its_first_instant_not_its_last(now: str, inside: bool) -> None:
    assert windows.is_inside(Window("09:00", "17:00", "UTC"), parse_instant(now)) is inside


@pytest.mark.parametrize(
    ("now", "inside"),
    [
        ("2026-03-06T05:59:00Z", False),  # Friday's early hours are Thursday's night
        ("2026-03-06T22:00:00Z", True),
        ("2026-03-07T05:59:00Z", True),
        ("2026-03-07T06:00:00Z", False),
        ("2026-03-07T22:00:00Z", False),
    ],
)
def test_c3_a_window_over_midnight_belongs_to_the_day_it_begins(now: str, inside: bool) -> None:
    assert windows.is_inside(NIGHT, parse_instant(now)) is inside


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        ("2026-03-06T21:59:59.999Z", "2026-03-06T22:00"),
        ("2026-03-06T22:00:00Z", "2026-03-13T22:00"),
        ("2026-03-07T01:00:00Z", "2026-03-13T22:00"),
    ],
)
def test_c3_the_next_opening_is_strictly_later_than_now(now: str, opens: str) -> None:
    assert short(windows.next_opening(NIGHT, parse_instant(now))) == opens


def test_c3_inside_shows_this_closing_and_outside_the_next_one() -> None:
    for now in ("2026-03-06T12:00:00Z", "2026-03-06T23:00:00Z", "2026-03-07T05:59:59.999Z"):
        assert short(windows.opening(NIGHT, parse_instant(now))[1]) == "2026-03-07T06:00"


def test_c3_a_day_may_end_at_24_00_where_the_next_one_begins() -> None:
    monday = Window("00:00", "24:00", "Europe/Paris", ("mon",))
    assert next_window(monday, "2026-03-01T12:00:00Z") == ("2026-03-01T23:00", "2026-03-02T23:00")

    always = Window("00:00", "24:00", "Europe/Paris")
    midnight = windows.opening(always, parse_instant("2026-03-02T12:00:00Z"))[1]
    assert windows.is_inside(always, midnight)
    assert windows.next_opening(always, midnight - 1) == midnight


@pytest.mark.parametrize("end", ["24:00", "00:00"])
def test_c3_midnight_ends_a_window_under_either_name(end: str) -> None:
    window = Window("18:00", end, "Asia/Kolkata")
    assert next_window(window, "2026-03-02T12:00:00Z") == ("2026-03-02T12:30", "2026-03-02T18:30")


@pytest.mark.parametrize(
    ("window", "before", "opens", "closes"),
    [
        # given an hour or half an hour that is skipped, then what would end or begin in it does so right after it
        (Window("01:00", "02:30", "Europe/Paris"), "2026-03-28T12:00:00Z", "2026-03-29T00:00", "2026-03-29T01:00"),
        (Window("02:30", "04:00", "Europe/Paris"), "2026-03-28T12:00:00Z", "2026-03-29T01:00", "2026-03-29T02:00"),
        (Window("23:00", "02:10", HOWE), "2026-10-03T12:00:00Z", "2026-10-03T12:30", "2026-10-03T15:30"),
        (Window("00:00", "06:00", "America/Sao_Paulo"), "2018-11-03T12:00:00Z", "2018-11-04T03:00", "2018-11-04T08:00"),
        # given one that lies wholly in the gap, then it does not open that day
        (Window("02:15", "02:45", "Europe/Paris"), "2026-03-28T12:00:00Z", "2026-03-30T00:15", "2026-03-30T00:45"),
        # given an hour that is repeated, then both ends are of its first pass
        (Window("01:00", "02:30", "Europe/Paris"), "2026-10-24T12:00:00Z", "2026-10-24T23:00", "2026-10-25T00:30"),
        (Window("02:30", "04:00", "Europe/Paris"), "2026-10-24T12:00:00Z", "2026-10-25T00:30", "2026-10-25T03:00"),
        (Window("02:15", "02:45", "Europe/Paris"), "2026-10-24T12:00:00Z", "2026-10-25T00:15", "2026-10-25T00:45"),
        (Window("22:00", "01:45", HOWE), "2026-04-04T03:00:00Z", "2026-04-04T11:00", "2026-04-04T14:45"),
        # given a clock that is put back over midnight, then the day that has begun continues
        (Window("00:00", "06:00", "America/St_Johns"), "2010-11-06T12:00:00Z", "2010-11-07T02:30", "2010-11-07T09:30"),
        # given a night whose clocks change, then it is an hour shorter or longer
        (Window("22:00", "06:00", "Europe/Paris"), "2026-03-28T12:00:00Z", "2026-03-28T21:00", "2026-03-29T04:00"),
        (Window("22:00", "06:00", "Europe/Paris"), "2026-10-24T12:00:00Z", "2026-10-24T20:00", "2026-10-25T05:00"),
    ],
)
def test_c3_a_window_is_right_on_a_day_whose_clocks_change(
    window: Window, before: str, opens: str, closes: str
) -> None:
    assert next_window(window, before) == (opens, closes)


def test_c3_a_closed_window_stays_closed_in_a_repeated_hour() -> None:
    window = Window("02:15", "02:45", "Europe/Paris")
    first_pass, second_pass = parse_instant("2026-10-25T00:30:00Z"), parse_instant("2026-10-25T01:30:00Z")
    assert (windows.is_inside(window, first_pass), windows.is_inside(window, second_pass)) == (True, False)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ((), "between 22:00 and 06:00 in Europe/Paris"),
        (("fri",), "between 22:00 and 06:00 in Europe/Paris, on fri"),
        (("sat", "fri"), "between 22:00 and 06:00 in Europe/Paris, on fri and sat"),
        (("sun", "mon", "fri"), "between 22:00 and 06:00 in Europe/Paris, on mon, fri and sun"),
    ],
)
def test_c3_a_window_is_described_in_plain_text(days: tuple[str, ...], words: str) -> None:
    assert windows.describe(Window("22:00", "06:00", "Europe/Paris", days)) == words


# -- the clock -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "clock"), [("00:00", (0, 0)), ("06:05", (6, 5)), ("23:59", (23, 59))])
def test_a_clock_time_is_parsed_as_hour_and_minute(text: str, clock: tuple[int, int]) -> None:
    assert windows.parse_clock(text, "start") == windows.parse_clock(text, "end", is_end=True) == clock


@pytest.mark.parametrize("text", ["", "6:00", "24:01", "23:60", "12", "12:00:00", "-1:00", "noon", "12:00 ", "٠٦:٠٠"])
@pytest.mark.parametrize("is_end", [False, True])
def test_an_impossible_clock_time_is_refused_with_field(text: str, is_end: bool) -> None:
    with pytest.raises(SluiceError) as caught:
        windows.parse_clock(text, "window.start", is_end=is_end)

    assert (caught.value.code, caught.value.field) == ("invalid", "window.start")
    assert caught.value.message.startswith("expected a time of day from 00:00 to ")
    assert caught.value.message.endswith(f"written HH:MM, got {text!r}")


def test_24_00_is_only_the_end_of_a_window() -> None:
    assert windows.parse_clock("24:00", "end", is_end=True) == (24, 0)
    with pytest.raises(SluiceError, match="from 00:00 to 23:59") as caught:
        windows.parse_clock("24:00", "start")
    assert caught.value.hint == "use 00:00; only the end of a window may be 24:00"


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(SluiceError, match="expected a time zone"):
        windows.is_inside(Window("09:00", "17:00", "Europe/Atlantis"), 0)


@pytest.mark.parametrize(
    ("clock", "zone", "days", "after", "expected"),
    [
        ("06:00", "UTC", (), "2026-03-02T05:59:59.999Z", "2026-03-02T06:00"),
        ("06:00", "UTC", (), "2026-03-02T06:00:00Z", "2026-03-03T06:00"),
        ("06:00", "UTC", ("mon", "thu"), "2026-03-02T06:00:00Z", "2026-03-05T06:00"),
        ("06:00", "Asia/Kolkata", ("mon",), "2026-03-01T12:00:00Z", "2026-03-02T00:30"),
        ("02:30", "Europe/Paris", (), "2026-03-28T12:00:00Z", "2026-03-29T01:00"),  # skipped
        ("02:30", "Europe/Paris", (), "2026-10-24T12:00:00Z", "2026-10-25T00:30"),  # shown twice
        ("02:30", "Europe/Paris", (), "2026-10-25T01:00:00Z", "2026-10-26T01:30"),  # from an instant between the two
        ("12:00", "Pacific/Apia", ("fri",), "2011-12-29T12:00:00Z", "2011-12-30T10:00"),  # the day is skipped
    ],
)
def test_t18_the_next_time_an_hour_is_shown_is_found(
    clock: str, zone: str, days: tuple[str, ...], after: str, expected: str
) -> None:
    assert short(windows.next_clock(clock, zone, days, parse_instant(after))) == expected


# -- the walk through the minutes ----------------------------------------------------------------------------------


def shown(zone: str, start: Instant, until: Instant) -> Iterator[tuple[Instant, list[datetime]]]:
    """Each minute of a span, with the wall times that the clock reaches then for the first time."""
    place, minute = ZoneInfo(zone), timedelta(minutes=1)
    first = start - 4 * HOUR  # no clock in these tests is put back by more
    highest = wall(first, place)
    for instant in range(first, until, MINUTE):
        new, reads = [], wall(instant, place)
        while highest < reads:
            highest += minute
            new.append(highest)
        if instant >= start:
            yield instant, new


def wall(instant: Instant, place: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(instant // 1000, UTC).astimezone(place).replace(tzinfo=None)


def shows(reads: datetime, clock: str, days: tuple[str, ...] = ()) -> bool:
    is_time = (reads.hour, reads.minute) == (int(clock[:2]), int(clock[3:]))
    return is_time and (not days or DAYS[reads.weekday()] in days)


def walk(window: Window, start: Instant, until: Instant) -> list[tuple[Instant, Instant]]:
    """The windows that open and close within a span, by the walk."""
    found, opens, end = [], None, window.end.replace("24:00", "00:00")
    for instant, new in shown(window.zone, start, until):
        for each in new:
            if opens is not None and shows(each, end):
                found += [(opens, instant)] if opens < instant else []
                opens = None
            if shows(each, window.start, window.days):
                opens = instant
    return found


clocks = st.sampled_from(["00:00", "00:30", "01:30", "01:45", "02:00", "02:15", "02:45", "03:00", "23:30"]) | st.builds(
    "{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59)
)
day_sets = st.sets(st.sampled_from(DAYS)).map(tuple)
changes = st.sampled_from(CHANGES)


@given(clocks, clocks | st.just("24:00"), changes, st.integers(-30 * HOUR, 30 * HOUR))
@example("02:15", "02:45", ("Europe/Paris", "2026-03-29T01:00:00Z"), -HOUR)
@example("02:15", "02:45", ("Europe/Paris", "2026-10-25T01:00:00Z"), 30 * MINUTE)
@example("22:00", "06:00", ("Pacific/Apia", "2011-12-30T10:00:00Z"), 3 * HOUR)
@example("00:00", "24:00", ("America/St_Johns", "2010-11-07T02:31:00Z"), 10 * MINUTE)
@thorough
def test_c3_around_a_clock_change_a_window_follows_the_clock(
    start: str, end: str, change: tuple[str, str], offset: int
) -> None:
    assume(start != end)
    window, now = Window(start, end, change[0]), parse_instant(change[1]) + offset
    agree(window, now, days_ahead=3)


@given(clocks, clocks | st.just("24:00"), day_sets, changes, st.integers(0, 15 * 365 * DAY))
@brief
def test_c3_a_window_is_open_when_the_clock_shows_it_on_its_days(
    start: str, end: str, days: tuple[str, ...], change: tuple[str, str], offset: int
) -> None:
    assume(start != end)
    window, now = Window(start, end, change[0], days), parse_instant("2012-01-01T00:00:00Z") + offset
    agree(window, now, days_ahead=9)


def agree(window: Window, now: Instant, days_ahead: int) -> None:
    # The longest window of the longest day takes a little more than a day.
    minute = now // MINUTE * MINUTE
    walked = walk(window, minute - 26 * HOUR, minute + days_ahead * DAY)
    assert windows.is_inside(window, now) == any(opens <= now < closes for opens, closes in walked)
    assert windows.next_opening(window, now) == min(opens for opens, _ in walked if opens > now)
    assert windows.opening(window, now)[1] == min(closes for _, closes in walked if closes > now)


@given(clocks, day_sets, changes, st.integers(-9 * DAY, 2 * DAY))
@brief
def test_t18_the_next_time_is_the_first_that_the_clock_shows_it(
    clock: str, days: tuple[str, ...], change: tuple[str, str], offset: int
) -> None:
    after = parse_instant(change[1]) + offset
    walked = shown(change[0], after // MINUTE * MINUTE, after + 9 * DAY)
    expected = next(at for at, new in walked if at > after and any(shows(each, clock, days) for each in new))
    assert windows.next_clock(clock, change[0], days, after) == expected
