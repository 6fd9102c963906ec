"""A list of days and windows: whether an instant falls into it, and when its next day or window begins.

A day begins at its first instant in the zone; if the clocks go forward at midnight, that is after the gap. The
entries must have passed `exclusions.parse`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from chalicelib.core import instants
from chalicelib.core.instants import DAY, Instant, Millis, parse_instant
from chalicelib.core.time.wall import wall_to_instant

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Excluded = str | Mapping[str, str]

# Each day of the year falls on each day of the week within 40 years; 29 February takes longest.
MAX_DAYS = 41 * 366
HORIZON: Millis = MAX_DAYS * DAY
_ONE = timedelta(days=1)
_ANY_YEAR = date(2001, 1, 1)  # the first day of a search among recurring days
_LEAP_YEAR = date(2024, 1, 1)


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a list, in a form for lookups. ``spans`` are dates and windows of dates, sorted and merged;
    ``windows`` are pairs of instants, ``[from, to)``."""

    zone: ZoneInfo
    weekdays: frozenset[int]
    yearly: frozenset[tuple[int, int]]
    spans: tuple[tuple[date, date], ...]
    windows: tuple[tuple[Instant, Instant], ...]

    @property
    def recurs(self) -> bool:
        return bool(self.weekdays or self.yearly)

    def names(self, day: date) -> bool:
        """Whether the whole day is in the list."""
        recurs = day.weekday() in self.weekdays or (day.month, day.day) in self.yearly
        return recurs or self._span_of(day) is not None

    def end_of(self, instant: Instant) -> Instant | None:
        """The end of the day or window that contains an instant, always later than it; None if none contains it."""
        ends = [end] if (end := self.window_end(instant)) is not None else []
        day = self._day_of(instant)
        if self.names(day):
            ends.append(self._begin_of(self._after(day)))
        return max(*ends, instant + 1) if ends else None

    def window_end(self, instant: Instant) -> Instant | None:
        """The end of the window of instants that contains an instant; None if none contains it."""
        return max((end for begin, end in self.windows if begin <= instant < end), default=None)

    def free_from(self, day: date) -> date | None:
        """The first day from ``day`` on that is not in the list; None if there is none within 40 years."""
        for _ in range(MAX_DAYS):
            if not self.names(day):
                return day
            day = self._after(day)
        return None

    def next_begin(self, after: Instant) -> Instant | None:
        """The begin of the next day or window strictly after ``after``; None if there is none within 40 years."""
        begins = [begin for begin, _ in self.windows if begin > after]
        day = self._next_day(self._day_of(after) + _ONE)
        begins += [self._begin_of(day)] if day is not None else []
        return min((begin for begin in begins if begin > after), default=None)

    def _next_day(self, first: date) -> date | None:
        """The first day of the list from ``first`` on; None if there is none within 40 years."""
        if not self.recurs:
            ahead = [max(begin, first) for begin, end in self.spans if end >= first]
            return ahead[0] if ahead else None
        return next((day for day in _days(first) if self.names(day)), None)

    def _span_of(self, day: date) -> tuple[date, date] | None:
        index = bisect_right(self.spans, day, key=lambda span: span[0])
        span = self.spans[index - 1] if index else None
        return span if span is not None and day <= span[1] else None

    def _after(self, day: date) -> date:
        """The day after a day of the list, or after the span that it is part of."""
        span = self._span_of(day)
        return (span[1] if span else day) + _ONE

    def _day_of(self, instant: Instant) -> date:
        return datetime.fromtimestamp(instant // 1000, self.zone).date()

    def _begin_of(self, day: date) -> Instant:
        return wall_to_instant(datetime.combine(day, time()), self.zone)


def read(entries: Sequence[Excluded], zone: str) -> Days:
    """The days of checked entries in a time zone."""
    keyed = tuple(entry if isinstance(entry, str) else (entry["from"], entry["to"]) for entry in entries)
    return _read(keyed, instants.zone(zone))


@lru_cache(maxsize=256)
def _read(entries: tuple[str | tuple[str, str], ...], zone: ZoneInfo) -> Days:
    """Cached, because each search of an occurrence reads the same entries."""
    named = [entry for entry in entries if isinstance(entry, str)]
    dates = [(date.fromisoformat(entry),) * 2 for entry in named if len(entry) == len("2026-12-25")]
    windows = [entry for entry in entries if not isinstance(entry, str)]
    dates += [(date.fromisoformat(a), date.fromisoformat(b)) for a, b in windows if len(a) == len(b) == 10]
    yearly = {entry for entry in named if len(entry) == len("12-25")}
    yearly.update(each for a, b in windows if len(a) == len(b) == len("12-25") for each in _of_each_year(a, b))
    return Days(
        zone=zone,
        weekdays=frozenset(DAYS.index(entry) for entry in named if entry in DAYS),
        yearly=frozenset((int(entry[:2]), int(entry[3:])) for entry in yearly),
        spans=_merged(dates),
        windows=tuple((parse_instant(a), parse_instant(b)) for a, b in windows if len(a) > 10 or len(b) > 10),
    )


def _of_each_year(first: str, last: str) -> Iterable[str]:
    """The days from ``11-15`` to ``02-15``, both included, in a leap year."""
    year = [f"{_LEAP_YEAR + timedelta(days=number):%m-%d}" for number in range(366)]
    begin, end = year.index(first), year.index(last)
    return year[begin : end + 1] if begin <= end else (*year[begin:], *year[: end + 1])


def first_allowed(only: Days | None, excluding: Days, now: Instant) -> Instant | None:
    """The first instant from ``now`` on that is in ``only`` (None: any) and not in ``excluding``. None if there is
    none within 40 years."""
    at: Instant | None = now
    while at is not None and at - now < HORIZON:
        end = excluding.end_of(at)
        if end is None and (only is None or only.end_of(at) is not None):
            return at
        at = end if end is not None or only is None else only.next_begin(at)
    return None


def is_contradiction(only: Days | None, excluding: Days) -> bool:
    """Whether no day is allowed, in any zone and at any time. A window of instants counts as an allowed day, because
    the days in it depend on the zone."""
    always = replace(excluding, spans=(), windows=())
    if not _any_left(_days(_ANY_YEAR), always):
        return True
    if only is None or only.windows:
        return False
    recurring = replace(only, spans=())
    if only.recurs and _any_left((day for day in _days(_ANY_YEAR) if recurring.names(day)), always):
        return False
    long = any((last - first).days >= MAX_DAYS for first, last in only.spans)
    return not long and not any(_any_left(_days(first, last), excluding) for first, last in only.spans)


def _any_left(days: Iterable[date], excluding: Days) -> bool:
    return any(not excluding.names(day) for day in days)


def _days(first: date, last: date = date.max) -> Iterable[date]:
    """The days from ``first`` to ``last``, both included, at most `MAX_DAYS`."""
    count = min((last - first).days + 1, MAX_DAYS)
    return (first + timedelta(days=number) for number in range(count))


def _merged(spans: Iterable[tuple[date, ...]]) -> tuple[tuple[date, date], ...]:
    """Sorted spans of days, in which spans that touch or overlap are merged."""
    found: list[tuple[date, date]] = []
    for first, last in sorted((span[0], span[1]) for span in spans):
        if found and first <= found[-1][1] + _ONE:
            first, last = found[-1][0], max(found.pop()[1], last)
        found.append((first, last))
    return tuple(found)
