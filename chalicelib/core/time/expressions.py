"""The expressions that name fire times (T1): their parser, their normal form, and the next fire.

An expression is one of:

- a cron expression of five or six fields (`core/time/cron.py`), or an object with these fields;
- a recurrence rule of iCalendar with its begin (`core/time/rrule.py`), or an object with ``every`` and ``from``;
- a macro such as ``@daily``, or ``@every 1h30m``;
- ISO 8601 ``R4/PT3S``, ``R/PT3S`` without an end, or ``R4/2026-01-01T00:00:00Z/PT3S`` from an instant on;
- ``cron(0 5 * * ? *)`` or ``rate(5 minutes)``, as Amazon EventBridge writes them.

`normalise` returns the stored form, which is equal for expressions of equal meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from chalicelib.core.errors import SluiceError, invalid, meant
from chalicelib.core.instants import (
    DAY,
    LATEST,
    MAX_TEXT,
    SECOND,
    Instant,
    Millis,
    duration,
    iso,
    of_our_age,
    parse_instant,
    parts_of,
    short_duration,
    zone,
)
from chalicelib.core.time import cron, rrule
from chalicelib.core.time.cron import Cron, CronError
from chalicelib.core.time.rrule import Rule
from chalicelib.core.time.wall import DEFAULT, Daylight, next_instant

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FORMS = (
    "a 5-field cron expression such as '0 5 * * mon-fri', one of 6 fields with the second first, "
    "a macro such as @daily, '@every 1h30m', or 'R4/PT3S'"
)
_REPEATED = re.compile(r"R(\d{0,9})/(?:([^/P]+)/)?(P[^/]+)")  # ISO 8601: number of fires, start, interval
_EVENTBRIDGE = re.compile(r"(cron|rate)\((.*)\)", flags=re.IGNORECASE)
_RATE = re.compile(r"(\d{1,9})\s+(minute|hour|day)s?", flags=re.IGNORECASE)
_DAY_NUMBER = re.compile(r"(?<![#/\d])[1-7](?!\d)")  # not the n of mon#n, and not a step
# The object form: its fields in the order of a cron expression of six, and the default of each. The default of second
# and minute is 0, so that a forgotten minute does not cause 1,440 fires a day.
_CLOCK = ("second", "minute", "hour")
_OBJECT = {"second": "0", "minute": "0", "hour": "*", "day_of_month": "*", "month": "*", "day_of_week": "*"}


@dataclass(frozen=True, slots=True)
class Interval:
    """A fire every ``every`` ms. The first is at ``start``, or without one, ``every`` after an anchor. ``times`` is the
    number of fires in all; None: without an end."""

    every: Millis
    times: int | None = None
    start: Instant | None = None

    def next_fire(self, anchor: Instant, after: Instant) -> Instant | None:
        first = anchor + self.every if self.start is None else self.start
        past = after if self.start is None else max(after, anchor)
        steps = max((past - first) // self.every + 1, 0)
        return first + steps * self.every if self.times is None or steps < self.times else None

    def fires_per_day(self) -> float:
        rate = DAY / self.every
        return rate if self.times is None else min(rate, self.times)

    def __str__(self) -> str:
        if self.times is None and self.start is None:
            return f"@every {''.join(f'{count}{letter}' for count, letter in parts_of(self.every))}"
        times = "" if self.times is None else str(self.times)
        start = "" if self.start is None else f"{iso(self.start).replace('.000Z', 'Z')}/"
        return f"R{times}/{start}{_iso_duration(self.every)}"


Parsed = Cron | Interval | Rule


def normalise(expression: object, field: str = "expression") -> str:
    """The normal form of an expression, given as text or object. It is stored, and equal for equal meaning.

    ``@daily`` is ``0 0 * * *``, ``0 0 5 * * 1,2,3`` is ``0 5 * * mon-wed``, ``{"hour": 5}`` is ``0 5 * * *``. Raises
    ``invalid`` with ``field`` for a malformed expression, and for one that could never fire.
    """
    return str(parse(expression if isinstance(expression, str) else text_of(expression, field), field))


def next_fire(
    expression: str, zone_name: str, anchor: Instant, after: Instant, rule: Daylight = DEFAULT
) -> Instant | None:
    """The first fire strictly after ``after``; None after the last one. Intervals count from ``anchor``, and nothing
    fires before it. ``rule`` decides on wall times that do not exist or exist twice, and on working days."""
    parsed = parse(expression)
    if isinstance(parsed, Interval):
        found = parsed.next_fire(anchor, after)
    elif isinstance(parsed, Rule):
        found = next_instant(parsed.next_wall, zone(zone_name), max(after, anchor), rule)
        if found is not None and parsed.until_instant is not None and found > parsed.until_instant:
            return None
    else:
        next_wall = partial(parsed.next_wall, is_holiday=rule.is_holiday)
        found = next_instant(next_wall, zone(zone_name), max(after, anchor), rule)
    return found if found is not None and found < LATEST else None


def fires_per_day(expression: str) -> float | int:
    """The number of fires a day: the average over years, such as 0.7143 for Monday to Friday. For an expression with an
    end: the number on its first day."""
    return _rounded(parse(expression).fires_per_day())


def is_interval(expression: str) -> bool:
    """Whether the fires count from an anchor, so that without one no instant is known."""
    parsed = parse(expression)
    return isinstance(parsed, Interval) and parsed.start is None


def has_walls(expression: str) -> bool:
    """Whether the expression names wall times of a zone, and not instants that follow from each other."""
    return not isinstance(parse(expression), Interval)


def has_working_days(expression: str) -> bool:
    """Whether the fires depend on holidays."""
    parsed = parse(expression)
    return isinstance(parsed, Cron) and parsed.has_working_days


def repeats(expression: str) -> int | None:
    """The number of fires in all, such as 4 for ``R4/PT3S``; None for an expression without an end."""
    parsed = parse(expression)
    return parsed.times if isinstance(parsed, Interval) else None


@lru_cache(maxsize=4096)
def parse(expression: str, field: str = "expression") -> Parsed:
    """An expression as a value. Raises ``invalid`` for a malformed one, and for one that could never fire."""
    if len(expression) > MAX_TEXT:
        raise invalid(field, f"at most {MAX_TEXT} characters", expression)
    text = _own_form(expression.strip(), field)
    interval = _interval(text, field)
    if interval is not None:
        return interval
    rule = rrule.parse(text, field)
    if rule is not None:
        return rule
    try:
        found = cron.parse(MACROS.get(text.lower(), text))
    except CronError as error:
        raise invalid(field, _FORMS, expression, _spelling(text) or str(error)) from None
    if not _matches_a_date(replace(found, hours=(0,), minutes=(0,), seconds=(0,))):
        hint = "no such date exists in any year; correct day of month or month"
        raise invalid(field, "a cron expression that some date matches", expression, hint)
    return found


@lru_cache(maxsize=4096)
def _matches_a_date(days: Cron) -> bool:
    """Whether some date matches. To find that none does takes a search of years."""
    return days.next_wall(cron.SOME_DAY) is not None


def _own_form(text: str, field: str) -> str:
    """An expression of Amazon EventBridge in the form of Sluice; any other text as it is.

    In ``cron(...)`` the fields are minute, hour, day of month, month, day of week and year. Days of the week count from
    1, Sunday, where Sluice counts from 0.
    """
    found = _EVENTBRIDGE.fullmatch(text)
    if found is None:
        return text
    kind, inner = found[1].lower(), found[2].strip()
    if kind == "rate":
        rate = _RATE.fullmatch(inner)
        if rate is None:
            hint = "or write '@every 5m'"
            raise invalid(field, "a rate such as rate(5 minutes), rate(1 hour) or rate(1 day)", text, hint)
        return f"@every {rate[1]}{rate[2][0].lower()}"
    fields = inner.split()
    if len(fields) != 6:
        hint = "write cron(minute hour day-of-month month day-of-week year), or 5 fields without cron()"
        raise invalid(field, "cron(...) with 6 fields", text, hint)
    *own, weekday, year = fields
    if year != "*":
        hint = "write * for the year, and bound the trigger by start and end"
        raise invalid(field, "cron(...) for every year", text, hint)
    return " ".join([*own, "6" if weekday.upper() == "L" else _from_one(weekday)])


def notes(document: object, path: str = "") -> list[str]:
    """What to check in a document that is valid: each expression that looks like one of Quartz and numbers its days."""
    if isinstance(document, list | tuple):
        return [note for number, part in enumerate(document) for note in notes(part, f"{path}.{number}")]
    if not isinstance(document, Mapping):
        return []
    found = [note for key, part in document.items() for note in notes(part, f"{path}.{key}")]
    written = document.get("expression")
    note = _of_quartz(written) if isinstance(written, str) else None
    return found if note is None else [*found, f"{path}.expression: {note}".lstrip(".")]


def _of_quartz(text: str) -> str | None:
    """The note for six fields with a question mark and numbers of days from 1 to 7; None for other texts."""
    fields = text.split()
    if len(fields) != 6 or "?" not in (fields[3], fields[5]) or not _DAY_NUMBER.search(fields[5]) or "0" in fields[5]:
        return None
    here, there = (str(cron.parse(f"0 0 ? * {week}")).split()[4] for week in (fields[5], _from_one(fields[5])))
    return (
        f"{text!r} fires on {here}, because days of the week count from 0, Sunday; "
        f"if they count from 1, as those of Quartz do, write {there}"
    )


def _from_one(weekday: str) -> str:
    """A field of days of the week that count from 1, Sunday, with numbers that count from 0."""
    return _DAY_NUMBER.sub(lambda day: str(int(day[0]) - 1), weekday)


def _spelling(text: str) -> str | None:
    """What to write in place of an interval in words, of the fields of EventBridge without ``cron()``, and of a macro
    that is misspelt."""
    macro = meant(text.lower(), [*MACROS, "@every"]) if text.startswith("@") else None
    if macro is not None:
        return macro
    words = short_duration(re.sub(r"(?i)^every\s+", "", text))
    if words is not None:
        local = " (docs/time.md has spans of days and weeks in local time)" if words[-1] in "dw" else ""
        return f"write '@every {words}', which counts from the instant at which the schedule is enabled{local}"
    zoned = re.fullmatch(r"(?:CRON_)?TZ=(\S+)\s+(.+)", text)
    if zoned is not None:
        return f"name the zone in a field of its own: 'zone: {zoned[1]}', and 'expression: {zoned[2]}'"
    fields = text.split()
    if len(fields) == 6 and "?" in (fields[2], fields[4]):
        return f"write 'cron({text})' for the six fields of EventBridge; here the first of six is the second"
    return None


def _interval(expression: str, field: str) -> Interval | None:
    text = expression.strip()
    head, _, span = text.partition(" ")
    repeated = _REPEATED.fullmatch(text.upper())
    if repeated is None and head.lower() != "@every":
        return None
    if repeated is None:
        found = Interval(duration(span, field))
    else:
        times, start, every = repeated.groups()
        since = of_our_age(parse_instant(start, field), field, expression) if start else None
        found = Interval(duration(every, field), int(times) if times else None, since)
    if found.every < SECOND:
        raise invalid(field, "an interval of at least 1s", expression)
    if found.times == 0:
        raise invalid(field, "at least one repeat", expression)
    return found


def text_of(document: object, field: str = "expression") -> str:
    """The object form as a cron expression. Keys in snake_case or CamelCase; values are text, numbers, or lists."""
    if not isinstance(document, Mapping):
        raise invalid(field, "text, or an object with fields such as minute and hour", document)
    known = {name.replace("_", ""): name for name in (*_OBJECT, "every", "from")}
    given: dict[str, Any] = {}
    for key, value in document.items():
        path = f"{field}.{key}" if field else str(key)
        name = known.get(str(key).replace("_", "").lower())
        if name is None:
            hint = meant(str(key), known.values(), f"the fields are {', '.join(known.values())}")
            raise SluiceError("unknown_field", f"unknown field {str(key)!r}", path, hint)
        if name in given:
            raise invalid(path, f"{name} once", f"{name} twice")
        given[name] = value if name in ("every", "from") else _value(value, path)
    if not given:
        raise invalid(field, "an object with at least one field such as minute or hour", document)
    every, begin = given.pop("every", None), given.pop("from", None)
    text = " ".join({**_OBJECT, **given}.values())
    return text if every is None and begin is None else _in_periods(text, every, begin, given, field)


def _in_periods(text: str, every: object, begin: object, given: Mapping[str, Any], field: str) -> str:
    """The object form with ``every`` and ``from`` as a recurrence rule."""
    clock = next((name for name in _CLOCK if name in given), None)
    if clock is not None:
        hint = "write the time of day in from, such as 2026-03-02T09:00"
        raise invalid(field, f"every and from without {clock}", dict(given), hint)
    try:
        return rrule.of_object(every, begin, cron.parse(text), field)
    except CronError as error:
        raise invalid(field, "days and months as in a cron expression", dict(given), str(error)) from None


def _value(value: object, field: str) -> str:
    if isinstance(value, list | tuple) and value:
        return ",".join(_value(item, field) for item in value)
    if isinstance(value, bool) or not isinstance(value, str | int) or len(str(value).split()) != 1:
        raise invalid(field, "a number, text such as '*/15' or 'mon-fri', or a list of them", value)
    return str(value).strip()


def _iso_duration(span: Millis) -> str:
    date = time = ""
    parts = {letter: count for count, letter in parts_of(span)}
    if "d" in parts:
        date = f"{parts['d']}D"
    for letter in ("h", "m"):
        time += f"{parts[letter]}{letter.upper()}" if letter in parts else ""
    below_minute = parts.get("s", 0) * SECOND + parts.get("ms", 0)
    if below_minute:
        time += f"{below_minute / SECOND:.3f}".rstrip("0").rstrip(".") + "S"
    return f"P{date}{'T' + time if time else ''}"


def _rounded(rate: float) -> float | int:
    return round(rate) if abs(rate - round(rate)) < 1e-9 else round(rate, 4)
