"""Recurrence rules (T30), compared with a walk through all days, with dateutil, and with the clocks of odd zones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given
from hypothesis import strategies as st

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, Instant, iso, parse_instant
from chalicelib.core.time import expressions, rrule, wording
from chalicelib.core.time.rrule import WEEKDAYS, Rule
from chalicelib.core.time.wall import Daylight
from tests.core.builders import brief
from tests.core.walk import CHANGES, RULES, readings, wall_of

DAYS = 2_000  # of a walk
START = "DTSTART:20260101T090000 RRULE:"


@dataclass(frozen=True)
class Meaning:
    """The parts of a rule, as they were drawn. An empty list is a part that is left out."""

    freq: str
    interval: int
    start: datetime
    months: list[int]
    days: list[int]
    week: list[tuple[int, str]]
    positions: list[int]
    week_start: str
    count: int | None
    until: date | None

    def __str__(self) -> str:
        parts: dict[str, Any] = {
            "FREQ": self.freq, "INTERVAL": self.interval, "BYMONTH": self.months, "BYMONTHDAY": self.days,
            "BYDAY": [f"{number or ''}{day}" for number, day in self.week], "BYSETPOS": self.positions,
            "WKST": self.week_start, "COUNT": self.count, "UNTIL": f"{self.until:%Y%m%d}" if self.until else None,
        }  # fmt: skip
        shown = {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in parts.items()}
        rule = ";".join(f"{name}={value}" for name, value in shown.items() if value)
        return f"DTSTART:{self.start:%Y%m%dT%H%M%S} RRULE:{rule}"

    def walls(self, days: int = DAYS) -> list[datetime]:
        """Every wall time within so many days, by a look at each day: the periods of RFC 5545, then what limits."""
        begin = self.start.date()
        wanted: dict[int, list[date]] = {}
        for number in range(-366, days + 366):
            day = begin + timedelta(days=number)
            if self.period(day) % self.interval == 0 and self.is_named(day):
                wanted.setdefault(self.period(day), []).append(day)
        found = []
        for _, named in sorted(wanted.items()):
            chosen = named
            if self.positions:
                places = [place if place < 0 else place - 1 for place in self.positions]
                chosen = sorted({named[place] for place in places if -len(named) <= place < len(named)})
            found += [datetime.combine(day, self.start.time()) for day in chosen]
        found = [wall for wall in found if wall >= self.start][: self.count]
        found = [wall for wall in found if self.until is None or wall.date() <= self.until]
        return [wall for wall in found if wall < self.start + timedelta(days=days)]

    def period(self, day: date) -> int:
        """How many days, weeks, months or years after that of the begin."""
        begin = self.start.date()
        if self.freq == "DAILY":
            return (day - begin).days
        if self.freq == "WEEKLY":
            of_week = [
                each - timedelta(days=(each.weekday() - WEEKDAYS.index(self.week_start)) % 7) for each in (day, begin)
            ]
            return (of_week[0] - of_week[1]).days // 7
        months = (day.year - begin.year) * 12 + day.month - begin.month
        return months if self.freq == "MONTHLY" else day.year - begin.year

    def is_named(self, day: date) -> bool:
        begin = self.start.date()
        if self.months and day.month not in self.months:
            return False
        if not self.days and not self.week:  # the begin says which day
            if self.freq == "WEEKLY":
                return day.weekday() == begin.weekday()
            if self.freq in ("MONTHLY", "YEARLY") and day.day != begin.day:
                return False
            return self.freq != "YEARLY" or bool(self.months) or day.month == begin.month
        length = next(number for number in (31, 30, 29, 28) if _exists(day, number))
        if self.days and day.day not in self.days and day.day - length - 1 not in self.days:
            return False
        return not self.week or any(self.is_nth(day, number, name) for number, name in self.week)

    def is_nth(self, day: date, number: int, name: str) -> bool:
        if WEEKDAYS[day.weekday()] != name or not number:
            return WEEKDAYS[day.weekday()] == name
        whole_year = self.freq == "YEARLY" and not self.months
        around = [day + timedelta(days=7 * week) for week in range(-53, 54)]
        same = [each for each in around if each.year == day.year and (whole_year or each.month == day.month)]
        place = same.index(day)
        return place == number - 1 if number > 0 else place - len(same) == number


def _exists(day: date, number: int) -> bool:
    try:
        day.replace(day=number)
    except ValueError:
        return False
    return True


@st.composite
def meanings(draw: st.DrawFn, ends: bool = True) -> Meaning:
    freq = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    months = draw(st.lists(st.integers(1, 12), max_size=2, unique=True))
    signed = st.integers(1, 31) | st.integers(-31, -1)
    days = draw(st.lists(signed, max_size=3, unique=True)) if freq != "WEEKLY" else []
    longest = 53 if freq == "YEARLY" and not months else 5
    number = st.just(0) if freq in ("DAILY", "WEEKLY") else st.integers(-longest, longest)
    week = draw(st.lists(st.tuples(number, st.sampled_from(WEEKDAYS)), max_size=4, unique=True))
    positions = draw(st.lists(st.sampled_from([1, 2, 3, -1, -2, 20]), max_size=2, unique=True))
    end = draw(st.sampled_from(["count", "until", "never"])) if ends else "never"
    start = draw(st.datetimes(datetime(2009, 1, 1), datetime(2026, 12, 31))).replace(microsecond=0)
    return Meaning(
        freq=freq,
        interval=draw(st.integers(1, 5)),
        start=start,
        months=months,
        days=days,
        week=week,
        positions=positions if days or week or months else [],
        week_start=draw(st.sampled_from(WEEKDAYS)),
        count=draw(st.integers(1, 30)) if end == "count" else None,
        until=start.date() + timedelta(days=draw(st.integers(0, 1_500))) if end == "until" else None,
    )


def walls(rule: Rule, past: datetime) -> Iterator[datetime]:
    while (found := rule.next_wall(past)) is not None:
        yield found
        past = found


def parsed(meaning: Meaning) -> Rule:
    """The rule of a meaning. Rules that name no time, or an end that is never reached, are refused."""
    try:
        rule = expressions.parse(str(meaning))
    except SluiceError:
        assert meaning.count is not None or not meaning.walls()
        assume(False)
    assert isinstance(rule, Rule)
    return rule


@given(meanings())
@brief
def test_t30_a_rule_names_what_a_walk_through_all_days_finds(meaning: Meaning) -> None:
    rule, end = parsed(meaning), meaning.start + timedelta(days=DAYS)
    found = [wall for wall in islice(walls(rule, meaning.start - timedelta(seconds=1)), 2_500) if wall < end]
    assert found == meaning.walls(), str(meaning)


@given(meanings(), st.integers(-100, DAYS - 1))
@brief
def test_t30_the_next_time_is_the_same_from_anywhere(meaning: Meaning, days: int) -> None:
    past = meaning.start + timedelta(days=days, hours=3)
    found = parsed(meaning).next_wall(past)
    following = next((wall for wall in meaning.walls() if wall > past), None)
    assert found == following or (following is None and found is not None and (found - meaning.start).days >= DAYS)


def dateutil_is_right(meaning: Meaning) -> bool:
    """The next two tests show where it is not."""
    mixed = len({bool(number) for number, _ in meaning.week}) > 1
    return not mixed and not (meaning.freq == "WEEKLY" and meaning.positions)


@given(meanings().filter(dateutil_is_right))
@brief
def test_t30_dateutil_names_the_same_times(meaning: Meaning) -> None:
    """dateutil is an independent implementation. It gets the normal form, whose UNTIL has a time."""
    rule = parsed(meaning)
    other = rrulestr(str(rule).replace(" ", "\n"))
    found = list(islice(walls(rule, meaning.start - timedelta(seconds=1)), 30))
    assert found == list(islice(other, 30)), str(meaning)


def test_t30_dateutil_is_wrong_for_plain_and_numbered_days() -> None:
    text = f"{START}FREQ=MONTHLY;BYDAY=MO,1TU;COUNT=6"
    meaning = Meaning("MONTHLY", 1, datetime(2026, 1, 1, 9), [], [], [(0, "MO"), (1, "TU")], [], "MO", 6, None)
    found = list(walls(parsed(meaning), datetime(2026, 1, 1)))
    assert [f"{wall:%a %d}" for wall in found] == ["Mon 05", "Tue 06", "Mon 12", "Mon 19", "Mon 26", "Mon 02"]
    assert found == meaning.walls()
    assert list(rrulestr(text.replace(" ", "\n").replace("COUNT=6", "UNTIL=20270101"))) == []


@given(meanings())
@brief
def test_t30_a_normal_form_is_equivalent_and_its_own_normal_form(meaning: Meaning) -> None:
    rule = parsed(meaning)
    assert str(expressions.parse(str(rule))) == str(rule)
    again = expressions.parse(str(rule))
    assert isinstance(again, Rule)
    past = meaning.start - timedelta(seconds=1)
    assert list(islice(walls(again, past), 20)) == list(islice(walls(rule, past), 20))


@given(meanings(ends=False), st.sampled_from(CHANGES), st.sampled_from(RULES), st.integers(-40, 5))
@brief
def test_t30_a_rule_follows_the_clocks_of_its_zone(
    meaning: Meaning, change: tuple[str, str], rule: Daylight, days: int
) -> None:
    """A time of day in the gap or overlap itself: the walk reads the clock on both sides of the change."""
    zone, at = change[0], parse_instant(change[1])
    clock = wall_of(at - 1, zone).time().replace(microsecond=0)  # the last second that the clocks show before it
    begin = datetime.combine(wall_of(at + days * DAY, zone).date(), clock if days % 2 else time(clock.hour, 30))
    moved = Meaning(**{**vars(meaning), "start": begin})
    text = str(parsed(moved))
    until = at + 40 * DAY
    wanted = [each for each in walk(moved, zone, rule) if at - 60 * DAY < each <= until]
    found: list[Instant] = []
    instant: Instant | None = at - 60 * DAY
    while (instant := expressions.next_fire(text, zone, 0, instant, rule)) is not None and instant <= until:
        found.append(instant)
    assert found == wanted, (text, zone)


def walk(meaning: Meaning, zone: str, rule: Daylight) -> list[Instant]:
    """The instants of all wall times by the rule: those at which a clock shows it, or the end of its gap."""
    found: set[Instant] = set()
    for wall in meaning.walls(120):
        passes = readings(wall, zone)
        if passes:
            found |= set({"first": passes[:1], "second": passes[-1:], "both": passes}[rule.overlap])
        elif rule.gap == "after":
            found.add(_end_of_gap(wall, zone))
    return sorted(found)


def _end_of_gap(wall: datetime, zone: str) -> Instant:
    """The first instant at which the clock shows a later time than ``wall``, found by halves."""
    low = parse_instant(f"{wall - timedelta(days=2):%Y-%m-%dT%H:%M:%S}Z")
    high = low + 4 * DAY
    while high - low > 1000:
        middle = (low + high) // 2000 * 1000
        low, high = (low, middle) if wall_of(middle, zone) > wall else (middle, high)
    return high


def test_t30_dateutil_is_wrong_for_positions_in_its_first_week() -> None:
    """The week from Tuesday, 30 December 2008, has the Tuesday first. dateutil begins the week with the begin."""
    meaning = Meaning("WEEKLY", 1, datetime(2009, 1, 1), [], [], [(0, "MO"), (0, "TU")], [1], "TU", 2, None)
    found = list(walls(parsed(meaning), datetime(2008, 12, 31)))
    assert found == meaning.walls() == [datetime(2009, 1, 6), datetime(2009, 1, 13)]
    assert next(iter(rrulestr(str(meaning).replace(" ", "\n")))) == datetime(2009, 1, 5)


@pytest.mark.parametrize(
    ("eventbridge", "stored"),
    [
        ("cron(0 9 LW * ? *)", "0 9 LW * *"),
        ("cron(0 9 15W * ? *)", "0 9 15W * *"),
        ("cron(0 9 L-3 * ? *)", "0 9 L-3 * *"),
        ("cron(0 9 ? * 2#1 *)", "0 9 * * mon#1"),
        ("cron(0 9 ? * 6L *)", "0 9 * * friL"),
    ],
)
def test_t30_special_days_of_eventbridge_are_those_of_sluice(eventbridge: str, stored: str) -> None:
    assert expressions.normalise(eventbridge) == stored


BIWEEKLY = "DTSTART:20260302T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"


@pytest.mark.parametrize(
    ("given_form", "stored"),
    [
        ({"every": "2 weeks", "from": "2026-03-02T09:00", "day_of_week": "mon"}, BIWEEKLY),
        ({"every": "2 weeks", "from": "2026-03-02T09:00"}, BIWEEKLY),
        ({"Every": "2 Weeks", "From": "2026-03-02 09:00:00", "DayOfWeek": 1}, BIWEEKLY),
        (BIWEEKLY.lower().replace(" ", "\n") + ";wkst=mo;", BIWEEKLY),
        (
            {"every": "3 months", "from": "2026-01-01T06:00", "day_of_month": ["1", "L", "L-2"]},
            "DTSTART:20260101T060000 RRULE:FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=1,-3,-1",
        ),
        (
            {"every": "2 months", "from": "2026-01-01", "day_of_week": "mon#1,friL,wed"},
            "DTSTART:20260101T000000 RRULE:FREQ=MONTHLY;INTERVAL=2;BYDAY=WE,1MO,-1FR",
        ),
        (
            {"every": "day", "from": "2026-01-01", "month": "jan-mar"},
            "DTSTART:20260101T000000 RRULE:FREQ=DAILY;BYMONTH=1,2,3",
        ),
        (
            {"every": "2 years", "from": "2026-02-03T05:00"},
            "DTSTART:20260203T050000 RRULE:FREQ=YEARLY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=3",
        ),
    ],
)
def test_t30_every_n_weeks_or_months_is_stored_as_a_rule(given_form: Any, stored: str) -> None:
    assert expressions.normalise(given_form) == stored


def test_t30_every_second_monday_at_nine_in_paris_stays_at_nine() -> None:
    fires, at = [], parse_instant("2026-03-01T00:00:00Z")
    for _ in range(4):
        found = expressions.next_fire(BIWEEKLY, "Europe/Paris", 0, at)
        assert found is not None
        fires.append(iso(at := found)[:16])
    assert fires == ["2026-03-02T08:00", "2026-03-16T08:00", "2026-03-30T07:00", "2026-04-13T07:00"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BIWEEKLY, "at 09:00 on Monday, every 2 weeks from 2026-03-02, Europe/Paris"),
        (
            "DTSTART:20260101T170000 RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=12",
            "at 17:00 on the last of Monday to Friday, every month from 2026-01-01, twelve times, Europe/Paris",
        ),
        (
            "DTSTART:20260101T170000 RRULE:FREQ=YEARLY;BYMONTH=1,7;BYDAY=2TU;UNTIL=20281231",
            "at 17:00 on the second Tuesday in January and July, every year from 2026-01-01 until 2028-12-31 23:59, "
            "Europe/Paris",
        ),
        (
            "DTSTART:20260101T170030 RRULE:FREQ=MONTHLY;BYMONTHDAY=13,-3;INTERVAL=2",
            "at 17:00:30 on day 13 and the third last day, every 2 months from 2026-01-01, Europe/Paris",
        ),
        (
            "DTSTART:20260101T170000 RRULE:FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
            "at 17:00 on day 13 if it is Friday, every month from 2026-01-01, Europe/Paris",
        ),
    ],
)
def test_t30_a_rule_has_words(text: str, words: str) -> None:
    assert wording.describe(text, "Europe/Paris") == words


def test_t30_an_end_in_utc_is_an_instant() -> None:
    text = "DTSTART:20260302T003000 RRULE:FREQ=DAILY;UNTIL=20260304T000000Z"
    fires, at = [], 0
    while (found := expressions.next_fire(text, "Europe/Paris", 0, at)) is not None:
        fires.append(iso(at := found)[5:16])
    assert fires == ["03-01T23:30", "03-02T23:30", "03-03T23:30"]  # 4 March 00:30 in Paris, before midnight in UTC


@pytest.mark.parametrize(
    ("text", "rate"),
    [(BIWEEKLY, 0.0714), ("DTSTART:20260101T000000 RRULE:FREQ=YEARLY", 0.0027), (f"{BIWEEKLY};COUNT=3", 0.0714)],
)
def test_t30_the_fires_a_day_are_an_average(text: str, rate: float) -> None:
    assert expressions.fires_per_day(text) == rate


def test_t30_a_rule_of_thirty_years_ago_costs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[date] = []
    real = Rule._names
    monkeypatch.setattr(Rule, "_names", lambda self, day: asked.append(day) or real(self, day))
    rule = expressions.parse("DTSTART:19960101T090000 RRULE:FREQ=DAILY;INTERVAL=2")
    assert isinstance(rule, Rule)
    asked.clear()
    assert rule.next_wall(datetime(2026, 3, 1, 12)) == datetime(2026, 3, 2, 9)
    assert len(asked) < 5


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("RRULE:FREQ=DAILY", "expected an RRULE with a begin", "write it as in 'DTSTART:20260302T090000 RRULE:"),
        ("DTSTART:20260101T090000", "expected an RRULE with a rule", "write it as in"),
        ("FREQ=DAILY", "expected DTSTART and RRULE once each", "EXDATE and RDATE are not supported"),
        (f"{START}FREQ=DAILY EXDATE:20260102T090000", "expected DTSTART and RRULE once each", "use excluding"),
        (f"{START}FREQ=DAILY;COUNT=0", "expected COUNT from 1 to 36,600, got '0'", "leave COUNT out"),
        (f"{START}FREQ=DAILY;INTERVAL=0", "expected INTERVAL from 1 to 1,000", None),
        (f"{START}FREQ=DAILY;COUNT=3;UNTIL=20270101", "expected an RRULE with COUNT or UNTIL", "remove one"),
        (f"{START}FREQ=SECONDLY", "expected an RRULE with FREQ=DAILY or", "the time of day is that of DTSTART"),
        (f"{START}FREQ=DAILY;BYHOUR=9", "expected an RRULE with FREQ=DAILY or", "a cron expression"),
        (f"{START}FREQ=YEARLY;BYEASTER=0", "expected an RRULE of parts that Sluice supports", "the parts are FREQ"),
        (f"{START}FREQ=DAILY;INTERVALL=2", "expected an RRULE of parts that Sluice supports", "did you mean INTERVAL?"),
        (f"{START}FREQ=DAILY;FREQ=WEEKLY", "expected FREQ once", None),
        (f"{START}INTERVAL=2", "expected an RRULE with FREQ=DAILY", "write it as in"),
        (f"{START}FREQ=DAILY;BYMONTH=13", "expected BYMONTH with numbers from 1 to 12, got '13'", "correct"),
        (f"{START}FREQ=MONTHLY;BYMONTHDAY=32", "expected BYMONTHDAY with numbers from 1 to 31 or -1 to -31", "correct"),
        (f"{START}FREQ=MONTHLY;BYDAY=6MO", "expected BYDAY with numbers from 1 to 5 or -1 to -5", None),
        (f"{START}FREQ=MONTHLY;BYDAY=0MO", "expected BYDAY with numbers from 1 to 5 or -1 to -5", None),
        (f"{START}FREQ=WEEKLY;BYDAY=1MO", "expected BYDAY without numbers for FREQ=WEEKLY", "use FREQ=MONTHLY"),
        (f"{START}FREQ=WEEKLY;BYDAY=MON", "expected BYDAY with days such as MO, 2TU or -1FR", "the days are MO"),
        (f"{START}FREQ=WEEKLY;BYMONTHDAY=1", "expected BYMONTHDAY only with another FREQ", "use FREQ=DAILY"),
        (f"{START}FREQ=DAILY;BYSETPOS=1", "expected BYSETPOS only with BYDAY", "add one of them"),
        (f"{START}FREQ=WEEKLY;WKST=XX", "expected WKST=MO or TU", None),
        (f"{START}FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "expected an RRULE that some date meets", "no such date"),
        (f"{START}FREQ=DAILY;UNTIL=20251231", "expected an UNTIL that is not before the first time", "move UNTIL"),
        (f"{START}FREQ=DAILY;UNTIL=soon", "expected UNTIL as 20261231", None),
        (
            f"{START}FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;COUNT=30",
            "expected a COUNT that is reached within",
            "leave COUNT",
        ),
        ("DTSTART:20261301T090000 RRULE:FREQ=DAILY", "expected a DTSTART such as", None),
        ("DTSTART:20260101T090000Z RRULE:FREQ=DAILY", "expected a DTSTART such as", "without Z"),
        (
            "DTSTART;TZID=Europe/Paris:20260101T090000 RRULE:FREQ=DAILY",
            "expected DTSTART and RRULE without parameters",
            "write 'zone: Europe/Paris' in the trigger, and DTSTART:20260101T090000 here",
        ),
    ],
)
def test_t30_a_wrong_rule_is_refused(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(SluiceError) as refused:
        expressions.normalise(text)
    assert message in refused.value.message
    assert (refused.value.hint is None) if hint is None else (hint in (refused.value.hint or ""))


@pytest.mark.parametrize(
    ("given_form", "field", "message"),
    [
        ({"every": "2 hours", "from": "2026-01-01"}, "expression.every", "a span such as '2 weeks' or '3 months'"),
        ({"every": "2 weeks"}, "expression.from", "the wall time from which the spans count"),
        ({"every": "2 weeks", "from": "2026-01-01T00:00Z"}, "expression.from", "the wall time"),
        ({"from": "2026-01-01", "day_of_week": "mon"}, "expression.every", "a span such as '2 weeks'"),
        ({"every": "0 weeks", "from": "2026-01-01"}, "expression", "INTERVAL from 1 to 1,000"),
        ({"every": "2 weeks", "from": "2026-01-01", "hour": 5}, "expression", "every and from without hour"),
        ({"every": "2 weeks", "from": "2026-01-01", "month": 13}, "expression", "days and months as in a cron"),
        ({"every": "2 months", "from": "2026-01-01", "day_of_month": "LW"}, "expression", "without W, not both"),
        (
            {"every": "2 months", "from": "2026-01-01", "day_of_month": 1, "day_of_week": "mon"},
            "expression",
            "without W, not both",
        ),
        ({"every": "2 weeks", "from": "2026-01-01", "day_of_month": 1}, "expression", "BYMONTHDAY only with another"),
    ],
)
def test_t30_a_wrong_short_form_is_refused(given_form: Any, field: str, message: str) -> None:
    with pytest.raises(SluiceError) as refused:
        expressions.normalise(given_form)
    assert (refused.value.field, message in refused.value.message) == (field, True), refused.value.message


def test_t30_the_last_possible_years_end_the_search() -> None:
    rule = expressions.parse("DTSTART:99980101T000000 RRULE:FREQ=YEARLY")
    assert isinstance(rule, Rule)
    assert list(walls(rule, datetime(9990, 1, 1))) == [datetime(9998, 1, 1)]
    assert rrule.parse("0 5 * * *", "") is None
