"""Cron expressions (T1): parsing, the normal form, and the wall times that they name. Time zones are not considered.

The rules where implementations of cron differ:

* Five fields are minute, hour, day of month, month, day of week; of six the first is the second.
* If day of month and day of week are both restricted, a day that matches one of them is enough. A field is restricted
  unless it is ``*``, ``?`` or ``*/1``; ``*/2`` is restricted, and also ``1-31`` and ``0-6``, which match every day.
  Vixie cron wants both to match if one of them begins with ``*``, as ``*/2`` does.
* 0 and 7 are Sunday. A range may wrap: ``fri-mon``, ``22-2``, ``nov-feb``. ``5/15`` is ``5-59/15``.
* ``L`` as a day of month is its last day, ``L-3`` the third day before it. ``friL`` or ``5L`` is the last Friday,
  ``mon#1`` the first Monday of the month.
* ``15W`` is the working day of the month that is nearest to the 15th, of two the earlier one. ``LW`` is the last
  working day, ``L-3W`` the nearest to ``L-3``, ``W#3`` the third, ``W`` each. Working days are Monday to Friday without
  holidays.
* A step larger than its field, such as ``*/90`` minutes, is refused: the fires would not be 90 minutes apart.
"""

from __future__ import annotations

import calendar as gregorian
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache, lru_cache

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
LAST = -1  # the value of n in "the n-th weekday of a month" for the last one
# An expression that names no date within this many years never fires: 29 February can be 8 years away, and a fifth
# Wednesday of February 40, where a century has no leap day.
_HORIZON_YEARS = 41
SOME_DAY = datetime(2023, 12, 31, 23, 59, 59)  # noqa: DTZ001 - wall time
MAX_WORKING = 23  # working days of a month at most
_DAYS_OF_A_CYCLE = 10_227  # 28 years, after which each date falls on the same day of the week again

Numbers = tuple[int, ...]
IsHoliday = Callable[[date], bool]


def no_holiday(day: date) -> bool:
    return False


