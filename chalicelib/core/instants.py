"""Instants, durations and time zones.

An *instant* is an int, milliseconds since 1970-01-01T00:00Z; a *duration* an int of milliseconds, written ``1h30m``,
``500ms``, ``2d`` or ISO 8601 ``PT5M``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from chalicelib.core import zones
from chalicelib.core.errors import invalid

Instant = int
Millis = int

SECOND: Millis = 1_000
MINUTE: Millis = 60 * SECOND
HOUR: Millis = 60 * MINUTE
DAY: Millis = 24 * HOUR

MAX_DURATION: Millis = 3_653 * DAY
MAX_TEXT = 200  # characters of a duration or an expression
LATEST: Instant = (
    253_370_764_800_000  # 9999-01-01T00:00:00Z: from here on, Python cannot compute with wall times of every zone
)

_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_GO = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_ISO = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_WORDS = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])"
    r",?\s*(?:and\s+)?",
    flags=re.IGNORECASE,
)
_ISO_UNITS = (7 * DAY, DAY, HOUR, MINUTE, SECOND)
_INSTANT = "an RFC 3339 instant such as 2026-11-20T12:00:00Z"


@lru_cache(maxsize=1024)
def duration(text: str, field: str = "duration", least: Millis = 1) -> Millis:
    """``1h30m`` or ``PT1H30M`` as milliseconds. Raises ``invalid`` for any other text, for less than ``least`` ms, and
    for more than ten years."""
    total = 0.0
    cleaned = text.replace(" ", "") if len(text) <= MAX_TEXT else ""
    iso = _ISO.fullmatch(cleaned.upper())
    if iso and any(iso.groups()):
        total = sum(float(part) * unit for part, unit in zip(iso.groups(), _ISO_UNITS, strict=True) if part)
    elif cleaned and not _GO.sub("", cleaned):
        total = sum(float(number) * _UNITS[unit] for number, unit in _GO.findall(cleaned))
    read = bool(iso and any(iso.groups())) or bool(cleaned and not _GO.sub("", cleaned))
    if not read or not least <= total <= MAX_DURATION:
        bounds = f"from {format_duration(least) if least else '0s'} to 10 years"
        hint = None if read else _unit_hint(text)
        raise invalid(field, f"a duration such as 90s, 1h30m, 2d or PT5M, {bounds}", text, hint)
    return round(total)


def short_duration(text: str) -> str | None:
    """A duration in words as Sluice writes it: ``5m`` for ``5 minutes``, ``1h30m`` for ``1 hour and 30 mins``. None for
    any other text."""
    if len(text) > MAX_TEXT or not (found := _WORDS.findall(text)) or _WORDS.sub("", text).strip():
        return None
    return "".join(
        number + ("ms" if unit.lower().startswith(("ms", "mil")) else unit[0].lower()) for number, unit in found
    )


def _unit_hint(text: str) -> str | None:
    bare = text.strip()
    if re.fullmatch(r"\d{1,9}", bare):
        return f"a number has no unit: write {bare}s for seconds, or {bare}m for minutes"
    words = short_duration(text)
    return f"write {words}" if words else None


def iso_or_none(instant: Instant | None) -> str | None:
    return iso(instant) if instant is not None else None


def format_duration(span: Millis) -> str:
    """A duration in ms as text, by its two largest units: ``1h 30m``, ``10s``, ``250ms``."""
    if span < SECOND:
        return f"{span}ms"
    return " ".join(f"{count}{letter}" for count, letter in parts_of(span)[:2])


def parts_of(span: Millis) -> list[tuple[int, str]]:
    """A duration as days, hours, minutes, seconds and milliseconds, without zeros: ``[(1, "h"), (30, "m")]``."""
    parts, remainder = [], span
    for letter in ("d", "h", "m", "s", "ms"):
        count, remainder = divmod(remainder, _UNITS[letter])
        if count:
            parts.append((count, letter))
    return parts


def iso(instant: Instant) -> str:
    """An instant in RFC 3339, in UTC with milliseconds. Texts sort like instants, so they serve as sort keys."""
    moment = datetime.fromtimestamp(instant // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{instant % 1000:03d}Z"


def parse_instant(text: str, field: str = "instant") -> Instant:
    """An RFC 3339 instant (with an offset or ``Z``) as milliseconds. Raises ``invalid`` for any other text."""
    instant = _instant(text)
    if instant is None:
        raise invalid(field, _INSTANT, text)
    return instant


def parse_when(value: object, now: Instant, field: str = "due_time") -> Instant:
    """An instant in one of the three forms of T3. It is an RFC 3339 instant, or a duration that counts from ``now``,
    written ``2h30m`` or ``PT2H30M`` (``0s``: now). An instant may lie in the past. A bare number is refused: it has no
    unit."""
    if not isinstance(value, str):
        hint = "a number has no unit: write 30s, PT30S, or an instant with its offset"
        raise invalid(field, f"{_INSTANT}, or a duration from now such as 2h30m or PT2H30M", value, hint)
    text = value.strip()
    if re.match(r"(?i)P|[\d. ]+[a-z]", text) and not re.match(r"\d{4}-", text):
        return now + duration(text, field, least=0)
    instant = _instant(text)
    if instant is None:
        bare = re.fullmatch(r"\d{4}-\d\d-\d\d([T ][\d:.]*)?", text)
        offset = "an instant says its offset: Z, or +02:00" if bare else None
        raise invalid(field, f"{_INSTANT}, or a duration from now such as 2h30m or PT2H30M", value, offset)
    return of_our_age(instant, field, value)


def of_our_age(instant: Instant, field: str, got: object) -> Instant:
    """Returns the instant if wall times can be computed for it in any zone. Raises ``invalid`` for other years."""
    if not 0 <= instant < LATEST:
        raise invalid(field, "an instant from the year 1970 to 9998", got)
    return instant


def _instant(text: str) -> Instant | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return millis(moment) if moment.tzinfo is not None else None


def zone(name: str, field: str = "zone") -> ZoneInfo:
    """The zone with this name. Raises ``invalid`` if the IANA database has none."""
    found = None if _OF_A_MACHINE.fullmatch(name) else zones.zone(name)
    if found is None:
        raise invalid(field, "a time zone such as Europe/Paris or UTC", name, _zone_hint(name))
    return found


# Files that some machines keep beside the zones: their own zone, and zones whose clocks count leap seconds or do not.
_OF_A_MACHINE = re.compile(r"(?:right|posix)/(.*)|localtime|posixrules")
# Abbreviations that are no names of zones: an abbreviation belongs to several zones, and to one half of the year.
_ABBREVIATIONS = {
    "AEDT": "Australia/Sydney",
    "AEST": "Australia/Sydney",
    "BST": "Europe/London",
    "CDT": "America/Chicago",
    "CEST": "Europe/Paris",
    "CST": "America/Chicago",
    "EDT": "America/New_York",
    "EEST": "Europe/Athens",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "MDT": "America/Denver",
    "MSK": "Europe/Moscow",
    "PDT": "America/Los_Angeles",
    "PST": "America/Los_Angeles",
    "SGT": "Asia/Singapore",
    "WEST": "Europe/Lisbon",
    "Z": "UTC",
}


def _zone_hint(name: str) -> str:
    """The hint for the name of a zone that the database does not have."""
    local = _OF_A_MACHINE.fullmatch(name)
    if local is not None:
        return f"it exists on some machines only: write {local[1] or 'the name of a place, such as Europe/Paris'}"
    likely = _ABBREVIATIONS.get(name.upper())
    if likely is not None:
        return f"write the name of a place, such as {likely}"
    if re.fullmatch(r"(UTC|GMT)?[+-]\d{1,2}(:?\d{2})?", name.upper()):
        return "an offset is no zone, for it has no daylight saving: write the name of a place, such as Europe/Paris"
    places = "/".join("_".join(word.capitalize() for word in part.split("_")) for part in name.split("/"))
    for candidate in (name.upper(), places):
        if zones.zone(candidate) is not None:
            return f"did you mean {candidate!r}?"
    if re.fullmatch("[A-Z]{2,5}", name):
        return "an abbreviation is no zone: write the name of a place, such as America/New_York"
    return "use a name of the IANA time zone database"


def millis(moment: datetime) -> Instant:
    """The instant of a datetime with an offset."""
    return round(moment.timestamp() * 1000)
