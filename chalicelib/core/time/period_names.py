"""The names of periods in the folders of partitions: a format with fields of strftime, which is read and written (T24).

Example: with ``dt=%Y-%m-%d/hour=%H``, the folders ``dt=2026-03-01/hour=07/`` name the hour from 07:00. What is read may
have other leading zeros: ``hour=7``. What is written has those of the format: ``07`` of ``%H``, and ``7`` of ``%-H``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple

from chalicelib.core import zones
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, HOUR, MINUTE, Millis
from chalicelib.core.time.periods import FIRST_YEAR, LAST_YEAR, WEEKDAYS, Calendar, Period, Unit, Weekday, quarter_of

FIELDS = {
    "Y": ("year", 4),
    "q": ("quarter", 1),
    "m": ("month", 2),
    "d": ("day", 2),
    "j": ("day of the year", 3),
    "G": ("year of the ISO week", 4),
    "V": ("ISO week", 2),
    "H": ("hour", 2),
    "M": ("minute", 2),
    "z": ("offset", 5),
}
# The lengths of periods: unit, count, and ms if every one is as long, apart from changes of the clocks.
LENGTHS: Mapping[str, tuple[Unit, int, Millis | None]] = {
    "15m": ("minute", 15, 15 * MINUTE),
    "20m": ("minute", 20, 20 * MINUTE),
    "30m": ("minute", 30, 30 * MINUTE),
    "hour": ("hour", 1, HOUR),
    "2h": ("hour", 2, 2 * HOUR),
    "3h": ("hour", 3, 3 * HOUR),
    "4h": ("hour", 4, 4 * HOUR),
    "6h": ("hour", 6, 6 * HOUR),
    "8h": ("hour", 8, 8 * HOUR),
    "12h": ("hour", 12, 12 * HOUR),
    "day": ("day", 1, DAY),
    "week": ("week", 1, 7 * DAY),
    "month": ("month", 1, None),
    "quarter": ("quarter", 1, None),
    "year": ("year", 1, None),
}
_LONGEST: Mapping[str, Millis] = {"month": 31 * DAY, "quarter": 92 * DAY, "year": 366 * DAY}
# The sets of fields that determine a period, the usual one first.
_DAYS = ("Ymd", "Yj")
DETERMINING: Mapping[Unit, tuple[str, ...]] = {
    "year": ("Y",),
    "quarter": ("Yq", "Ym"),
    "month": ("Ym",),
    "week": ("GV", *_DAYS),
    "day": _DAYS,
    "hour": tuple(f"{day}H" for day in _DAYS),
    "minute": tuple(f"{day}HM" for day in _DAYS),
}
# Pairs of fields that are two ways to write one thing.
_TWICE = (("Y", "G"), ("m", "j"), ("d", "j"), ("m", "q"), ("Y", "V"))
_FIELD = re.compile("%(-?)(.?)")
_LITERAL = re.compile(r"[A-Za-z0-9 ._:,+@-]*")
_FORM = "key=value folders with fields of strftime, such as day=%Y-%m-%d"


class Field(NamedTuple):
    """A field of a format. ``padded``: it is written with leading zeros."""

    code: str
    padded: bool

    @property
    def text(self) -> str:
        return f"%{'' if self.padded else '-'}{self.code}"


@dataclass(frozen=True, slots=True)
class Folder:
    """The format of the value of one key, and the pattern of what is read."""

    key: str
    tokens: tuple[str | Field, ...]
    pattern: re.Pattern[str]

    @property
    def fields(self) -> list[Field]:
        return [token for token in self.tokens if isinstance(token, Field)]

    def __str__(self) -> str:
        return f"{self.key}={''.join(token if isinstance(token, str) else token.text for token in self.tokens)}"


Format = tuple[Folder, ...]


@lru_cache(maxsize=256)
def parse(text: str) -> Format:
    """A format by its folders. Raises ``invalid`` for the field ``format`` if it is none, or does not read back what it
    writes."""
    if text.startswith("/") or text.endswith("/"):
        raise invalid("format", _FORM, text, "remove the slash at its beginning or end")
    found = tuple(map(_folder, text.split("/")))
    keys = [folder.key for folder in found]
    if len(set(keys)) < len(keys):
        raise invalid("format", "each key once", text, "write one format for each key")
    return found


def check(form: Format, unit: Unit, count: int = 1, week_starts: str = "mon") -> None:
    """Raise ``invalid`` for the field ``format`` unless its fields determine a period of ``count`` units, each in one
    way."""
    written, got = {field.code for folder in form for field in folder.fields}, text_of(form)
    of = _length(unit, count)
    for one, other in _TWICE:
        if {one, other} <= written:
            names = " and ".join(f"%{code} ({FIELDS[code][0]})" for code in (one, other))
            hint = _hint_for_weeks(unit) if "G" in (one, other) or "V" in (one, other) else f"write one of {names}"
            raise invalid("format", f"one way to write a period, and not both {names}", got, hint)
    if unit == "week" and week_starts != "mon" and "V" in written:
        hint = "write the first day of the week: %Y-%m-%d"
        raise invalid("format", f"no ISO week (%V) for weeks that start on {week_starts}", got, hint)
    ways = DETERMINING[unit] if not (unit == "week" and week_starts != "mon") else _DAYS
    way = max(ways, key=lambda codes: len(written & set(codes)))
    allowed = {code for each in ways for code in each} | ({"z"} if unit in ("hour", "minute") else set())
    finer = sorted(written - allowed)
    if finer:
        code = finer[0]
        hint = f"remove %{code}, or write what it always is, such as 00; or name a shorter period"
        raise invalid("format", f"no %{code} ({FIELDS[code][0]}) for a period of {of}", got, hint)
    missing = [code for code in way if code not in written]
    if missing:
        wanted = " ".join(f"%{code}" for code in way)
        hint = f"add %{missing[0]} ({FIELDS[missing[0]][0]})"
        raise invalid("format", f"a format that determines a period of {of}, with {wanted}", got, hint)


def text_of(form: Format) -> str:
    return "/".join(map(str, form))


def keys_of(text: str) -> tuple[str, ...]:
    """The keys of a format, in their order."""
    return tuple(folder.partition("=")[0] for folder in text.split("/"))


def has_offset(form: Format) -> bool:
    return any(field.code == "z" for folder in form for field in folder.fields)


@dataclass(frozen=True, slots=True)
class Names:
    """How folders name the periods of a calendar."""

    calendar: Calendar
    form: Format

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(folder.key for folder in self.form)

    def read(self, values: Mapping[str, str]) -> Period:
        """The period that the values of its keys name. Raises ``invalid`` if they name none; its field is the key."""
        numbers: dict[str, str] = {}
        for folder in self.form:
            _read_folder(folder, values[folder.key], numbers)
        got = "/".join(f"{key}={values[key]}" for key in self.keys)
        last = self.keys[-1]
        wall = _wall(numbers, got, last)
        if self.calendar.floor(wall) != wall:
            raise invalid(last, self._first(), got)
        period = self.calendar.named(wall, _offset(numbers.get("z")))
        if period is None:
            zone = self.calendar.zone
            raise invalid(last, f"a time that the clocks of {zone} show", got, f"{zone} skips it")
        return period

    def write(self, period: Period) -> dict[str, str]:
        """The values of its keys that name a period, as the format writes them."""
        return {folder.key: "".join(_written(token, period) for token in folder.tokens) for folder in self.form}

    def _first(self) -> str:
        """What a name names, as an expected value."""
        unit, count = self.calendar.unit, self.calendar.count
        if unit == "week":
            return f"the first day of a week, a {_DAY_NAMES[WEEKDAYS.index(self.calendar.week_starts)]}"
        return f"the beginning of a period of {_length(unit, count)}"


def longest(each: str) -> Millis:
    """The length of a period, of a varying one the longest, without changes of the clocks."""
    return LENGTHS[each][2] or _LONGEST[each]


def of(each: str, text: str, zone: str, week_starts: Weekday = "mon") -> Names | None:
    """How folders of the format ``text`` name periods of the length ``each``; None if the present rules of time zones
    have no such zone."""
    return _of(each, text, zone, week_starts, zones.version())


@lru_cache(maxsize=256)
def _of(each: str, text: str, zone: str, week_starts: Weekday, _version: str) -> Names | None:
    tz, form = zones.zone(zone), parse(text)
    if tz is None:
        return None
    unit, count, _ = LENGTHS[each]
    return Names(Calendar(unit, count, zone, tz, week_starts, has_offset(form)), form)


_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _folder(text: str) -> Folder:
    key, equals, value = text.partition("=")
    if not key or not equals or not value:
        raise invalid("format", _FORM, text, "write key=format for each key of the period, with / between them")
    tokens = _tokens(value)
    if not any(isinstance(token, Field) for token in tokens):
        hint = f"write fields such as %Y, or leave out {key} if its value is no part of the period"
        raise invalid("format", _FORM, text, hint)
    return Folder(key, tokens, re.compile("".join(_pattern(tokens, number, text) for number in range(len(tokens)))))


def _tokens(value: str) -> tuple[str | Field, ...]:
    tokens: list[str | Field] = []
    at = 0
    for found in _FIELD.finditer(value):
        tokens += [value[at : found.start()]] if found.start() > at else []
        tokens.append(_field(found[1] == "", found[2]))
        at = found.end()
    tokens += [value[at:]] if at < len(value) else []
    for token in tokens:
        if isinstance(token, str) and not _LITERAL.fullmatch(token):
            hint = "write the value as it is without escapes: 07:00 for the folder 07%3A00"
            raise invalid("format", "letters, digits, spaces and . _ : , + @ - besides the fields", token, hint)
    return tuple(tokens)


def _field(padded: bool, code: str) -> Field:
    given = f"%{'' if padded else '-'}{code}"
    if code not in FIELDS:
        meant = {"y": "%Y", "U": "%V", "W": "%V", "I": "%H", "b": "%m", "B": "%m", "F": "%Y-%m-%d", "w": "%d"}.get(code)
        hint = (
            f"write {meant}" if meant is not None else "write a field after %; the escape %3A of a folder is written :"
        )
        raise invalid("format", f"a field among {' '.join(f'%{each}' for each in FIELDS)}", given, hint)
    if not padded and code in "YGqz":
        raise invalid("format", f"%{code}, which has no leading zeros", given, f"write %{code}")
    return Field(code, padded)


def _pattern(tokens: Sequence[str | Field], number: int, text: str) -> str:
    """The pattern of a token. A number beside another digit has all its digits: otherwise it could not be read back."""
    token = tokens[number]
    if isinstance(token, str):
        return re.escape(token)
    before = tokens[number - 1] if number else ""
    after = tokens[number + 1] if number + 1 < len(tokens) else ""
    follows = after[:1].isdigit() if isinstance(after, str) else after.code != "z"
    beside = follows or (before[-1:].isdigit() if isinstance(before, str) else True)
    if (token.code == "z" and follows) or (beside and not token.padded):
        hint = "write a sign such as - between them" + ("" if token.padded else f", or %{token.code}")
        raise invalid("format", f"a format that can be read back, without a digit beside {token.text}", text, hint)
    if token.code == "z":
        return "([+-][0-9]{4}(?:[0-9]{2})?)"
    width = FIELDS[token.code][1]
    digits = f"[0-9]{{{width}}}" if beside or width == 4 else f"[0-9]{{1,{width}}}"
    return f"({digits})"


def _read_folder(folder: Folder, value: str, numbers: dict[str, str]) -> None:
    """Add what a value says to ``numbers``, by the fields. Raises ``invalid`` if it is not of the format, or says other
    than the folders before."""
    found = folder.pattern.fullmatch(value)
    if found is None:
        raise invalid(folder.key, f"a value of the form {folder}", f"{folder.key}={value}")
    for field, text in zip(folder.fields, found.groups(), strict=True):
        number = text if field.code == "z" else str(int(text))
        if numbers.setdefault(field.code, number) != number:
            expected = f"the {FIELDS[field.code][0]} {numbers[field.code]}, as before in its name"
            raise invalid(folder.key, expected, f"{folder.key}={value}")


def _wall(texts: Mapping[str, str], got: str, key: str) -> datetime:
    numbers = {code: int(text) for code, text in texts.items() if code != "z"}
    year = numbers.get("Y", numbers.get("G", 0))
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise invalid(key, f"a year from {FIRST_YEAR} to {LAST_YEAR}", got)
    try:
        if "V" in numbers:
            return datetime.combine(date.fromisocalendar(year, numbers["V"], 1), time())
        month = numbers.get("m", 3 * numbers.get("q", 1) - 2)
        day = date(year, month, numbers.get("d", 1)) + timedelta(days=numbers.get("j", 1) - 1)
        if day.year != year or numbers.get("j") == 0:
            raise ValueError(f"the year {year} has no day {numbers['j']}")
        return datetime.combine(day, time(numbers.get("H", 0), numbers.get("M", 0)))
    except ValueError as error:
        raise invalid(key, f"a time of the calendar ({error})", got) from None


def _offset(text: str | None) -> timedelta | None:
    if text is None:
        return None
    hours, minutes, seconds = int(text[1:3]), int(text[3:5]), int(text[5:] or 0)
    span = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return -span if text[0] == "-" else span


def _written(token: str | Field, period: Period) -> str:
    if isinstance(token, str):
        return token
    if token.code == "z":
        return _offset_text(period.offset or timedelta())
    wall = period.wall
    week = wall.isocalendar()
    number = {
        "Y": wall.year,
        "q": quarter_of(wall),
        "m": wall.month,
        "d": wall.day,
        "j": wall.timetuple().tm_yday,
        "G": week.year,
        "V": week.week,
        "H": wall.hour,
        "M": wall.minute,
    }[token.code]
    return f"{number:0{FIELDS[token.code][1]}}" if token.padded else str(number)


def _offset_text(offset: timedelta) -> str:
    seconds = round(abs(offset).total_seconds())
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{'-' if offset < timedelta() else '+'}{hours:02}{minutes:02}{f'{rest:02}' if rest else ''}"


def _hint_for_weeks(unit: Unit) -> str:
    if unit == "week":
        return "write %G-W%V for an ISO week, or %Y-%m-%d for its first day"
    return "write %Y-%m-%d: %G and %V are those of ISO weeks"


def _length(unit: Unit, count: int) -> str:
    return f"{count} {unit}s" if count > 1 else f"one {unit}"