class CronError(ValueError):
    """A text is no cron expression; the message is suitable as a hint."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def every(self) -> Numbers:
        return tuple(range(self.low, self.high + 1))


SECONDS = Field("second", 0, 59)
MINUTES = Field("minute", 0, 59)
HOURS = Field("hour", 0, 23)
DAYS = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, MONTHS)
WEEK = Field("day of week", 0, 6, WEEKDAYS)


@dataclass(frozen=True, slots=True)
class Cron:
    """The sorted numbers of each field; Sunday is 0. An unrestricted ``days`` or ``weekdays`` holds all numbers.

    Besides ``days``, day of month has days from the end of the month, which are negative (``from_end``; -1 is the
    last), working days nearest to a day (``nearest``, negative ones from the end), and n-th working days (``working``).
    ``nth``: also the n-th weekday of a month, as (weekday, n); n is `LAST` for the last. ``either``: day of month and
    day of week are both restricted, and one match is enough.
    """

    seconds: Numbers
    minutes: Numbers
    hours: Numbers
    days: Numbers
    from_end: Numbers
    nearest: Numbers
    working: Numbers
    months: Numbers
    weekdays: Numbers
    nth: tuple[tuple[int, int], ...]
    either: bool

    @property
    def has_working_days(self) -> bool:
        """Whether its days depend on holidays."""
        return bool(self.nearest or self.working)

    def fires_on(self, day: date, is_holiday: IsHoliday = no_holiday) -> bool:
        """Whether any fire is on this day."""
        if day.month not in self.months:
            return False
        month = day.day in self.days or (bool(self.from_end) and day.day - length_of(day) - 1 in self.from_end)
        month = month or (self.has_working_days and self._is_working_day(day, is_holiday))
        weekday = day.isoweekday() % 7
        week = weekday in self.weekdays or any(_is_nth(day, number) for kind, number in self.nth if kind == weekday)
        return (month or week) if self.either else (month and week)

    def _is_working_day(self, day: date, is_holiday: IsHoliday) -> bool:
        """Whether the day is one of the working days that day of month names."""

        def works(number: int) -> bool:
            each = day.replace(day=number)
            return each.isoweekday() < 6 and not is_holiday(each)

        if not works(day.day):
            return False
        if self.working and sum(works(number) for number in range(1, day.day + 1)) in self.working:
            return True
        length = length_of(day)
        wanted = (number if number > 0 else length + 1 + number for number in self.nearest)
        return any(_nearest(works, number, length) == day.day for number in wanted if 1 <= number <= length)

    def next_wall(self, past: datetime, is_holiday: IsHoliday = no_holiday) -> datetime | None:
        """The first wall time strictly after ``past``; None if there is none within 41 years."""
        at = past.replace(microsecond=0) + timedelta(seconds=1)
        day, last = at.date(), min(at.year + _HORIZON_YEARS, 9998)
        if self.fires_on(day, is_holiday):
            found = self._time_from(at.hour, at.minute, at.second)
            if found is not None:
                return datetime(day.year, day.month, day.day, *found)  # noqa: DTZ001 - wall time
        while day.year <= last:
            day += timedelta(days=1)
            if day.month not in self.months:
                day = day.replace(day=length_of(day))
            elif self.fires_on(day, is_holiday):
                first = (self.hours[0], self.minutes[0], self.seconds[0])
                return datetime(day.year, day.month, day.day, *first)  # noqa: DTZ001 - wall time
        return None

    def _time_from(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        """The first time of a day from this time on, as hour, minute and second; None if there is none."""
        first_minute, first_second = self.minutes[0], self.seconds[0]
        if hour in self.hours:
            if minute in self.minutes and (found := _from(self.seconds, second)) is not None:
                return hour, minute, found
            if (found := _from(self.minutes, minute + 1)) is not None:
                return hour, found, first_second
        found = _from(self.hours, hour + 1)
        return None if found is None else (found, first_minute, first_second)

    def fires_per_day(self) -> float:
        """The average number of fires a day, over 28 years."""
        days = _days_of_a_cycle(replace(self, seconds=(0,), minutes=(0,), hours=(0,)))
        return len(self.seconds) * len(self.minutes) * len(self.hours) * days / _DAYS_OF_A_CYCLE

    def __str__(self) -> str:
        """The normal form: equal for expressions that mean the same times."""
        each = self.working == tuple(range(1, MAX_WORKING + 1))
        special = ["W"] if each else [f"W#{number}" for number in self.working]
        special += [_from_end(number) for number in reversed(self.from_end)]
        special += [f"{number if number > 0 else _from_end(number)}W" for number in self.nearest]
        days = _listed(DAYS, self.days, special)
        nth = [WEEKDAYS[kind] + ("L" if number == LAST else f"#{number}") for kind, number in self.nth]
        fields = [_listed(MINUTES, self.minutes), _listed(HOURS, self.hours), days, _listed(MONTH, self.months)]
        seconds = [] if self.seconds == (0,) else [_listed(SECONDS, self.seconds)]
        return " ".join([*seconds, *fields, _weekdays(self.weekdays, nth)])


@lru_cache(maxsize=1024)
def _days_of_a_cycle(cron: Cron) -> int:
    """On how many days of 28 years it fires. Many expressions differ in the time of the day alone, so the counts are
    kept."""
    return sum(
        many * sum(cron.fires_on(first.replace(day=day)) for day in range(1, length_of(first) + 1))
        for first, many in _months_of_a_cycle()
        if first.month in cron.months
    )


@cache
def _months_of_a_cycle() -> tuple[tuple[date, int], ...]:
    """The first day of a month of each kind, and how many months of 28 years are of that kind. Months of one kind have
    the same number, length, and day of the week at their begin."""
    found: dict[tuple[int, int, int], tuple[date, int]] = {}
    for number in range(12 * 28):
        first = date(2001 + number // 12, number % 12 + 1, 1)
        kind = (first.month, length_of(first), first.weekday())
        known, many = found.get(kind, (first, 0))
        found[kind] = (known, many + 1)
    return tuple(found.values())


def parse(text: str) -> Cron:
    """A cron expression of five or six fields. Raises `CronError`."""
    fields = text.lower().split()
    if len(fields) not in (5, 6):
        raise CronError(f"a cron expression has 5 fields, or 6 with the second first; this one has {len(fields)}")
    second, minute, hour, day, month, weekday = fields if len(fields) == 6 else ["0", *fields]
    special = _Special.of(day.split(","))
    plain_days = [item for item in day.split(",") if not _Special.reads(item)]
    listed = weekday.split(",")
    nth = {found for item in listed if (found := _nth(item)) is not None}
    plain_weekdays = [item for item in listed if _nth(item) is None]
    days = _numbers(DAYS, plain_days) if plain_days else ()
    weekdays = _numbers(WEEK, plain_weekdays) if plain_weekdays else ()
    either = _restricts(day) and _restricts(weekday)
    if either and (days == DAYS.every or weekdays == WEEK.every):
        days, weekdays, either = DAYS.every, WEEK.every, False  # one of the two matches every day
    return Cron(
        seconds=_numbers(SECONDS, second.split(",")),
        minutes=_numbers(MINUTES, minute.split(",")),
        hours=_numbers(HOURS, hour.split(",")),
        days=days,
        from_end=special.from_end if days != DAYS.every else (),
        nearest=special.nearest if days != DAYS.every else (),
        working=special.working if days != DAYS.every else (),
        months=_numbers(MONTH, month.split(",")),
        weekdays=weekdays,
        nth=tuple(sorted(entry for entry in nth if entry[0] not in weekdays)),
        either=either,
    )


def _numbers(field: Field, items: Iterable[str]) -> Numbers:
    return tuple(sorted({number for item in items for number in _item(field, item)}))


def _item(field: Field, item: str) -> Numbers:
    """The numbers of ``*``, ``5``, ``5-9`` or ``fri-mon``, each with or without a step."""
    base, slash, stride = item.partition("/")
    step = _step(field, stride) if slash else 1
    if base == "*" or (base == "?" and field in (DAYS, WEEK) and not slash):
        return field.every[::step]
    first, dash, last = base.partition("-")
    low = _number(field, first)
    high = _number(field, last) if dash else (field.high if slash else low)
    if field is WEEK and high == 7 and low <= 7:
        return tuple(number % 7 for number in range(low, 8, step))
    size = len(field.every)
    low, high = (low % 7, high % 7) if field is WEEK else (low, high)
    wrapped = high + size if high < low else high
    return tuple((number - field.low) % size + field.low for number in range(low, wrapped + 1, step))


def _number(field: Field, text: str) -> int:
    for number, name in enumerate(field.names, start=field.low):
        if text == name:
            return number
    high = 7 if field is WEEK else field.high
    if not (text.isascii() and text.isdigit()) or not field.low <= int(text[:9]) <= high:
        names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise CronError(f"{field.name}: {text!r} is not from {field.low} to {high}{names}{_unsupported(field, text)}")
    return int(text[:9])


def _unsupported(field: Field, text: str) -> str:
    """What to write in place of a form that other implementations of cron have."""
    if re.fullmatch(r"[hr]", text):
        return "; H and R are not supported: write a time, and jitter if wanted"
    if field is WEEK and text == "l":
        return "; write sat for Saturday, or friL for the last Friday of the month"
    if field is DAYS and re.search(r"[lw]", text):
        return "; special days are L, L-1 to L-30, LW, W, 1W to 31W, and W#1 to W#23"
    if field is not WEEK and re.search(r"[lw#]", text):
        return "; L and W are for day of month, mon#1 and friL for day of week"
    return ""


@dataclass(frozen=True, slots=True)
class _Special:
    """The special days of a field for day of month, sorted; those that count from the end come last."""

    from_end: Numbers
    nearest: Numbers
    working: Numbers

    @classmethod
    def of(cls, items: Iterable[str]) -> _Special:
        read = [found for item in items if (found := cls.reads(item)) is not None]
        read += [("#", number) for number in range(1, MAX_WORKING + 1) if ("#", 0) in read]
        read = [each for each in read if each[1]]
        of_kind = [{number for kind, number in read if kind == each} for each in ("l", "w", "#")]
        return cls(*(tuple(sorted(numbers, key=lambda number: (number < 0, number))) for numbers in of_kind))

    @staticmethod
    def reads(item: str) -> tuple[str, int] | None:
        """``l-3`` as ("l", -4), ``15w`` and ``l-3w`` as ("w", 15) and ("w", -4), ``w#3`` as ("#", 3), ``w`` as
        ("#", 0); None for anything else."""
        if item == "w":
            return "#", 0
        found = re.fullmatch(r"(?:(l)(?:-(\d{1,2}))?|(\d{1,2}))(w?)|w#(\d{1,2})", item)
        if found is None:
            return None
        if found[5]:
            return ("#", int(found[5])) if 1 <= int(found[5]) <= MAX_WORKING else None
        if found[1]:
            return ("w" if found[4] else "l", -1 - int(found[2] or 0)) if int(found[2] or 0) <= 30 else None
        return ("w", int(found[3])) if found[4] and 1 <= int(found[3]) <= DAYS.high else None


def _from_end(number: int) -> str:
    """``L`` for -1, ``L-3`` for -4."""
    return "L" if number == LAST else f"L{number + 1}"


def _nearest(works: Callable[[int], bool], number: int, length: int) -> int | None:
    """The working day of the month that is nearest to a day, of two the earlier one; None if there is none."""
    for distance in range(length):
        for each in (number - distance, number + distance):
            if 1 <= each <= length and works(each):
                return each
    return None


def _step(field: Field, text: str) -> int:
    span = field.high - field.low
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= span:
        hint = "; for a longer interval, write @every 90m" if field in (SECONDS, MINUTES, HOURS) else ""
        raise CronError(f"{field.name}: the step {text!r} is not from 1 to {span}{hint}")
    return int(text[:9])


def _nth(item: str) -> tuple[int, int] | None:
    """``mon#1`` as (1, 1), ``fril`` as (5, LAST); None for anything else, such as ``fri#l``."""
    found = re.fullmatch(r"([a-z]{3}|[0-7])(?:#([1-5])|(l))", item)
    if found is None:
        return None
    return _number(WEEK, found[1]) % 7, LAST if found[3] else int(found[2])


