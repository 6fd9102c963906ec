"""Expressions in plain words (L11): ``at 05:00 on Monday to Friday, Europe/Paris``.

An expression that no short phrase describes is quoted, because a long phrase would not be easier to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import product

from chalicelib.core.instants import DAY, Instant, Millis, iso, parts_of, zone
from chalicelib.core.time import cron, rrule
from chalicelib.core.time.cron import Cron, Numbers
from chalicelib.core.time.expressions import Interval, parse
from chalicelib.core.time.rrule import Rule

_UNITS = {"d": "day", "h": "hour", "m": "minute", "s": "second", "ms": "millisecond"}
_TIMES = (
    *("never", "once", "twice", "three times", "four times", "five times", "six times", "seven times"),
    *("eight times", "nine times", "ten times", "eleven times", "twelve times"),
)
_NTH = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", cron.LAST: "last"}
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MAX_ITEMS = 4  # clock times or runs of days in a phrase; an expression with more is quoted


def describe(expression: str, zone_name: str = "UTC", first: Instant | None = None, now: Instant | None = None) -> str:
    """The expression in plain words: ``every 10 seconds, four times, from 12:00:10``.

    ``first`` is the instant to name as the begin, if any. Its date is left out if ``now`` is on the same day of the
    zone."""
    parsed = parse(expression)
    if isinstance(parsed, Interval):
        words = _interval(parsed)
        first = parsed.start if first is None else first
        tz = "" if first is None or zone_name == "UTC" else f", {zone_name}"
    else:
        words = (_rule(parsed) if isinstance(parsed, Rule) else _cron(parsed)) or ""
        if not words:
            words, tz = f"at '{expression}' in {zone_name}", ""
        else:
            tz = f", {zone_name}" if words.startswith("at ") or " from " in words or " on " in words else ""
    since = "at" if words == "once" else "from"
    return words + ("" if first is None else f", {since} {_moment(first, zone_name, now)}") + tz


def format_span(span: Millis) -> str:
    """A duration in words: ``1 hour 30 minutes``. One day is ``24 hours``, since days differ in length."""
    if span == DAY:
        return "24 hours"
    return " ".join(f"{count} {_UNITS[letter]}{'' if count == 1 else 's'}" for count, letter in parts_of(span))


def _interval(interval: Interval) -> str:
    span = format_span(interval.every)
    if interval.times == 1:
        return "once" if interval.start is not None else f"once, after {span}"
    every = f"every {span.removeprefix('1 ') if len(parts_of(interval.every)) == 1 else span}"
    if interval.times is None:
        return every
    return f"{every}, {_times_in_all(interval.times)}"


def _moment(instant: Instant, zone_name: str, now: Instant | None) -> str:
    tz = zone(zone_name)
    wall = datetime.fromtimestamp(instant // 1000, tz)
    today = now is not None and datetime.fromtimestamp(now // 1000, tz).date() == wall.date()
    return f"{'' if today else f'{wall:%Y-%m-%d} '}{_clock(wall.hour, wall.minute, wall.second)}"


def _cron(found: Cron) -> str | None:
    times, days = _times(found), _days(found)
    if times is None or days is None:
        return None
    if not days and times.startswith("at ") and not times.endswith((" hour", " minute")):
        days = "every day"
    return f"{times} {days}" if days else times


def _times(found: Cron) -> str | None:
    """The times of a day; None if no short phrase describes them."""
    seconds, minutes, hours = found.seconds, found.minutes, found.hours
    if len(seconds) * len(minutes) * len(hours) <= _MAX_ITEMS:
        return f"at {_and([_clock(*clock) for clock in product(hours, minutes, seconds)])}"
    every_hour, every_minute = hours == cron.HOURS.every, minutes == cron.MINUTES.every
    if seconds != (0,):
        if not (every_hour and every_minute):
            return None
        step = _step(seconds, 60)
        return _every(step, "second") if step else _at("second", seconds, "minute")
    step = 60 if minutes == (0,) else _step(minutes, 60)
    if every_hour:
        return _every(step, "minute") if step else _at("minute", minutes, "hour")
    if len(minutes) == 1 and (step_of_hours := _step(hours, 24)):
        start = "" if minutes == (0,) else f" from {_clock(0, minutes[0])}"
        return f"{_every(step_of_hours, 'hour')}{start}"
    if (step or len(minutes) == 1) and hours == tuple(range(hours[0], hours[-1] + 1)):
        span = f"from {_clock(hours[0], minutes[0])} to {_clock(hours[-1], minutes[-1])}"
        return f"{_every(step or 60, 'minute')} {span}"
    return None


def _step(numbers: Numbers, size: int) -> int | None:
    """The step of numbers that divide ``size`` evenly from 0: 15 for the minutes 0, 15, 30, 45; else None."""
    step, remainder = divmod(size, len(numbers))
    return step if remainder == 0 and len(numbers) > 1 and numbers == tuple(range(0, size, step)) else None


def _every(step: int, unit: str) -> str:
    if (step, unit) == (60, "minute"):
        step, unit = 1, "hour"
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


def _at(unit: str, numbers: Numbers, whole: str) -> str | None:
    """``at minutes 5 and 35 of every hour``"""
    if len(numbers) > _MAX_ITEMS:
        return None
    return f"at {unit}{'' if len(numbers) == 1 else 's'} {_and([str(number) for number in numbers])} of every {whole}"


def _days(found: Cron) -> str | None:
    """The days; empty for every day, None if no short phrase describes them."""
    every_day = found.days == cron.DAYS.every
    every_weekday = found.weekdays == cron.WEEK.every
    months = None if found.months == cron.MONTH.every else _and(_ranges(found.months, _MONTHS))
    if every_day and every_weekday:
        return "" if months is None else f"every day in {months}"
    single = every_weekday and months and not _special(found) and len(found.days) + len(found.months) == 2
    if not every_day and single:
        return f"on {found.days[0]} {months}"
    runs = [*_ranges(found.days, [str(number) for number in range(32)])]
    if not every_day and len(runs) + len(_special(found)) > _MAX_ITEMS:
        return None
    month, week = _month_days(found, runs, months), _week_days(found, months)
    if found.either:
        return f"{month} or {week}"
    return week if every_day else month


def _month_days(found: Cron, runs: list[str], months: str | None) -> str:
    plain = [f"day{'' if len(found.days) == 1 else 's'} {_and(runs)}"] if runs else []
    return f"on {_and([*plain, *_special(found)])} of {months or 'the month'}"


def _special(found: Cron) -> list[str]:
    """The days of month that are no plain numbers: ``the last day``, ``the third working day``."""
    each = len(found.working) == cron.MAX_WORKING
    words = ["each working day"] if each else [f"the {_ordinal(number)} working day" for number in found.working]
    words += [_from_end(number) for number in reversed(found.from_end)]
    for number in found.nearest:
        day = f"day {number}" if number > 0 else _from_end(number)
        words.append("the last working day" if number == cron.LAST else f"the working day nearest to {day}")
    return words


def _from_end(number: int) -> str:
    """``the last day`` for -1, ``the third last day`` for -3."""
    return "the last day" if number == -1 else f"the {_ordinal(-number)} last day"


def _ordinal(number: int) -> str:
    if number in _NTH:
        return _NTH[number]
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number not in (11, 12, 13) else "th"
    return f"{number}{suffix}"


def _rule(found: Rule) -> str | None:
    """``at 09:00 on Monday, every 2 weeks from 2026-03-02``"""
    unit = rrule.PERIODS[found.freq]
    days = _rule_days(found)
    if days is None:
        return None
    clock = found.start.time()
    period = f"every {found.interval} {unit}s" if found.interval > 1 else f"every {unit}"
    words = f"at {_clock(clock.hour, clock.minute, clock.second)}{f' on {days}' if days else ''}"
    words += f", {period} from {found.start:%Y-%m-%d}"
    if found.until is not None:
        words += f" until {found.until:%Y-%m-%d %H:%M}"
    if found.until_instant is not None:
        words += f" until {iso(found.until_instant)}"
    return words if found.count is None else f"{words}, {_times_in_all(found.count)}"


def _rule_days(found: Rule) -> str | None:
    """The days of a rule; empty for every day, None if no short phrase describes them."""
    names = [f"day {number}" if number > 0 else _from_end(number) for number in found.days]
    plain = tuple(day + 1 for number, day in found.days_of_week if not number)
    week = _ranges(plain, _WEEKDAYS)
    week += [f"the {_nth_of(number)} {_WEEKDAYS[day + 1]}" for number, day in found.days_of_week if number]
    if len(names) + len(week) > 2 * _MAX_ITEMS or (names and week and len(names) > 1):
        return None
    days = _and(names or week)
    if names and week:
        days = f"{days} if it is {' or '.join(week)}"
    if found.positions:
        chosen = [f"the {_nth_of(number)}" for number in found.positions]
        days = f"{_and(chosen)} of {days or 'the days'}"
    months = _and(_ranges(found.months, _MONTHS))
    if months and not days:
        return f"every day in {months}"
    return f"{days} in {months}" if months else days


def _nth_of(number: int) -> str:
    """``first``, ``last``, ``second last``"""
    if number > 0:
        return _ordinal(number)
    return "last" if number == -1 else f"{_ordinal(-number)} last"


def _times_in_all(count: int) -> str:
    return _TIMES[count] if count < len(_TIMES) else f"{count} times"


def _week_days(found: Cron, months: str | None) -> str:
    plain = _ranges(tuple(sorted(number or 7 for number in found.weekdays)), _WEEKDAYS)
    nth = [f"the {_NTH[number]} {_WEEKDAYS[kind]}" for kind, number in found.nth]
    where = f" of {months or 'the month'}" if nth else (f" in {months}" if months else "")
    return f"on {_and([*plain, *nth])}{where}"


def _ranges(numbers: Numbers, names: Sequence[str]) -> list[str]:
    """The names of the numbers; three or more consecutive ones as a range such as ``Monday to Friday``."""
    found: list[str] = []
    for run in cron.runs(numbers):
        words = [names[number] for number in run]
        found += [f"{words[0]} to {words[-1]}"] if len(run) > 2 else words
    return found


def _and(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def _clock(hour: int, minute: int, second: int = 0) -> str:
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")
