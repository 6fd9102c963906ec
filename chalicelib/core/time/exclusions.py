"""What a time trigger leaves out: dates, days of every year, days of the week, and blackout windows (T6).

An entry is ``2026-12-25``, ``12-25`` (every year), ``sat``, or a window ``{"from": .., "to": ..}``: of two dates, both
left out whole, or of two RFC 3339 instants, ``[from, to)``. Dates are those of the trigger's zone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from chalicelib.core import instants
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant, parse_instant
from chalicelib.core.time.wall import wall_to_instant

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST = 400  # entries of one trigger: the holidays of a few decades
_EVERY_YEAR = re.compile(r"(\d{2})-(\d{2})")
_LEAP_YEAR = 2024  # the 29th of February is a day of some years
_FORMS = "a date such as 2026-12-25, a day of every year such as 12-25, a day of the week, or a window with from and to"

Excluded = str | Mapping[str, str]


def check(given: Any, field: str = "excluding") -> tuple[Excluded, ...]:
    """The entries of a list that must leave a day of the week (see `parse`)."""
    entries = parse(given, field)
    if set(DAYS) <= {entry for entry in entries if isinstance(entry, str)}:
        raise invalid(field, "a day of the week that is left", "all seven left out")
    return entries


def parse(given: Any, field: str) -> tuple[Excluded, ...]:
    """The entries as they are stored. Raises ``invalid`` for the first that is none, naming its place in the list."""
    if not isinstance(given, list | tuple):
        raise invalid(field, "a list of dates, days of the week and windows", given)
    if len(given) > MOST:
        raise invalid(field, f"at most {MOST} entries", f"{len(given)} entries", "use windows for what lies together")
    return tuple(_checked(entry, f"{field}.{tz}".lstrip(".")) for tz, entry in enumerate(given))


def end_of(excluding: Sequence[Excluded], zone: str, instant: Instant) -> Instant | None:
    """When the exclusion ends that an instant falls into; None if it falls into none. Always later than the instant."""
    if not excluding:
        return None
    tz = instants.zone(zone)
    day = datetime.fromtimestamp(instant // 1000, tz).date()
    ends = [end for entry in excluding if (end := _end(entry, tz, day, instant)) is not None]
    return max(*ends, instant + 1) if ends else None


def next_begin(entries: Sequence[Excluded], zone: str, after: Instant) -> Instant | None:
    """When the next of these days and windows begins, later than an instant; None if all of them are past."""
    tz = instants.zone(zone)
    day = datetime.fromtimestamp(after // 1000, tz).date()
    begins = [begin for entry in entries for begin in _begins(entry, tz, day) if begin > after]
    return min(begins, default=None)


def describe(excluding: Sequence[Excluded]) -> str:
    """The entries in words: ``sat, sun, 12-25 and 2026-08-01 to 2026-08-14``."""
    spelt = [entry if isinstance(entry, str) else f"{entry['from']} to {entry['to']}" for entry in excluding]
    shown = spelt if len(spelt) <= 4 else [*spelt[:3], f"{len(spelt) - 3} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def _end(entry: Excluded, tz: ZoneInfo, day: date, instant: Instant) -> Instant | None:
    if isinstance(entry, str):
        hit = entry in (DAYS[day.weekday()], day.isoformat(), f"{day:%m-%d}")
        return _begin_of(day + timedelta(days=1), tz) if hit else None
    if _is_date(entry["from"]):
        first, last = date.fromisoformat(entry["from"]), date.fromisoformat(entry["to"])
        return _begin_of(last + timedelta(days=1), tz) if first <= day <= last else None
    begins, ends = parse_instant(entry["from"]), parse_instant(entry["to"])
    return ends if begins <= instant < ends else None


def _begins(entry: Excluded, tz: ZoneInfo, day: date) -> list[Instant]:
    """When an entry begins: of what recurs, the times around a day and at least one after it."""
    if not isinstance(entry, str):
        begin = entry["from"]
        return [_begin_of(date.fromisoformat(begin), tz) if _is_date(begin) else parse_instant(begin)]
    if entry in DAYS:
        return [_begin_of(day + timedelta(days=1 + (DAYS.index(entry) - day.weekday() - 1) % 7), tz)]
    # The 29th of February may be eight years away: 1900 and 2100 are no leap years.
    years = range(day.year, day.year + 9)
    dates = [entry] if _is_date(entry) else [f"{year}-{entry}" for year in years]
    return [_begin_of(date.fromisoformat(each), tz) for each in dates if _is_date(each)]


def _begin_of(day: date, tz: ZoneInfo) -> Instant:
    return wall_to_instant(datetime.combine(day, time()), tz)


def _checked(entry: Any, field: str) -> Excluded:
    if isinstance(entry, Mapping):
        return _window(entry, field)
    text = entry.strip().lower() if isinstance(entry, str) else ""
    if text[:3] in DAYS and text in (text[:3], _full(text[:3])):
        return text[:3]
    yearly = _EVERY_YEAR.fullmatch(text)
    if _is_date(text) or (yearly and _is_date(f"{_LEAP_YEAR}-{text}")):
        return text
    raise invalid(field, _FORMS, entry)


def _window(entry: Mapping[str, Any], field: str) -> Mapping[str, str]:
    if set(entry) != {"from", "to"} or not all(isinstance(end, str) for end in entry.values()):
        raise invalid(field, "a window with from and to, two dates or two instants", dict(entry))
    begins, ends = entry["from"], entry["to"]
    if _is_date(begins) and _is_date(ends):
        if ends < begins:
            raise invalid(f"{field}.to", f"a date that is not before {begins}", ends)
        return {"from": begins, "to": ends}
    if parse_instant(ends, f"{field}.to") <= parse_instant(begins, f"{field}.from"):
        raise invalid(f"{field}.to", f"an instant after {begins}", ends)
    return {"from": begins, "to": ends}


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _full(short: str) -> str:
    names = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    return names[DAYS.index(short)]