def _restricts(text: str) -> bool:
    return text not in ("*", "?", "*/1")


def _is_nth(day: date, number: int) -> bool:
    return day.day > length_of(day) - 7 if number == LAST else (day.day - 1) // 7 + 1 == number


def length_of(day: date) -> int:
    return gregorian.monthrange(day.year, day.month)[1]


def _from(numbers: Numbers, least: int) -> int | None:
    return next((number for number in numbers if number >= least), None)


def _listed(field: Field, numbers: Numbers, more: Iterable[str] = ()) -> str:
    """``*``, ``*/15``, ``9-17``, ``9-17/2``, or a list of numbers and ranges; months by name."""
    if numbers == field.every:
        return "*"
    step = numbers[1] - numbers[0] if len(numbers) > 2 else 0
    if step > 1 and numbers == tuple(range(numbers[0], numbers[-1] + 1, step)):
        whole = numbers == field.every[::step]
        text = f"*/{step}" if whole else f"{_name(field, numbers[0])}-{_name(field, numbers[-1])}/{step}"
        return ",".join([text, *more])
    return ",".join([*_runs(field, numbers), *more])


def _weekdays(numbers: Numbers, more: Iterable[str]) -> str:
    """Days of the week from Monday on: ``mon-fri``, ``sat,sun``, and ``mon,fri-sun`` for ``fri-mon``."""
    if numbers == WEEK.every:
        return "*"
    sunday_last = tuple(sorted(number or 7 for number in numbers))
    return ",".join([*_runs(WEEK, sunday_last), *more])


def _runs(field: Field, numbers: Numbers) -> list[str]:
    """The numbers as texts: ranges for three or more consecutive ones, else single numbers."""
    texts: list[str] = []
    for run in runs(numbers):
        names = [_name(field, number) for number in run]
        texts += [f"{names[0]}-{names[-1]}"] if len(run) > 2 else names
    return texts


def runs(numbers: Numbers) -> list[list[int]]:
    """Sorted numbers as runs of consecutive ones: ``(1, 2, 5)`` is ``[[1, 2], [5]]``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][-1] == number - 1:
            found[-1].append(number)
        else:
            found.append([number])
    return found


def _name(field: Field, number: int) -> str:
    return field.names[(number - field.low) % len(field.names)] if field.names else str(number)
