"""Recurrence rules of iCalendar (RFC 5545): parsing, the normal form, and the wall times that they name.

Such a rule counts periods, such as every second week, from the period that contains its begin, DTSTART. The begin is a
wall time in the zone of the trigger, and all times of the rule have its time of day. The days of a period are those
that meet each of BYMONTH, BYMONTHDAY and BYDAY. BYSETPOS chooses among these. A rule without a part that names its days
takes the day of its begin. The begin itself is a time of the rule only if its day meets the parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache

from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant, millis
from chalicelib.core.time import cron

Numbers = tuple[int, ...]

PERIODS = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
MAX_INTERVAL = 1_000
MAX_YEARS = 100  # from the begin of a rule with COUNT to its last time
_RARE = 41  # a rule of each period that names no day in this many years names none in any year
_CYCLE = 28  # years after which each date falls on the same day of the week again
_LAST_YEAR = 9998  # the last one to which any zone can be applied
_TIMES = ("FREQ=HOURLY", "FREQ=MINUTELY", "FREQ=SECONDLY")
_PARTS = ("FREQ", "INTERVAL", "BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS", "WKST", "UNTIL", "COUNT")
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_WALL = "%Y%m%dT%H%M%S"
EXAMPLE = "DTSTART:20260302T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"


@dataclass(frozen=True, slots=True)
class Rule:
    """``days_of_week`` are pairs of a number and a day (0 is Monday); the number 0 means each such day, else it counts
    them in the month, or in the year for a yearly rule without months, from the end if it is negative. ``until`` is the
    last possible wall time, ``until_instant`` the last possible instant."""

    start: datetime
    freq: str
    interval: int = 1
    months: Numbers = ()
    days: Numbers = ()
    days_of_week: tuple[tuple[int, int], ...] = ()
    positions: Numbers = ()
    week_start: int = 0
    until: datetime | None = None
    until_instant: Instant | None = None
    count: int | None = None

    def next_wall(self, past: datetime) -> datetime | None:
        """The first wall time strictly after ``past``; None if there is none."""
        last = self.until if self.count is None else _last(self)
        found = next(self._walls(past), None)
        return found if found is not None and (last is None or found <= last) else None

    def fires_per_day(self) -> float:
        """The average number of fires a day, over 28 years or a multiple; at most ``count``."""
        rate = _per_day(self)
        return rate if self.count is None else min(rate, self.count)

    def __str__(self) -> str:
        """The normal form, with the parts in one order and the days that the begin implies."""
        days = (f"{number or ''}{WEEKDAYS[day]}" for number, day in self.days_of_week)
        parts = {
            "INTERVAL": str(self.interval) if self.interval > 1 else "",
            "BYMONTH": _listed(self.months),
            "BYMONTHDAY": _listed(self.days),
            "BYDAY": ",".join(days),
            "BYSETPOS": _listed(self.positions),
            "WKST": WEEKDAYS[self.week_start] if self.week_start else "",
            "UNTIL": _until_text(self),
            "COUNT": "" if self.count is None else str(self.count),
        }
        shown = "".join(f";{name}={value}" for name, value in parts.items() if value)
        return f"DTSTART:{self.start:{_WALL}} RRULE:FREQ={self.freq}{shown}"

    def _walls(self, past: datetime) -> Iterator[datetime]:
        """The wall times after ``past`` without regard to the end of the rule, in order; none that is rarer than
        `_RARE` allows."""
        clock, since = self.start.time(), max(past, self.start - timedelta(seconds=1))
        index = self._index(since.date())
        index += (self._index(self.start.date()) - index) % self.interval
        last = min(since.year + _RARE * self.interval, _LAST_YEAR)
        while (first := self._first(index)) is not None and first.year <= last:
            for day in self._chosen(index, first):
                wall = datetime.combine(day, clock)
                if wall > since:
                    yield wall
                    last = min(day.year + _RARE * self.interval, _LAST_YEAR)
            index += self.interval

    def _index(self, day: date) -> int:
        """The number of the period that contains a day, counted from the year 0 on."""
        match self.freq:
            case "DAILY":
                return day.toordinal()
            case "WEEKLY":
                return (day.toordinal() - 1 - self.week_start) // 7
            case "MONTHLY":
                return day.year * 12 + day.month - 1
        return day.year

    def _first(self, index: int) -> date | None:
        """The first day of a period; None for one that is too far away."""
        try:
            match self.freq:
                case "DAILY":
                    return date.fromordinal(index)
                case "WEEKLY":
                    return date.fromordinal(max(index * 7 + 1 + self.week_start, 1))
                case "MONTHLY":
                    return date(index // 12, index % 12 + 1, 1)
            return date(index, 1, 1)
        except (ValueError, OverflowError):
            return None

    def _chosen(self, index: int, first: date) -> list[date]:
        """The days of a period that the rule names."""
        following = self._first(index + 1) or date.max
        ordinals = range(first.toordinal(), following.toordinal())
        named = [day for day in map(date.fromordinal, ordinals) if self._names(day)]
        if not self.positions:
            return named
        wanted = {number - 1 if number > 0 else len(named) + number for number in self.positions}
        return [day for place, day in enumerate(named) if place in wanted]

    def _names(self, day: date) -> bool:
        if self.months and day.month not in self.months:
            return False
        if self.days and day.day not in self.days and day.day - cron.length_of(day) - 1 not in self.days:
            return False
        return not self.days_of_week or any(self._is_nth(day, *each) for each in self.days_of_week)

    def _is_nth(self, day: date, number: int, weekday: int) -> bool:
        if day.weekday() != weekday or not number:
            return day.weekday() == weekday
        if self.freq == "YEARLY" and not self.months:
            place, length = day.timetuple().tm_yday, date(day.year, 12, 31).timetuple().tm_yday
        else:
            place, length = day.day, cron.length_of(day)
        return number == ((place - 1) // 7 + 1 if number > 0 else -((length - place) // 7 + 1))


def parse(text: str, field: str) -> Rule | None:
    """The rule of ``DTSTART:... RRULE:...``; None for a text of another kind. Raises ``invalid``."""
    tokens = text.upper().split()
    if not tokens or not tokens[0].startswith(("RRULE", "DTSTART", "FREQ=")):
        return None
    given: dict[str, str] = {}
    for token in tokens:
        name, colon, value = token.partition(":")
        if not colon or name.partition(";")[0] not in ("RRULE", "DTSTART") or name.partition(";")[0] in given:
            hint = "EXDATE and RDATE are not supported: use excluding, or a second leaf"
            raise invalid(field, f"DTSTART and RRULE once each, such as '{EXAMPLE}'", text, hint)
        if ";" in name:
            zone = re.search(r"TZID=([^;:]+)", text, flags=re.IGNORECASE)
            where = f"write 'zone: {zone[1]}' in the trigger, and " if zone else ""
            raise invalid(field, "DTSTART and RRULE without parameters", token, f"{where}DTSTART:{value} here")
        given[name] = value
    if "DTSTART" not in given or "RRULE" not in given:
        missing = "a begin, from which the periods count" if "RRULE" in given else "a rule"
        raise invalid(field, f"an RRULE with {missing}", text, f"write it as in '{EXAMPLE}'")
    rule = _rule(_parts(given["RRULE"], field), _begin(given["DTSTART"], field), field)
    _check_times(rule, field, text)
    return rule


def of_object(every: object, begin: object, days: cron.Cron, field: str) -> str:
    """The rule of the short form: every so many days, weeks, months or years from a wall time on, on the days of a cron
    expression. Raises ``invalid``."""
    text = every.strip().lower() if isinstance(every, str) else ""
    found = re.fullmatch(r"(?:(\d{1,9})\s+)?(day|week|month|year)s?", text)
    if found is None:
        hint = "for hours and minutes, write '@every 90m'"
        raise invalid(f"{field}.every".lstrip("."), "a span such as '2 weeks' or '3 months'", every, hint)
    try:
        start = datetime.fromisoformat(str(begin))
        if start.tzinfo is not None or start.microsecond:
            raise ValueError
    except ValueError:
        expected = "the wall time from which the spans count, such as 2026-03-02T09:00"
        raise invalid(f"{field}.from".lstrip("."), expected, begin, "write it without an offset") from None
    if days.either or days.has_working_days:
        hint = "use an RRULE (docs/time.md), or excluding"
        raise invalid(field, "day_of_month or day_of_week without W, not both", str(days), hint)
    month_days = [] if days.days == cron.DAYS.every else [*days.days, *days.from_end]
    weekdays = () if days.weekdays == cron.WEEK.every else days.weekdays
    week = [(0, (day - 1) % 7) for day in weekdays] + [(number, (day - 1) % 7) for day, number in days.nth]
    freq = next(name for name, unit in PERIODS.items() if unit == found[2])
    parts = {"FREQ": freq, "INTERVAL": found[1] or "1"}
    parts["BYMONTH"] = "" if days.months == cron.MONTH.every else _listed(days.months)
    parts |= {"BYMONTHDAY": _listed(month_days), "BYDAY": ",".join(f"{n or ''}{WEEKDAYS[day]}" for n, day in week)}
    shown = ";".join(f"{name}={value}" for name, value in parts.items() if value)
    return f"DTSTART:{start:{_WALL}} RRULE:{shown}"


def _parts(text: str, field: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.rstrip(";").split(";"):
        name, equals, value = part.partition("=")
        if part in _TIMES or name in ("BYHOUR", "BYMINUTE", "BYSECOND"):
            hint = (
                "the time of day is that of DTSTART; for more times, use a cron expression, @every 90m or more leaves"
            )
            raise invalid(field, f"an RRULE with FREQ={' or '.join(PERIODS)} that names days", part, hint)
        if name not in _PARTS or not equals or not value:
            near = get_close_matches(name, _PARTS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the parts are {', '.join(_PARTS)}"
            raise invalid(field, "an RRULE of parts that Sluice supports", part, hint)
        if name in found:
            raise invalid(field, f"{name} once in an RRULE", text)
        found[name] = value
    if found.get("FREQ") not in PERIODS:
        raise invalid(field, f"an RRULE with FREQ={' or '.join(PERIODS)}", text, f"write it as in '{EXAMPLE}'")
    return found


def _begin(text: str, field: str) -> datetime:
    hint = "write the wall time in the zone of the trigger, without Z" if text.endswith("Z") else None
    found = _wall(text) if re.fullmatch(r"\d{8}T\d{6}", text) else None
    if found is None or not 1970 <= found.year <= _LAST_YEAR:
        raise invalid(field, f"a DTSTART such as 20260302T090000, from 1970 to {_LAST_YEAR}", text, hint)
    return found


def _wall(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _WALL)  # noqa: DTZ007 - wall time
    except ValueError:
        return None


def _rule(parts: dict[str, str], start: datetime, field: str) -> Rule:
    freq, months = parts["FREQ"], _numbers(parts, "BYMONTH", 1, 12, field)
    days, week = _numbers(parts, "BYMONTHDAY", -31, 31, field), _week(parts, freq, field)
    positions = _numbers(parts, "BYSETPOS", -366, 366, field)
    if days and freq == "WEEKLY":
        raise invalid(field, "BYMONTHDAY only with another FREQ than WEEKLY", parts["BYMONTHDAY"], "use FREQ=DAILY")
    if positions and not (days or week or months):
        raise invalid(field, "BYSETPOS only with BYDAY, BYMONTHDAY or BYMONTH", parts["BYSETPOS"], "add one of them")
    if not days and not week:
        if freq == "WEEKLY":
            week = ((0, start.weekday()),)
        elif freq in ("MONTHLY", "YEARLY"):
            days, months = (start.day,), months or ((start.month,) if freq == "YEARLY" else ())
    begin_of_week = parts.get("WKST", "MO")
    if begin_of_week not in WEEKDAYS:
        raise invalid(field, f"WKST={' or '.join(WEEKDAYS)}", begin_of_week)
    if "COUNT" in parts and "UNTIL" in parts:
        raise invalid(field, "an RRULE with COUNT or UNTIL", "both", "remove one of them")
    until, until_instant = _until(parts["UNTIL"], field) if "UNTIL" in parts else (None, None)
    return Rule(
        start=start,
        freq=freq,
        interval=_number(parts, "INTERVAL", MAX_INTERVAL, field) if "INTERVAL" in parts else 1,
        months=months,
        days=days,
        days_of_week=week,
        positions=positions,
        week_start=WEEKDAYS.index(begin_of_week) if freq == "WEEKLY" else 0,
        until=until,
        until_instant=until_instant,
        count=_number(parts, "COUNT", 366 * MAX_YEARS, field) if "COUNT" in parts else None,
    )


def _number(parts: dict[str, str], name: str, high: int, field: str) -> int:
    text = parts[name]
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= high:
        hint = "for a rule without an end, leave COUNT out" if name == "COUNT" else None
        raise invalid(field, f"{name} from 1 to {high:,}", text, hint)
    return int(text[:9])


def _numbers(parts: dict[str, str], name: str, low: int, high: int, field: str) -> Numbers:
    """The numbers of a list; those from the end come last."""
    found: set[int] = set()
    for item in parts[name].split(",") if name in parts else ():
        if not re.fullmatch(r"[+-]?\d{1,3}", item) or not low <= int(item) <= high or int(item) == 0:
            below = f" or -1 to {low}" if low < 0 else ""
            raise invalid(field, f"{name} with numbers from 1 to {high}{below}", item, "correct the number")
        found.add(int(item))
    return tuple(sorted(found, key=_from_end_last))


def _from_end_last(number: int) -> tuple[bool, int]:
    return number < 0, number


def _week(parts: dict[str, str], freq: str, field: str) -> tuple[tuple[int, int], ...]:
    found: set[tuple[int, int]] = set()
    longest = 53 if freq == "YEARLY" and "BYMONTH" not in parts else 5
    for item in parts["BYDAY"].split(",") if "BYDAY" in parts else ():
        each = _DAY.fullmatch(item)
        if each is None:
            raise invalid(field, "BYDAY with days such as MO, 2TU or -1FR", item, f"the days are {', '.join(WEEKDAYS)}")
        number = int(each[1] or 0)
        if each[1] and freq in ("DAILY", "WEEKLY"):
            hint = "use FREQ=MONTHLY, or remove the number"
            raise invalid(field, f"BYDAY without numbers for FREQ={freq}", item, hint)
        if each[1] and not 1 <= abs(number) <= longest:
            raise invalid(field, f"BYDAY with numbers from 1 to {longest} or -1 to -{longest}", item)
        found.add((number, WEEKDAYS.index(each[2])))
    return tuple(sorted(found, key=lambda each: (*_from_end_last(each[0]), each[1])))


def _until(text: str, field: str) -> tuple[datetime | None, Instant | None]:
    """The last wall time, or for a text with Z the last instant. A date includes its whole day."""
    wall = _wall(f"{text}T235959" if re.fullmatch(r"\d{8}", text) else text.removesuffix("Z"))
    if wall is None or not 1970 <= wall.year <= _LAST_YEAR:
        raise invalid(field, "UNTIL as 20261231, 20261231T170000 or 20261231T160000Z", text)
    return (None, millis(wall.replace(tzinfo=UTC))) if text.endswith("Z") else (wall, None)


def _until_text(rule: Rule) -> str:
    if rule.until_instant is not None:
        return f"{datetime.fromtimestamp(rule.until_instant // 1000, UTC):{_WALL}}Z"
    return "" if rule.until is None else f"{rule.until:{_WALL}}"


def _check_times(rule: Rule, field: str, text: str) -> None:
    """Refuse a rule that names no time, and one whose COUNT is too large to be reached."""
    first = next(rule._walls(rule.start - timedelta(seconds=1)), None)
    if first is None:
        raise invalid(field, "an RRULE that some date meets", text, "no such date exists; correct its BY parts")
    utc = datetime.fromtimestamp(rule.until_instant // 1000, UTC) if rule.until_instant is not None else None
    end = rule.until or (utc.replace(tzinfo=None) + timedelta(days=1) if utc else None)
    if end is not None and first > end:
        raise invalid(field, f"an UNTIL that is not before the first time, {first.isoformat()}", text, "move UNTIL")
    if rule.count is not None and _last(rule) is None:
        hint = "leave COUNT out, or give the trigger an end"
        raise invalid(field, f"a COUNT that is reached within {MAX_YEARS} years", text, hint)


@lru_cache(maxsize=1024)
def _last(rule: Rule) -> datetime | None:
    """The last wall time of a rule with a count; None if it is more than `MAX_YEARS` away."""
    left = rule.count or 0
    for wall in rule._walls(rule.start - timedelta(seconds=1)):
        left -= 1
        if left == 0 or wall.year > rule.start.year + MAX_YEARS:
            return wall if left == 0 else None
    return None


@lru_cache(maxsize=1024)
def _per_day(rule: Rule) -> float:
    begin = rule.start.date()
    end = begin + timedelta(days=min(_CYCLE * 365.25 * rule.interval, (date(_LAST_YEAR, 1, 1) - begin).days))
    number = 0
    for wall in rule._walls(rule.start - timedelta(seconds=1)):
        if wall.date() >= end:
            break
        number += 1
    return number / (end - begin).days


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
