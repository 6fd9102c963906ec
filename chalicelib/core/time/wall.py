"""Wall time and instants (T2): the meaning of a wall time on the days when the clocks change.

The clocks of a zone change at an instant. When they go forward, some wall times do not exist (a *gap*: New York has no
02:30 on 8 March 2026). When they go back, some exist twice (an *overlap*: 01:30 on 1 November 2026, first in summer
time, then in winter time). `Daylight` is the rule for fires at such wall times. All other wall times exist once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Literal
from zoneinfo import ZoneInfo

from chalicelib.core.instants import Instant, Millis, millis
from chalicelib.core.time.cron import IsHoliday, no_holiday

_SECOND, _MILLISECOND = timedelta(seconds=1), timedelta(milliseconds=1)
MAX_LEAPS = 4_000  # excluded days, or spans of them, in a row that are left out before no fire follows
FreeFrom = Callable[[date], date | None]  # the first day from a day on that is not excluded; None if there is none


@dataclass(frozen=True, slots=True)
class Daylight:
    """``gap``: a wall time that does not exist fires at the first instant after the gap (``after``), or not at all
    (``skip``). ``overlap``: one that exists twice fires the ``first`` time only, the ``second`` only, or ``both``.
    ``free_from`` leaves out wall times by their day, also those in a gap, which fire on another day. ``is_holiday``
    says which days are no working days besides Saturdays and Sundays."""

    gap: Literal["after", "skip"] = "after"
    overlap: Literal["first", "second", "both"] = "first"
    free_from: FreeFrom | None = None
    is_holiday: IsHoliday = no_holiday


DEFAULT = Daylight()


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the clocks at the instant ``at``. If they go ``forward``, the wall times from ``begins`` to before
    ``ends`` do not exist; else they exist twice."""

    at: Instant
    begins: datetime
    ends: datetime
    forward: bool


def change_of(wall: datetime, tz: ZoneInfo) -> Change | None:
    """The change in whose gap or overlap a wall time lies; None if the wall time exists once."""
    first, second = wall.replace(tzinfo=tz, fold=0), wall.replace(tzinfo=tz, fold=1)
    before, after = _offset(first), _offset(second)
    if before == after:
        return None
    # The change is between the two instants of the wall time: the earlier one has the larger offset.
    low, high = sorted((millis(first) // 1000, millis(second) // 1000))
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(datetime.fromtimestamp(middle, tz)) == before:
            low = middle
        else:
            high = middle
    utc = datetime(1970, 1, 1) + timedelta(seconds=high)  # noqa: DTZ001 - shifted to wall time in the next line
    begins, ends = sorted((utc + before, utc + after))
    return Change(high * 1000, begins, ends, before < after)


def wall_to_instant(wall: datetime, tz: ZoneInfo) -> Instant:
    """The instant of a wall time by the default rule: the end of its gap, and the first of two in an overlap."""
    change = change_of(wall, tz)
    return change.at if change and change.forward else millis(wall.replace(tzinfo=tz, fold=0))


def offset_at(instant: Instant, tz: ZoneInfo) -> Millis:
    """The offset of a zone at an instant."""
    return round(_offset(datetime.fromtimestamp(instant // 1000, tz)) / _MILLISECOND)


def instant_of(instant: Instant, offset: Millis, tz: ZoneInfo) -> Instant:
    """The instant at which the clocks of a zone show what clocks with an ``offset`` show at ``instant``: the first of
    two, and just before a gap that skips this wall time."""
    shown = datetime(1970, 1, 1) + (instant + offset) * _MILLISECOND  # noqa: DTZ001 - wall time
    change = change_of(shown, tz)
    return change.at - 1 if change and change.forward else millis(shown.replace(tzinfo=tz, fold=0))


def next_instant(
    next_wall: Callable[[datetime], datetime | None], tz: ZoneInfo, after: Instant, rule: Daylight = DEFAULT
) -> Instant | None:
    """The first instant strictly after ``after`` of a wall time that ``next_wall`` names; None after the last.

    ``next_wall`` returns the first wall time strictly after a given one, None after the last. Several wall times in one
    gap cause one fire. The work does not grow with the length of gaps and overlaps, which are skipped as a whole."""
    if rule.free_from is not None:
        next_wall = partial(_next_free, next_wall, rule.free_from)
    shown = datetime.fromtimestamp(after // 1000, tz)
    past = shown.replace(tzinfo=None, fold=0)
    change = change_of(past, tz)
    if change is not None:  # ``after`` itself is in the first or second pass of an overlap
        passes = [1] if shown.fold else [0, 1]
        for number in passes:
            start = past if number == shown.fold else change.begins - _SECOND
            wall = next_wall(start) if _fires(rule, number) else None
            if wall is not None and wall < change.ends:
                return millis(wall.replace(tzinfo=tz, fold=number))
        past = change.ends - _SECOND
    while (wall := next_wall(past)) is not None:
        change = change_of(wall, tz)
        if change is None or not change.forward:
            fold = 1 if change is not None and rule.overlap == "second" else 0
            return millis(wall.replace(tzinfo=tz, fold=fold))
        if rule.gap == "after":
            return change.at
        past = change.ends - _SECOND
    return None


def _next_free(
    next_wall: Callable[[datetime], datetime | None], free_from: FreeFrom, past: datetime
) -> datetime | None:
    """The first wall time strictly after ``past`` whose day is not excluded."""
    for _ in range(MAX_LEAPS):
        wall = next_wall(past)
        day = free_from(wall.date()) if wall is not None else None
        if wall is None or day is None or day == wall.date():
            return wall if day is not None else None
        past = datetime.combine(day, time()) - _SECOND
    return None


def _fires(rule: Daylight, number: int) -> bool:
    """Whether a pass of an overlap has fires; ``number`` is 0 for the first pass, 1 for the second."""
    return rule.overlap == "both" or rule.overlap == ("second" if number else "first")


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or timedelta()
