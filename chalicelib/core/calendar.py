"""Instants, durations and the expressions that name fire times. croniter computes; the rules below win.

An *instant* is an int, milliseconds since 1970-01-01T00:00Z; a *duration* an int of milliseconds, written ``1h30m``,
``500ms``, ``2d`` or ISO 8601 ``PT5M``.

Rules for wall time (T2): one that does not exist fires at the first instant after the gap; one that exists twice
fires the first time only. ``@every`` counts elapsed time from its anchor, whatever the clocks do.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter
from croniter.croniter import CroniterError

from chalicelib.core.errors import invalid

Instant = int
Millis = int

SECOND: Millis = 1_000
MINUTE: Millis = 60 * SECOND
HOUR: Millis = 60 * MINUTE
DAY: Millis = 24 * HOUR

LONGEST: Millis = 3_653 * DAY
MOST_TEXT = 200  # characters of a duration or an expression; nothing that a person writes is longer

_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_GO = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_ISO = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_REPEATED = re.compile(r"R(\d{1,9})/(P.+)")  # ISO 8601: so many times, so far apart
_ISO_UNITS = (7 * DAY, DAY, HOUR, MINUTE, SECOND)

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FORMS = "a 5-field cron expression such as '0 5 * * mon-fri', a macro such as @daily, '@every 1h30m', or 'R4/PT3S'"
# A cron expression that names no date within this many years never fires (29 February can be 8 years away).
_HORIZON_YEARS = 9
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)  # wall time: croniter is asked without a zone


def duration(text: str, field: str = "duration") -> Millis:
    """``1h30m`` or ``PT1H30M`` as milliseconds. Raises ``invalid`` for anything else, zero, and more than ten years."""
    total = 0.0
    cleaned = text.replace(" ", "") if len(text) <= MOST_TEXT else ""
    iso = _ISO.fullmatch(cleaned.upper())
    if iso and any(iso.groups()):
        total = sum(float(part) * unit for part, unit in zip(iso.groups(), _ISO_UNITS, strict=True) if part)
    elif cleaned and not _GO.sub("", cleaned):
        total = sum(float(number) * _UNITS[unit] for number, unit in _GO.findall(cleaned))
    if not 1 <= total <= LONGEST:
        raise invalid(field, "a duration such as 90s, 1h30m, 2d or PT5M, from 1ms to 10 years", text)
    return round(total)


def spell_duration(span: Millis) -> str:
    """A duration as a person writes it: ``1h 30m``, ``10s``, ``250ms``."""
    if span < SECOND:
        return f"{span}ms"
    rest, parts = span // SECOND, []
    for unit, letter in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")):
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{letter}")
    return " ".join(parts[:2])


def iso(instant: Instant) -> str:
    """RFC 3339 in UTC with milliseconds; sorts as the instants do, so it serves as a sort key."""
    moment = datetime.fromtimestamp(instant // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{instant % 1000:03d}Z"


def parse_instant(text: str, field: str = "instant") -> Instant:
    """An RFC 3339 instant (with an offset or ``Z``) as milliseconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise invalid(field, "an RFC 3339 instant such as 2026-11-20T12:00:00Z", text)
    return _millis(moment)


def zone(name: str, field: str = "zone") -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = "use a name of the IANA time zone database"
        raise invalid(field, "a time zone such as Europe/Paris or UTC", name, hint) from None


@lru_cache(maxsize=4096)
def check_expression(expression: str, zone_name: str = "UTC") -> None:
    """Refuse what could never fire. Raises ``invalid`` naming field, expected and got."""
    zone(zone_name)
    if len(expression) > MOST_TEXT:
        raise invalid("expression", f"at most {MOST_TEXT} characters", expression)
    interval = _interval(expression)
    if interval is not None:
        if interval < SECOND:
            raise invalid("expression", "an interval of at least 1s", expression)
        if repeats(expression) == 0:
            raise invalid("expression", "at least one repeat", expression)
        return
    cron = _cron(expression)
    try:
        croniter(cron, _SOME_DAY, max_years_between_matches=_HORIZON_YEARS).get_next(datetime)
    except (CroniterError, ValueError) as error:
        if "find next date" in str(error):
            hint = "no such date exists in any year; correct day of month or month"
            raise invalid("expression", "a cron expression that some date matches", expression, hint) from None
        raise invalid("expression", _FORMS, expression, str(error)) from None


