"""Periods of the clock and of the calendar: quarters of an hour to years, in a time zone (T24).

A period begins at the first instant at which the clocks of its zone show its wall time, and ends where the next period
begins. So every instant is in exactly one period. When the clocks change, in New York:

- On 8 March 2026 there is no hour 02. The day has 23 hours.
- On 1 November 2026 the clocks show the hour 01 twice. It is one period of two hours, and the day has 24 periods. With
  offsets, `01-0400` and `01-0500` are two periods, and the day has 25.

A day begins at the first instant of its date, also where the clocks skip midnight. A date that a zone skips, such as
30 December 2011 in Apia, is no period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Literal
from zoneinfo import ZoneInfo

from chalicelib.core.instants import Instant, millis
from chalicelib.core.time.wall import change_of

Unit = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

# The years of names: the calendar begins with the first, and Python computes in every zone up to the last.
FIRST_YEAR, LAST_YEAR = 1583, 9998
LATEST: Instant = millis(datetime(LAST_YEAR, 12, 31, tzinfo=UTC))  # no period is computed that begins later
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True)
class Period:
    """A period from ``start`` to before ``end`` (ms since 1970). ``label`` names it among those of one calendar.

    ``wall`` is the wall time of its name, in ``zone``. It lies before the clocks' first wall time of the period if they
    skip that. ``offset`` is that of the zone in a calendar with offsets."""

    start: Instant
    end: Instant
    zone: str
    label: str
    wall: datetime
    offset: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Calendar:
    """Periods of ``count`` units each. Only minutes and hours have a count above 1, and it divides the hour or the day.
    ``week_starts`` matters for weeks alone. With ``offsets``, an hour that the clocks show twice is two periods; only
    minutes and hours may have them."""

    unit: Unit
    count: int
    zone: str
    tz: ZoneInfo
    week_starts: Weekday = "mon"
    offsets: bool = False

    @property
    def minutes(self) -> int | None:
        """The length of a period in minutes of wall time; None for a day and longer."""
        return {"minute": 1, "hour": 60}[self.unit] * self.count if self.unit in ("minute", "hour") else None

    def at(self, instant: Instant) -> Period:
        """The period that contains an instant."""
        shown = datetime.fromtimestamp(instant // 1000, self.tz)
        offset = shown.utcoffset() if self.offsets else None
        wall = self.floor(shown.replace(tzinfo=None, fold=0))
        if offset is None:
            # In the second pass of an overlap, a later period may have begun in the first pass.
            while (later := self._following(wall)) is not None and later[1] <= instant:
                wall = later[0]
        found = self.named(wall, offset)
        if found is None:
            raise ValueError(f"expected a period at {shown.isoformat()}, got none")
        return found

    def next(self, period: Period) -> Period:
        """The period that begins where another one ends."""
        return self.at(period.end)

    def previous(self, period: Period) -> Period:
        """The period that ends where another one begins."""
        return self.at(period.start - 1)

    def between(self, since: Instant, until: Instant) -> Iterator[Period]:
        """The periods that begin from ``since`` to before ``until``, in their order. Those of a day are the 23, 24 or
        25 hours that it has."""
        period = self.at(since)
        if period.start < since:
            period = self.next(period)
        while period.start < until:
            yield period
            if period.end >= until:
                return  # after the last year, no next one is computed
            period = self.next(period)

    def named(self, wall: datetime, offset: timedelta | None = None) -> Period | None:
        """The period whose name is a wall time that `floor` returns and, in a calendar with offsets, an offset. None if
        the clocks of the zone never show it."""
        start = self._start(wall, offset)
        if start is None:
            return None
        end = self._end(wall, offset, start)
        return Period(start, end, self.zone, self._label(wall, offset), wall, offset)

    def slot(self, period: Period) -> int:
        """The number of a period: it grows with the names, and counts those that the clocks skip, too. In a calendar
        with offsets, each wall time has two numbers: one for each time that the clocks may show it."""
        step = self._step(period.wall)
        return step if period.offset is None else 2 * step + (period.offset != self._first_offset(period.wall))

    def of_slot(self, slot: int) -> Period | None:
        """The period with a number; None if the clocks never show its name."""
        if not self.offsets:
            return self.named(self._wall_of(slot))
        step, second = divmod(slot, 2)
        wall = self._wall_of(step)
        offset, other = (wall.replace(tzinfo=self.tz, fold=fold).utcoffset() for fold in (0, 1))
        if not second:
            return self.named(wall, offset)
        if other == offset:  # the clocks may go back within the period, or just after it
            other = self._after(wall).replace(tzinfo=self.tz, fold=1).utcoffset()
        return self.named(wall, other) if other != offset else None

    def _first_offset(self, wall: datetime) -> timedelta | None:
        return wall.replace(tzinfo=self.tz, fold=0).utcoffset()

    def _step(self, wall: datetime) -> int:
        if self.minutes is not None:
            return (wall.toordinal() * 24 * 60 + wall.hour * 60 + wall.minute) // self.minutes
        if self.unit == "day":
            return wall.toordinal()
        if self.unit == "week":
            return (wall.toordinal() - self._first_ordinal) // 7
        return (wall.year * 12 + wall.month - 1) // _MONTHS[self.unit]

    def _wall_of(self, step: int) -> datetime:
        if self.minutes is not None:
            day, minute = divmod(step * self.minutes, 24 * 60)
            return datetime.combine(date.fromordinal(day), time(minute // 60, minute % 60))
        if self.unit == "day":
            return datetime.combine(date.fromordinal(step), time())
        if self.unit == "week":
            return datetime.combine(date.fromordinal(step * 7 + self._first_ordinal), time())
        year, month = divmod(step * _MONTHS[self.unit], 12)
        return datetime.combine(date(year, month + 1, 1), time())

    @property
    def _first_ordinal(self) -> int:
        """The ordinal of the first day of a week; that of Monday, 1 January of the year 1, is 1."""
        return 1 + WEEKDAYS.index(self.week_starts)

    def floor(self, wall: datetime) -> datetime:
        """The wall time of the name of the period with this wall time."""
        if self.minutes is not None:
            minute = (wall.hour * 60 + wall.minute) // self.minutes * self.minutes
            return datetime.combine(wall.date(), time(minute // 60, minute % 60))
        day = wall.date()
        if self.unit == "week":
            day -= (day.weekday() - WEEKDAYS.index(self.week_starts)) % 7 * _DAY
        elif self.unit != "day":
            months = _MONTHS[self.unit]
            day = date(day.year, (day.month - 1) // months * months + 1, 1)
        return datetime.combine(day, time())

    def _after(self, wall: datetime) -> datetime:
        """The wall time at which the name of the following period begins, whether the clocks show it or not."""
        if self.minutes is not None:
            return wall + self.minutes * _MINUTE
        if self.unit in ("day", "week"):
            return wall + (7 if self.unit == "week" else 1) * _DAY
        months = wall.month - 1 + _MONTHS[self.unit]
        return wall.replace(year=wall.year + months // 12, month=months % 12 + 1)

    def _following(self, wall: datetime) -> tuple[datetime, Instant] | None:
        """The name of the following period that the clocks show, and its start; None after the last year."""
        while wall.year <= LAST_YEAR:
            wall = self._after(wall)
            start = self._start(wall, None)
            if start is not None:
                return wall, start
        return None

    def _start(self, wall: datetime, offset: timedelta | None) -> Instant | None:
        """The first instant of the period with a name; None if the clocks never show it."""
        if offset is not None:
            return self._start_at_offset(wall, offset)
        change = change_of(wall, self.tz)
        if change is not None and change.forward:
            return change.at if change.ends < self._after(wall) else None
        return millis(wall.replace(tzinfo=self.tz, fold=0))

    def _start_at_offset(self, wall: datetime, offset: timedelta) -> Instant | None:
        first, last = (_utc(each - offset) for each in (wall, self._after(wall)))
        if self.offset_at(first) == offset:
            return first
        changed = self._change(first, last)
        return changed if changed is not None and self.offset_at(changed) == offset else None

    def _end(self, wall: datetime, offset: timedelta | None, start: Instant) -> Instant:
        if offset is not None:
            last = _utc(self._after(wall) - offset)
            changed = self._change(start, last)
            return last if changed is None else changed
        following = self._following(wall)
        if following is not None:
            return following[1]
        # Nothing follows the last year. No zone plans a change of its clocks then.
        return start + (self._after(wall) - wall) // timedelta(milliseconds=1)

    def _change(self, first: Instant, last: Instant) -> Instant | None:
        """The instant after ``first``, and before ``last``, at which the offset changes; None if it does not. They are
        less than a day apart, in which no zone changes its offset twice."""
        low, high = first // 1000, last // 1000 - 1
        before = self.offset_at(first)
        if self.offset_at(high * 1000) == before:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset_at(middle * 1000) == before:
                low = middle
            else:
                high = middle
        return high * 1000

    def offset_at(self, instant: Instant) -> timedelta:
        """The offset of the zone from UTC."""
        return datetime.fromtimestamp(instant // 1000, self.tz).utcoffset() or timedelta()

    def _label(self, wall: datetime, offset: timedelta | None) -> str:
        match self.unit:
            case "year":
                return f"{wall:%Y}"
            case "quarter":
                return f"{wall:%Y}-Q{quarter_of(wall)}"
            case "month":
                return f"{wall:%Y-%m}"
            case "week" if self.week_starts == "mon":
                return f"{wall:%G-W%V}"
            case "week":
                return f"week-{wall:%Y-%m-%d}"
            case "day":
                return f"{wall:%Y-%m-%d}"
            case "hour":
                return f"{wall:%Y-%m-%dT%H}{_suffix(offset)}"
            case "minute":
                return f"{wall:%Y-%m-%dT%H:%M}{_suffix(offset)}"


def span_within(period: Period, calendar: Calendar) -> tuple[Instant, Instant]:
    """In which span the periods of another calendar begin that belong to ``period``: those that begin in it. If one of
    them is as long as it, or longer, it is that one."""
    last = calendar.at(period.end - 1)
    return (last.start, last.end) if last.start <= period.start else (period.start, period.end)


def span_before(period: Period, own: Calendar, calendar: Calendar) -> tuple[Instant, Instant]:
    """The span `span_within` of the period before: the one before ``period`` in its ``own`` calendar or, if those of
    the other calendar are longer, in that one."""
    start, _ = span_within(period, calendar)
    return span_within(own.at(min(period.start, start) - 1), calendar)


def quarter_of(day: date) -> int:
    return (day.month - 1) // 3 + 1


def shown_twice(tz: ZoneInfo, first: int, last: int) -> timedelta:
    """The longest span of wall time that the clocks of a zone show twice in the years from ``first`` to ``last``."""
    longest, day = timedelta(), datetime(first, 1, 1, tzinfo=UTC)
    before = day.astimezone(tz).utcoffset()
    while day.year <= last:
        day += 7 * _DAY
        after = day.astimezone(tz).utcoffset()
        if before is not None and after is not None:
            longest = max(longest, before - after)
        before = after
    return longest


def _utc(moment: datetime) -> Instant:
    return millis(moment.replace(tzinfo=UTC))


def _suffix(offset: timedelta | None) -> str:
    return "" if offset is None else datetime(2000, 1, 1, tzinfo=timezone(offset)).isoformat()[19:]
