"""A second, slow implementation of cron expressions and of the rules for daylight saving, written from the rules alone.
It walks through time minute by minute, with datetime and zoneinfo. Also generates random expressions with their
meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from chalicelib.core.instants import MINUTE, SECOND, Instant
from chalicelib.core.time.wall import Daylight

# A zone and an instant at which its clocks change.
CHANGES = [
    ("America/New_York", "2013-03-10T07:00:00Z"),
    ("America/New_York", "2013-11-03T06:00:00Z"),
    ("America/New_York", "2026-03-08T07:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("Europe/London", "2026-03-29T01:00:00Z"),
    ("Europe/London", "2026-10-25T01:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),  # half an hour
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ("Africa/Casablanca", "2026-02-15T02:00:00Z"),  # standard time for Ramadan
    ("Africa/Casablanca", "2026-03-22T02:00:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),  # the gap swallows midnight
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),  # the gap swallows a day: the standard offset changed
    ("America/Caracas", "2007-12-09T07:00:00Z"),  # the standard offset changed by half an hour, and back
    ("America/Caracas", "2016-05-01T07:00:00Z"),
    ("Asia/Pyongyang", "2015-08-14T15:00:00Z"),
    ("Asia/Pyongyang", "2018-05-04T15:00:00Z"),
]
STEADY = ("Asia/Kathmandu", "2026-03-29T01:00:00Z")  # no change, but an offset of 5:45 hours
RULES = [Daylight(gap, overlap) for gap in ("after", "skip") for overlap in ("first", "second", "both")]

WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


@dataclass(frozen=True)
class Meaning:
    """What the fields of an expression name. An empty set is a star, which restricts nothing."""

    seconds: frozenset[int] = frozenset({0})
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    from_end: frozenset[int] = frozenset()  # 0 is the last day of the month, 3 the third day before it
    nearest: frozenset[int] = frozenset()  # the working day nearest to a day; 0 and below count from the last day
    working: frozenset[int] = frozenset()  # the n-th working day of the month
    nth: frozenset[tuple[int, int]] = frozenset()  # (Monday is 1 and Sunday 0, which of the month; -1 the last)

    def in_month(self, day: date, holidays: frozenset[date]) -> bool:
        """Whether day of month names this day, from a list of all days of the month."""
        month = [
            each for number in range(31) if (each := day.replace(day=1) + timedelta(days=number)).month == day.month
        ]
        working = [each for each in month if each.isoweekday() <= 5 and each not in holidays]
        named = {each for each in month if each.day in self.days}
        named |= {month[-1 - number] for number in self.from_end if number < len(month)}
        named |= {working[number - 1] for number in self.working if number <= len(working)}
        for number in self.nearest:
            aims = [each for each in month if each.day == number or (each - month[-1]).days == number <= 0]
            for aim in aims if working else []:
                named.add(min(working, key=lambda each: (abs((each - aim).days), each)))
        return day in named

    def on(self, day: date, holidays: frozenset[date] = frozenset()) -> bool:
        if self.months and day.month not in self.months:
            return False
        weekday, week = day.isoweekday() % 7, timedelta(days=7)
        in_month = self.in_month(day, holidays)
        earlier = sum((day - week * count).month == day.month for count in range(1, 5))
        latest = (day + week).month != day.month
        in_week = (
            weekday in self.weekdays or (weekday, earlier + 1) in self.nth or (latest and (weekday, -1) in self.nth)
        )
        by_month = bool(self.days or self.from_end or self.nearest or self.working)
        by_week = bool(self.weekdays or self.nth)
        if by_month and by_week:  # one of the two is enough
            return in_month or in_week
        return in_month if by_month else in_week if by_week else True

    def at(self, wall: datetime) -> bool:
        """Whether the expression names the minute of this wall time."""
        minute = not self.minutes or wall.minute in self.minutes
        return minute and (not self.hours or wall.hour in self.hours) and self.on(wall.date())


def wall_of(instant: Instant, zone: str) -> datetime:
    return datetime.fromtimestamp(instant // 1000, UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


def readings(wall: datetime, zone: str) -> list[Instant]:
    """The instants, one or two or none, at which a clock of the zone shows this wall time."""
    both = (round(wall.replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000) for fold in (0, 1))
    return sorted({instant for instant in both if wall_of(instant, zone) == wall})


def slow_next_fire(
    meaning: Meaning, zone: str, after: Instant, until: Instant, rule: Daylight | None = None
) -> Instant | None:
    """The next fire, by reading the clock of the zone every minute until ``until``. A named wall time fires if the rule
    lets this reading fire. If the clock has jumped ahead, skipped wall times fire at once, if the rule says so.
    """
    rule = rule or Daylight()
    minute, instant = timedelta(minutes=1), after // MINUTE * MINUTE - MINUTE
    shown = wall_of(instant, zone)
    while instant < until:
        instant += MINUTE
        wall = wall_of(instant, zone)
        left_out, shown = shown + minute, wall
        while left_out < wall:
            if meaning.at(left_out) and rule.gap == "after" and instant > after:
                return instant
            left_out += minute
        if not meaning.at(wall):
            continue
        passes = readings(wall, zone)
        chosen = {"first": passes[:1], "second": passes[-1:], "both": passes}[rule.overlap]
        fires = [instant + second * SECOND for second in sorted(meaning.seconds or range(60))]
        if instant in chosen and fires[-1] > after:
            return next(fire for fire in fires if fire > after)
    return None


@st.composite
def _field(draw: st.DrawFn, low: int, high: int, names: list[str] | None = None) -> tuple[str, frozenset[int]]:
    """A field of a cron expression and the numbers that it means."""
    size = high - low + 1

    def name(number: int) -> str:
        if names and draw(st.booleans()):
            return draw(st.sampled_from([names[number - low], names[number - low].upper()]))
        return str(number)

    items, numbers = [], set[int]()
    for form in draw(st.lists(st.sampled_from(["one", "range", "wrapped", "step", "open"]), min_size=1, max_size=3)):
        first, last = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
        step = draw(st.integers(2, min(size - 1, 9)))
        if form == "range":
            items.append(f"{name(first)}-{name(last)}")
            numbers |= set(range(first, last + 1))
        elif form == "wrapped" and first < last:
            items.append(f"{name(last)}-{name(first)}")
            numbers |= set(range(last, high + 1)) | set(range(low, first + 1))
        elif form == "step":
            items.append(f"{name(first)}-{name(last)}/{step}")
            numbers |= set(range(first, last + 1, step))
        elif form == "open":
            items.append(f"{name(first)}/{step}")
            numbers |= set(range(first, high + 1, step))
        else:
            items.append(name(first))
            numbers.add(first)
    return ",".join(items), frozenset(numbers)


@st.composite
def times_of_day(draw: st.DrawFn, seconds: bool = False) -> tuple[str, Meaning]:
    """Expressions that name times of every day."""
    star = st.just(("*", frozenset[int]()))
    second = draw(_field(0, 59)) if seconds else ("", frozenset({0}))
    minute, hour = draw(star | _field(0, 59)), draw(star | _field(0, 23))
    return f"{second[0]} {minute[0]} {hour[0]} * * *".strip(), Meaning(second[1], minute[1], hour[1])


# Special days of month by their text, each with the kind and the number that `Meaning` has.
special_days = st.dictionaries(
    st.sampled_from(["L", "L-1", "L-3", "L-30", "LW", "L-2W", "1W", "15W", "31W", "W#1", "W#3", "W#23", "l-29w"]),
    st.none(),
    max_size=3,
).map(lambda drawn: {text: _special(text.upper()) for text in drawn})


def _special(text: str) -> tuple[str, int]:
    if text.startswith("W#"):
        return "#", int(text[2:])
    if not text.startswith("L"):
        return "W", int(text[:-1])
    before = int(text.strip("LW-") or 0)
    return ("W", -before) if text.endswith("W") else ("L", before)


@st.composite
def expressions(draw: st.DrawFn) -> tuple[str, Meaning]:
    """Expressions of every kind, with few times a day, so that a walk soon ends."""
    star = st.just(("*", frozenset[int]()))
    text, times = draw(times_of_day(seconds=draw(st.booleans())))
    *clock, _, _, _ = text.split()
    day, month = draw(star | _field(1, 31)), draw(star | _field(1, 12, MONTHS))
    weekday = draw(star | _field(0, 6, WEEKDAYS))
    special = draw(special_days) if day[0] != "*" else {}
    nth = draw(st.sets(st.tuples(st.integers(0, 6), st.sampled_from([1, 2, 3, 4, -1])), max_size=2))
    nth = nth if weekday[0] != "*" else set()
    numbered = [WEEKDAYS[kind] + ("L" if number < 0 else f"#{number}") for kind, number in sorted(nth)]
    kept = draw(st.booleans()) or not special  # else the special days alone
    days = ",".join([*([day[0]] if kept else []), *special])
    short_duration = " ".join([*clock, days, month[0], ",".join([weekday[0], *numbered])])
    kinds = {kind: frozenset(number for each, number in special.values() if each == kind) for kind in "LW#"}
    named = day[1] if kept else frozenset[int]()
    meaning = Meaning(
        times.seconds, times.minutes, times.hours, named, month[1], weekday[1],
        from_end=kinds["L"], nearest=kinds["W"], working=kinds["#"], nth=frozenset(nth),
    )  # fmt: skip
    return short_duration, meaning