def next_fire(expression: str, zone_name: str, anchor: Instant, after: Instant) -> Instant | None:
    """The first fire strictly after ``after``, None after the last one. ``anchor`` is where intervals count from;
    nothing fires before it."""
    interval = _interval(expression)
    if interval is not None:
        steps = max((after - anchor) // interval + 1, 1)
        most = repeats(expression)
        return anchor + steps * interval if most is None or steps <= most else None
    after = max(after, anchor)
    place = zone(zone_name)
    start = datetime.fromtimestamp(after / 1000, place).replace(tzinfo=None)
    walls = croniter(_cron(expression), start, max_years_between_matches=_HORIZON_YEARS)
    while True:
        instant = wall_to_instant(walls.get_next(datetime), place)
        # A wall time inside a gap, or in the second pass of a repeated hour, maps to an instant that has passed.
        if instant > after:
            return instant


def describe(expression: str, zone_name: str = "UTC") -> str:
    """The expression in words, for people: ``every 10s`` or ``at '0 5 * * *' in UTC``."""
    interval, times = _interval(expression), repeats(expression)
    if interval is None:
        return f"at '{expression}' in {zone_name}"
    return f"every {spell_duration(interval)}{'' if times is None else f', {times} times'}"


def is_interval(expression: str) -> bool:
    """Whether its fires count from an anchor, so that no instant by itself is one of them."""
    return _interval(expression) is not None


def interval(expression: str) -> Millis | None:
    """How far apart the fires of an interval are; None for an expression that names times."""
    return _interval(expression)


def repeats(expression: str) -> int | None:
    """How often ``R4/PT3S`` fires in all; None for an expression without an end."""
    found = _REPEATED.fullmatch(expression.strip().upper())
    return int(found[1]) if found else None


def _interval(expression: str) -> Millis | None:
    head, _, rest = expression.strip().partition(" ")
    found = _REPEATED.fullmatch(expression.strip().upper())
    if found:
        return duration(found[2], "expression")
    return duration(rest, "expression") if head == "@every" else None


def _cron(expression: str) -> str:
    text = expression.strip()
    cron = MACROS.get(text.lower(), text)
    if len(cron.split()) != 5 or re.search(r"(?i)[^\w\s*/,?-]|(?<![a-z])[hlrw](?![a-z])", cron):
        raise invalid("expression", _FORMS, expression)
    return cron


def wall_to_instant(wall: datetime, place: ZoneInfo) -> Instant:
    """The instant of a wall time, by the rules at the head of this file."""
    first = wall.replace(tzinfo=place, fold=0)
    instant = _millis(first)
    exists = datetime.fromtimestamp(instant / 1000, place).replace(tzinfo=None) == wall
    return instant if exists else _end_of_gap(first, place)


def _end_of_gap(missing: datetime, place: ZoneInfo) -> Instant:
    """The instant at which the clocks went forward over ``missing``: found by halving between its two readings."""
    # Read with the offset before the gap (fold 0) the wall time lies after the change, with the one after it, before.
    late, early = _millis(missing.replace(fold=0)), _millis(missing.replace(fold=1))
    offset_after = datetime.fromtimestamp(late / 1000, place).utcoffset() or timedelta()
    while late - early > 1:
        middle = (late + early) // 2
        if (datetime.fromtimestamp(middle / 1000, place).utcoffset() or timedelta()) == offset_after:
            late = middle
        else:
            early = middle
    return late


def _millis(moment: datetime) -> Instant:
    return round(moment.timestamp() * 1000)
