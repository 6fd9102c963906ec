"""Converts cron expressions of other schedulers into those of Sluice (docs/time.md).

There are three dialects: Vixie cron (crontab files), Quartz (EventBridge and CDAP), and croniter (Airflow). They differ
in the numbers of the days of the week, and in the position of the second. They also differ in the values that count as
a restriction of the day.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass

from sluice.client import Document
from sluice.convert.draft import NotCarried

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, MONTHS)
VIXIE_WEEK = Field("day of week", 0, 7, DAYS)
QUARTZ_WEEK = Field("day of week", 1, 7, DAYS)
YEAR = Field("year", 1970, 2199)


def vixie(text: str) -> Document:
    """The fields of a time trigger for the five fields of a crontab line. Raises `NotCarried`."""
    fields = text.lower().split()
    minute, hour, day, month, week = fields
    minutes, hours = _strict(MINUTE, minute), _strict(HOUR, hour)
    days, months, weekdays = _strict(DAY, day), _strict(MONTH, month), _strict(VIXIE_WEEK, week)
    trigger: Document = {}
    # In Vixie cron, either field of days suffices only if neither begins with a star, as `*/2` does. Sluice counts
    # `*/2` as a restriction, so the converter excludes the other days of the week instead.
    starred = [each for each in (day, week) if each.startswith("*")]
    if starred and "*/1" not in (day, week) and day != "*" and week != "*":
        kept = {number % 7 for number in weekdays}
        trigger["excluding"] = [name for number, name in enumerate(DAYS) if number not in kept]
        week = "*"
    if week in ("*", "*/1"):
        _check_dates(days, months, text)
    given = ((MINUTE, minute, minutes), (HOUR, hour, hours), (DAY, day, days), (MONTH, month, months))
    shown = [_listed(*each) for each in given]
    shown.append(week if week == "*" else _listed(VIXIE_WEEK, week, weekdays))
    trigger = {"type": "time", "expression": " ".join(shown), **trigger}
    # When the clock changes, a line with a wildcard in minute or hour fires by the new wall time. Any other line fires
    # once on each day, after a gap and in the first pass of an overlap, which is Sluice's default.
    if minute.startswith("*") or hour.startswith("*"):
        trigger |= {"gap": "skip", "overlap": "both"}
    return trigger


def quartz(fields: list[str], both_days: bool = False) -> str:
    """The expression for five fields, from minute to day of week, or for six fields with the second first.
    ``both_days`` also accepts `*` instead of `?` in a field of days, as CDAP does. Raises `NotCarried`."""
    fields = [field.lower() for field in fields]
    *second, minute, hour, day, month, week = fields
    if "?" not in (day, week) and not (both_days and "*" in (day, week)):
        raise NotCarried(" ".join(fields), "one of the two fields of days must be ?", "write ? for one of them")
    for field, text in ((MINUTE, minute), (HOUR, hour), *((SECOND, text) for text in second)):
        _loose(field, text)
    months = _loose(MONTH, month)
    shown = "*" if day == "?" else _month_days(day, months if week in ("?", "*") else None, " ".join(fields))
    return " ".join([*second, minute, hour, shown, month, _quartz_week(week)])


def _month_days(text: str, months: list[int] | None, whole: str) -> str:
    """The field of the day of the month, in which `L`, `L-3`, `LW` and `15W` mean the same in Sluice. If ``months`` are
    given, one of them must have the days, if there are no others. Raises `NotCarried`."""
    items = text.split(",")
    of_end = [item for item in items if re.fullmatch(r"l(-([12]?\d|30))?w?", item)]
    plain = [re.sub(r"^(\d{1,2})w$", r"\1", item) for item in items if item not in of_end]
    days = _loose(DAY, ",".join(plain)) if plain else []
    if months is not None and not of_end:
        _check_dates(days, months, whole)
    return text.replace("l", "L").replace("w", "W")


def _quartz_week(text: str) -> str:
    """The day of the week by name, because 1 is Sunday in Quartz."""
    if text in ("?", "*"):
        return "*"
    shown = []
    for item in text.split(","):
        if item == "l":
            shown.append("sat")
        elif found := re.fullmatch(r"(\w+?)(?:#([1-5])|(l))", item):
            name = DAYS[(_number(QUARTZ_WEEK, found[1]) - 1) % 7]
            shown.append(f"{name}L" if found[3] else f"{name}#{found[2]}")
        elif "/" in item or item == "*":
            shown += [DAYS[number - 1] for number in _loose(QUARTZ_WEEK, item)]
        else:
            ends = [DAYS[_number(QUARTZ_WEEK, end) - 1] for end in item.split("-", 1)]
            shown.append("-".join(dict.fromkeys(ends)))
    return ",".join(dict.fromkeys(shown))


def years(text: str) -> tuple[int, int] | None:
    """The first and the last year of a field; None for every year. Raises `NotCarried` if years between are missing."""
    if text in ("*", "?"):
        return None
    numbers = _loose(YEAR, text)
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise NotCarried(f"the years {text}", "a trigger has one start and one end", "write a schedule for each year")
    return numbers[0], numbers[-1]


def croniter(text: str) -> str:
    """The expression for one of Airflow, with five fields, or six with the second last. Raises `NotCarried`."""
    fields = text.lower().split()
    if len(fields) not in (5, 6):
        raise NotCarried(repr(text), "it has neither five nor six fields", "write a cron expression")
    minute, hour, day, month, week, *second = fields
    for field, given in ((MINUTE, minute), (HOUR, hour), (MONTH, month), *((SECOND, given) for given in second)):
        _loose(field, given)
    days = _month_days(day, _loose(MONTH, month) if week in ("*", "?") else None, text)
    if late := re.search(r"(29|3[01])W", days):
        todo = "write L-3W to LW, or a day up to 28"
        raise NotCarried(late[0], "croniter takes the last day of a shorter month, and Sluice does not fire", todo)
    shown = []
    for item in week.split(","):
        if found := re.fullmatch(r"l([0-7])", item):
            shown.append(f"{DAYS[int(found[1]) % 7]}L")
        elif found := re.fullmatch(r"(\w+)#([1-5l])", item):
            name = DAYS[_number(VIXIE_WEEK, found[1]) % 7]
            shown.append(f"{name}L" if found[2] == "l" else f"{name}#{found[2]}")
        else:
            _loose(VIXIE_WEEK, item)
            shown.append(item)
    return " ".join([*second, minute, hour, days, month, ",".join(shown)])


def _strict(field: Field, text: str) -> list[int]:
    """The numbers of a field of Vixie cron, which supports neither wrapping ranges nor a step after a single number."""
    for item in text.split(","):
        base, _, step = item.partition("/")
        first, dash, last = base.partition("-")
        if "~" in item:
            raise NotCarried(item, "Sluice picks no random time for a line", "write a time, and jitter if wanted")
        if any(end not in field.names and re.search(r"^(\d*|[a-z]{3})[lw]$|[#?]", end) for end in (first, last)):
            raise NotCarried(
                f"{item.upper()} in {field.name}",
                "cron itself knows no L, W, # and ?",
                "write the time as a Sluice expression, such as friL or mon#1 (docs/time.md)",
            )
        if step and not dash and base != "*":
            raise NotCarried(item, "a step needs a range or *", f"write {base}-{field.high}/{step}")
        if dash and _number(field, first) > _number(field, last) and (field is not VIXIE_WEEK or last != "sun"):
            raise NotCarried(item, f"the range of {field.name} ends before it begins", "write two ranges")
    return _loose(field, text)


def _loose(field: Field, text: str) -> list[int]:
    """The numbers of a field, sorted. Ranges may wrap, and ``5/15`` goes from 5 to the end."""
    found: set[int] = set()
    for item in text.split(","):
        base, slash, stride = item.partition("/")
        if slash and not (stride.isascii() and stride.isdigit() and int(stride[:9])):
            raise NotCarried(f"{item!r} in {field.name}", "its step is not a number from 1 on", "correct it")
        step = int(stride[:9]) if slash else 1
        first, dash, last = base.partition("-")
        if base in ("*", "?"):
            low, high = field.low, 6 if field is VIXIE_WEEK else field.high
        else:
            low = _number(field, first)
            high = _number(field, last) if dash else (field.high if slash else low)
            if field is VIXIE_WEEK and dash and high == 0 and low:
                high = 7
        size = field.high - field.low + 1 if field is not VIXIE_WEEK else 7
        end = high + size if high < low else high
        found |= {
            (number - field.low) % size + field.low if number > field.high else number
            for number in range(low, end + 1, step)
        }
    return sorted(found)


def _number(field: Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + (1 if field.low == 1 else 0)
    if not (text.isascii() and text.isdigit()) or not field.low <= int(text[:9]) <= field.high:
        names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise NotCarried(
            f"{text!r} in {field.name}",
            f"it is not from {field.low} to {field.high}{names}",
            "correct it at its source",
        )
    return int(text[:9])


def _listed(field: Field, text: str, numbers: list[int]) -> str:
    """The text of a field; a list of its numbers if a step is longer than the field, because Sluice refuses that."""
    steps = [int(step) for step in re.findall(r"/(\d+)", text)]
    longest = 6 if field is VIXIE_WEEK else field.high - field.low
    return ",".join(map(str, numbers)) if any(step > longest for step in steps) else text


def _check_dates(days: list[int], months: list[int], text: str) -> None:
    if min(days) > max(calendar.monthrange(2024, month)[1] for month in months):
        raise NotCarried(repr(text), "no such date exists in any year", "correct day of month or month")
