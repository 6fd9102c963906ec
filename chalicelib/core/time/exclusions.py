"""Lists of days: those that a time trigger leaves out (T6), or that a calendar allows or excludes (C17).

An entry is ``2026-12-25``, ``12-25`` (every year), ``sat``, or a window ``{"from": .., "to": ..}``. A window of two
dates includes both days, also one of every year, such as ``11-15`` to ``02-15``; a window of two RFC 3339 instants is
``[from, to)``. Dates are days in a time zone. `parse`
checks the entries, `core/time/days.py` finds instants in them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant, parse_instant
from chalicelib.core.time import days
from chalicelib.core.time.days import DAYS, Excluded

MAX_ENTRIES = 400  # entries of one list: enough for each day of a year, or the holidays of a few decades
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIRST, _LAST = date(1970, 1, 1), date(9998, 12, 31)  # the dates to which any zone can be applied
_EVERY_YEAR = re.compile(r"(\d{2})-(\d{2})")
_LEAP_YEAR = 2024  # a leap year, so that 29 February is a valid day of every year
_FORMS = "a date such as 2026-12-25, a day of every year such as 12-25, a day of the week, or a window with from and to"


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
        raise invalid(
            field, f"at most {MAX_ENTRIES} entries", f"{len(given)} entries", "use windows for consecutive days"
        )
    return tuple(_checked(entry, f"{field}.{index}".lstrip(".")) for index, entry in enumerate(given))


_PLACES = {name: place for place, name in enumerate(DAYS)}


def end_of(excluding: Sequence[Excluded], zone: str, instant: Instant) -> Instant | None:
    """The end of the exclusion that contains an instant, always later than it; None if none contains it."""
    return days.read(excluding, zone).end_of(instant) if excluding else None


def describe(entries: Sequence[Excluded]) -> str:
    """The entries in plain words, at most four: ``mon to fri, 12-25 and 2026-08-01 to 2026-08-14``."""
    week = sorted({_PLACES[entry] for entry in entries if isinstance(entry, str) and entry in _PLACES})
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
    return bool(_EVERY_YEAR.fullmatch(text)) and _is_date(f"{_LEAP_YEAR}-{text}")


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
