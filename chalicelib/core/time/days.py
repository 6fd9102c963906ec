"""Lists of days: those that a time trigger leaves out (T6), or that a calendar allows or excludes (C17).

An entry is ``2026-12-25``, ``12-25`` (every year), ``sat``, or a window ``{"from": .., "to": ..}``. A window of two
dates includes both days, also one of every year, such as ``11-15`` to ``02-15``; a window of two RFC 3339 instants is
``[from, to)``. Dates are days in a time zone. A day begins at its first instant in the zone; if the clocks go forward
at midnight, that is after the gap.

`parse` checks the entries. `read` makes `Days` of checked entries, which say whether an instant falls into the list,
and when its next day or window begins.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator

from chalicelib.core import instants
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, Instant, Millis, parse_instant
from chalicelib.core.time.wall import wall_to_instant

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Excluded = str | Mapping[str, str]

# Each day of the year falls on each day of the week within 40 years; 29 February takes longest.
MAX_DAYS = 41 * 366
HORIZON: Millis = MAX_DAYS * DAY
_ONE = timedelta(days=1)
_ANY_YEAR = date(2001, 1, 1)  # the first day of a search among recurring days
_LEAP_YEAR = date(2024, 1, 1)  # so that 29 February is a valid day of every year
MAX_ENTRIES = 400  # entries of one list: enough for each day of a year, or the holidays of a few decades
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIRST, _LAST = date(1970, 1, 1), date(9998, 12, 31)  # the dates to which any zone can be applied
_EVERY_YEAR = re.compile(r"(\d{2})-(\d{2})")
_FORMS = "a date such as 2026-12-25, a day of every year such as 12-25, a day of the week, or a window with from and to"


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


def check(given: Any, field: str = "excluding") -> tuple[Excluded, ...]:
    """The entries of a list of exclusions, checked by `parse`. Raises ``invalid`` also if all seven days of the week
    are excluded."""
    entries = parse(given, field)
    if set(DAYS) <= {entry for entry in entries if isinstance(entry, str)}:
        raise invalid(field, "at least one day of the week that is not excluded", "all seven excluded")
    return entries


def parse(given: Any, field: str) -> tuple[Excluded, ...]:
    """The entries in the form that is stored. Raises ``invalid`` for the first malformed entry, with its index."""
    if not isinstance(given, list | tuple):
        raise invalid(field, "a list of dates, days of the week and windows", given)
    if len(given) > MAX_ENTRIES:
        hint = "use windows for consecutive days"
        raise invalid(field, f"at most {MAX_ENTRIES} entries", f"{len(given)} entries", hint)
    return tuple(_checked(entry, f"{field}.{index}".lstrip(".")) for index, entry in enumerate(given))


Exclusions = Annotated[
    tuple[Excluded, ...],
    BeforeValidator(lambda given: check(given, ""), json_schema_input_type=list[str | dict[str, str]]),
]


def end_of(excluding: Sequence[Excluded], zone: str, instant: Instant) -> Instant | None:
    """The end of the exclusion that contains an instant, always later than it; None if none contains it."""
    return read(excluding, zone).end_of(instant) if excluding else None


def describe(entries: Sequence[Excluded]) -> str:
    """The entries in plain words, at most four: ``mon to fri, 12-25 and 2026-08-01 to 2026-08-14``."""
    week = sorted({DAYS.index(entry) for entry in entries if isinstance(entry, str) and entry in DAYS})
    is_run = len(week) > 2 and week[-1] - week[0] == len(week) - 1
    texts = [f"{DAYS[week[0]]} to {DAYS[week[-1]]}"] if is_run else []
    others = [entry for entry in entries if not (is_run and entry in DAYS)]
    count = len(texts) + len(others)
    texts += [entry if isinstance(entry, str) else f"{entry['from']} to {entry['to']}" for entry in others[:4]]
    shown = texts if count <= 4 else [*texts[:3], f"{count - 3} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def _checked(entry: Any, field: str) -> Excluded:
    if isinstance(entry, Mapping):
        return _window(entry, field)
    text = entry.strip().lower() if isinstance(entry, str) else ""
    if text[:3] in DAYS and text in (text[:3], _full(text[:3])):
        return text[:3]
    if _DATE.fullmatch(text):
        _check_years(text, field)
    if _is_date(text) or _is_yearly(text):
        return text
    raise invalid(field, _FORMS, entry, _hint(text))


def _hint(text: str) -> str | None:
    """What to write in place of days such as ``mon-fri``."""
    first, dash, last = (part.strip() for part in text.partition("-"))
    if not dash or first[:3] not in DAYS or last[:3] not in DAYS:
        return None
    begin, end = DAYS.index(first[:3]), DAYS.index(last[:3])
    listed = DAYS[begin : end + 1] if begin <= end else (*DAYS[begin:], *DAYS[: end + 1])
    return f"list the days: {', '.join(listed)}"


def _window(entry: Mapping[str, Any], field: str) -> Mapping[str, str]:
    if set(entry) != {"from", "to"} or not all(isinstance(end, str) for end in entry.values()):
        raise invalid(field, "a window with from and to, two dates or two instants", dict(entry))
    begins, ends = entry["from"], entry["to"]
    if _is_yearly(begins) and _is_yearly(ends):
        return {"from": begins, "to": ends}
    if _is_yearly(begins) or _is_yearly(ends):
        hint = "write both with a year, or both without one"
        raise invalid(field, "two dates with years, or two days of every year", dict(entry), hint)
    if _is_date(begins) and _is_date(ends):
        if ends < begins:
            raise invalid(f"{field}.to", f"a date that is not before {begins}", ends)
        return {"from": begins, "to": ends}
    for end in ("from", "to"):
        _check_years(entry[end], f"{field}.{end}")
    if parse_instant(ends, f"{field}.to") <= parse_instant(begins, f"{field}.from"):
        raise invalid(f"{field}.to", f"an instant after {begins}", ends)
    return {"from": begins, "to": ends}


def _is_yearly(text: str) -> bool:
    """Whether a text is a day of every year, such as ``12-25``."""
    return bool(_EVERY_YEAR.fullmatch(text)) and _is_date(f"{_LEAP_YEAR.year}-{text}")


def recurs(entry: Excluded) -> bool:
    """Whether an entry comes again every week or every year."""
    return len(entry if isinstance(entry, str) else entry["from"]) < len("2026-12-25")


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and _FIRST <= date.fromisoformat(text) <= _LAST
    except ValueError:
        return False


def _check_years(text: str, field: str) -> None:
    """Raises ``invalid`` for a date or instant outside the years in which any time zone can be applied."""
    if _DATE.match(text) and not f"{_FIRST}" <= text[:10] <= f"{_LAST}":
        raise invalid(field, f"a date from {_FIRST} to {_LAST}", text)


def _full(short: str) -> str:
    names = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    return names[DAYS.index(short)]
