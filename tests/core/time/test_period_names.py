"""Formats of periods (T24): what they write they read back, and what does not determine a period is refused."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import zones
from chalicelib.core.definitions.period import LENGTHS
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant, iso, parse_instant
from chalicelib.core.time import period_names
from chalicelib.core.time.period_names import Names
from chalicelib.core.time.periods import Calendar, Weekday
from tests.core.builders import thorough
from tests.core.time.test_periods import UNUSUAL


def names(each: str, text: str, zone: str = "UTC", starts: Weekday = "mon") -> Names:
    unit, count, _ = LENGTHS[each]
    tz, form = zones.zone(zone), period_names.parse(text)
    assert tz is not None
    period_names.check(form, unit, count, starts)
    return Names(Calendar(unit, count, zone, tz, starts, period_names.has_offset(form)), form)


def values(text: str) -> dict[str, str]:
    """The values in folders: ``dt=2026-03-01/hour=07``."""
    return {key: value for key, _, value in (folder.partition("=") for folder in text.split("/"))}


def folders(of: dict[str, str]) -> str:
    return "/".join(f"{key}={value}" for key, value in of.items())


FORMATS: tuple[tuple[str, str], ...] = (
    ("15m", "dt=%Y-%m-%d/hour=%H/minute=%M%z"),
    ("20m", "at=%Y-%m-%dT%H:%M%z"),
    ("30m", "at=%Y%m%d%H%M%z"),
    ("hour", "dt=%Y-%m-%d/hour=%H"),
    ("hour", "dt=%Y-%m-%d/hour=%H%z"),
    ("hour", "year=%Y/month=%-m/day=%-d/hour=%-H"),
    ("hour", "at=%Y-%m-%d %H:00:00"),
    ("6h", "dt=%Y%m%d/hour=%H"),
    ("12h", "at=%Y%j-%-H"),
    ("day", "day=%Y-%m-%d"),
    ("day", "year=%Y/month=%m/day=%d"),
    ("day", "year=%Y/month=%Y-%m/day=%Y-%m-%d"),
    ("day", "day=%Y-%-j"),
    ("day", "d=%d.%m.%Y"),
    ("week", "week=%G-W%V"),
    ("week", "year=%G/week=%-V"),
    ("week", "week=%Y-%m-%d"),
    ("month", "month=%Y-%m"),
    ("month", "year=%Y/month=%-m"),
    ("quarter", "quarter=%YQ%q"),
    ("quarter", "quarter=%Y-%m"),
    ("year", "year=%Y"),
)
INSTANTS = st.integers(parse_instant("1930-01-01T00:00:00Z"), parse_instant("2120-01-01T00:00:00Z"))


@thorough
@given(st.sampled_from(FORMATS), st.sampled_from(UNUSUAL), INSTANTS)
def test_t24_a_format_reads_what_it_writes(form: tuple[str, str], zone: str, at: Instant) -> None:
    rule = names(*form, zone)
    period = rule.calendar.at(at)
    written = rule.write(period)
    assert rule.read(written) == period
    assert tuple(written) == rule.keys


@thorough
@given(st.sampled_from([form for form in FORMATS if "%z" not in form[1] and "%q" not in form[1]]), INSTANTS)
def test_t24_a_format_writes_what_strftime_writes(form: tuple[str, str], at: Instant) -> None:
    rule = names(*form)
    period = rule.calendar.at(at)
    expected = datetime.fromisoformat(iso(period.start)).strftime(form[1])
    assert folders(rule.write(period)) == expected


@thorough
@given(st.sampled_from(FORMATS), INSTANTS, st.data())
def test_t24_other_zeros_name_the_same_period(form: tuple[str, str], at: Instant, data: st.DataObject) -> None:
    each, text = form
    padded, bare = names(each, text.replace("%-", "%")), text
    for code in "mdjVHM":
        before, after = padded_beside(text, code)
        if before or after:
            continue
        if data.draw(st.booleans()):
            bare = bare.replace(f"%{code}", f"%-{code}")
    period = padded.calendar.at(at)
    assert padded.read(names(each, bare).write(period)) == period


def padded_beside(text: str, code: str) -> tuple[bool, bool]:
    """Whether there is a digit or another number right before and right after a field."""
    place = text.find(f"%{code}")
    if place < 0:
        return True, True
    after = text[place + 2 : place + 4]
    return place >= 2 and text[place - 2] == "%", after[:1] == "%" and after != "%z"


@pytest.mark.parametrize(
    ("each", "form", "text", "label"),
    [
        ("hour", "dt=%Y-%m-%d/hour=%H", "dt=2026-03-01/hour=7", "2026-03-01T07"),
        ("hour", "dt=%Y-%m-%d/hour=%H", "dt=2026-3-1/hour=07", "2026-03-01T07"),
        ("hour", "dt=%Y-%m-%d/hour=%H%z", "dt=2026-03-01/hour=07+0000", "2026-03-01T07+00:00"),
        ("15m", "at=%Y-%m-%dT%H:%M", "at=2026-03-01T7:5", None),
        ("15m", "at=%Y-%m-%dT%H:%M", "at=2026-03-01T07:45", "2026-03-01T07:45"),
        ("6h", "dt=%Y%m%d/hour=%H", "dt=20260301/hour=18", "2026-03-01T18"),
        ("day", "day=%Y-%j", "day=2026-60", "2026-03-01"),
        ("week", "week=%G-W%V", "week=2026-W53", "2026-W53"),
        ("week", "week=%G-W%V", "week=2025-W53", None),
        ("quarter", "quarter=%Y-Q%q", "quarter=2026-Q4", "2026-Q4"),
        ("quarter", "quarter=%Y-%m", "quarter=2026-10", "2026-Q4"),
    ],
)
def test_t24_names_of_folders(each: str, form: str, text: str, label: str | None) -> None:
    rule = names(each, form)
    if label is None:
        with pytest.raises(SluiceError):
            rule.read(values(text))
    else:
        assert rule.read(values(text)).label == label


@pytest.mark.parametrize(
    ("each", "form", "text", "message"),
    [
        ("hour", "d=%Y-%m-%d/h=%H", "d=2026-03-01/h=24", "expected a time of the calendar (hour must be in 0..23"),
        ("hour", "d=%Y-%m-%d/h=%H", "d=2026-03-01/h=x", "expected a value of the form h=%H, got 'h=x'"),
        ("hour", "d=%Y-%m-%d/h=%H", "d=2026-03-01/h=007", "expected a value of the form h=%H, got 'h=007'"),
        ("hour", "d=%Y-%m-%d/h=%H", "d=__HIVE_DEFAULT_PARTITION__/h=1", "expected a value of the form d=%Y-%m-%d"),
        ("day", "d=%Y%m%d", "d=2026301", "expected a value of the form d=%Y%m%d, got 'd=2026301'"),
        ("day", "d=%Y-%m-%d", "d=2026-02-30", "expected a time of the calendar (day"),
        ("day", "d=%Y-%j", "d=2026-366", "expected a time of the calendar (the year 2026 has no day 366), got"),
        ("day", "d=%Y-%j", "d=2026-000", "expected a time of the calendar (the year 2026 has no day 0), got"),
        ("day", "d=%Y-%m-%d", "d=9999-12-31", "expected a year from 1583 to 9998, got 'd=9999-12-31'"),
        ("day", "y=%Y/d=%Y-%m-%d", "y=2025/d=2026-03-01", "expected the year 2025, as before in its name, got 'd=2026"),
        ("week", "w=%Y-%m-%d", "w=2026-03-01", "expected the first day of a week, a Monday, got 'w=2026-03-01'"),
        ("6h", "d=%Y%m%d/h=%H", "d=20260301/h=05", "expected the beginning of a period of 6 hours, got 'd=20260301/h="),
        ("quarter", "q=%Y-%m", "q=2026-02", "expected the beginning of a period of one quarter, got 'q=2026-02'"),
    ],
)
def test_t24_names_of_no_period(each: str, form: str, text: str, message: str) -> None:
    with pytest.raises(SluiceError) as refused:
        names(each, form).read(values(text))
    assert refused.value.message.startswith(message)
    assert refused.value.field in values(text)


def test_t24_a_week_may_begin_on_another_day() -> None:
    rule = names("week", "w=%Y-%m-%d", starts="sun")
    assert rule.read({"w": "2026-03-01"}).label == "week-2026-03-01"
    with pytest.raises(SluiceError, match="the first day of a week, a Sunday, got 'w=2026-03-02'"):
        rule.read({"w": "2026-03-02"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dt=2026-03-29/hour=02", "expected a time that the clocks of Europe/Paris show, got 'dt=2026-03-29/hour=02'"),
        ("dt=2026-03-29/hour=03", None),
    ],
)
def test_t24_an_hour_that_the_clocks_skip(text: str, message: str | None) -> None:
    rule = names("hour", "dt=%Y-%m-%d/hour=%H", "Europe/Paris")
    if message is None:
        assert iso(rule.read(values(text)).start) == "2026-03-29T01:00:00.000Z"
        return
    with pytest.raises(SluiceError) as refused:
        rule.read(values(text))
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("each", "form", "message", "hint"),
    [
        ("day", "%Y-%m-%d", "key=value folders with fields of strftime", "write key=format for each key"),
        ("day", "day=", "key=value folders with fields of strftime", "write key=format for each key"),
        ("day", "kind=a/day=%Y-%m-%d", "key=value folders with fields of strftime", "or leave out kind if its value"),
        ("day", "day=YYYY-MM-DD", "got 'day=YYYY-MM-DD'", "write fields such as %Y"),
        ("day", "day=%Y-%m-%d/", "got 'day=%Y-%m-%d/'", "remove the slash at its beginning or end"),
        ("day", "/day=%Y-%m-%d", "got '/day=%Y-%m-%d'", "remove the slash at its beginning or end"),
        ("day", "day=%Y-%m-%d%", "got '%'", "write a field after %"),
        ("day", "d=%Y-%m/d=%d", "expected each key once", "write one format for each key"),
        ("day", "d=%y-%m-%d", "expected a field among %Y %q %m %d %j %G %V %H %M %z, got '%y'", "write %Y"),
        ("day", "d=%Y-%b-%d", "got '%b'", "write %m"),
        ("hour", "d=%Y-%m-%d %H%3A00", "got '%3'", "the escape %3A of a folder is written :"),
        ("day", "d=%-Y-%m-%d", "expected %Y, which has no leading zeros", "write %Y"),
        (
            "day",
            "d=%Y%-m%-d",
            "expected a format that can be read back, without a digit beside %-m",
            "between them, or",
        ),
        ("day", "d=%Y1%m%-d", "expected a format that can be read back, without a digit beside %-d", "or %d"),
        ("hour", "d=%z%Y%m%d%H", "expected a format that can be read back, without a digit beside %z", "a sign such"),
        ("day", "d=*%Y-%m-%d", "expected letters, digits, spaces and . _ : , + @ - besides the fields", "escapes"),
        ("day", "d=%Y%m", "a format that determines a period of one day, with %Y %m %d, got 'd=%Y%m'", "add %d (day)"),
        ("hour", "d=%Y-%m-%d", "a format that determines a period of one hour, with %Y %m %d %H", "add %H (hour)"),
        ("15m", "d=%Y-%m-%dT%H", "determines a period of 15 minutes, with %Y %m %d %H %M", "add %M (minute)"),
        ("month", "m=%m", "a format that determines a period of one month, with %Y %m", "add %Y (year)"),
        ("week", "w=%V", "a format that determines a period of one week, with %G %V", "add %G (year of the ISO week)"),
        ("day", "d=%Y-%m-%d/h=%H", "no %H (hour) for a period of one day", "remove %H, or write what it always is"),
        ("6h", "d=%Y-%m-%dT%H:%M", "no %M (minute) for a period of 6 hours", "such as 00; or name a shorter period"),
        ("day", "d=%Y-%m-%d%z", "no %z (offset) for a period of one day", "remove %z"),
        ("week", "w=%Y-W%V", "not both %Y (year) and %V (ISO week)", "write %G-W%V for an ISO week"),
        ("day", "d=%G-%m-%d/y=%Y", "not both %Y (year) and %G (year of the ISO week)", "write %Y-%m-%d: %G and %V"),
        ("day", "d=%Y-%m-%d/j=%j", "not both %m (month) and %j (day of the year)", "write one of %m (month) and %j"),
        ("quarter", "q=%Y-%m/n=%q", "not both %m (month) and %q (quarter)", "write one of"),
    ],
)
def test_t24_formats_that_are_refused(each: str, form: str, message: str, hint: str) -> None:
    with pytest.raises(SluiceError) as refused:
        names(each, form)
    error: Any = refused.value
    assert (error.code, error.field) == ("invalid", "format")
    assert message in error.message
    assert hint in error.hint


def test_t24_an_iso_week_begins_on_a_monday() -> None:
    with pytest.raises(SluiceError, match="no ISO week") as refused:
        names("week", "w=%G-W%V", starts="sun")
    assert refused.value.hint == "write the first day of the week: %Y-%m-%d"
