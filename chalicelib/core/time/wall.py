"""Wall time and instants (T2): what a wall time means where the clocks are put forward or back.

A zone's clocks change at an instant. Put forward, they leave out wall times (a *gap*: New York has no 02:30 on 8 March
2026); put back, they show some twice (an *overlap*: 01:30 on 1 November 2026, first in summer time, then in winter
time). `Daylight` says what a fire that is due at such a wall time does. Everything else exists once and needs no rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from chalicelib.core.instants import Instant, millis

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Daylight:
    """``gap``: a wall time that does not exist fires at the first instant after the gap (``after``), or not at all
    (``skip``). ``overlap``: one that exists twice fires the ``first`` time only, the ``second`` only, or ``both``."""

    gap: Literal["after", "skip"] = "after"
    overlap: Literal["first", "second", "both"] = "first"


DEFAULT = Daylight()


@dataclass(frozen=True, slots=True)
class Change:
    """The clocks change at the instant ``at``. The wall times from ``begins`` to before ``ends`` are left out if they
    go ``forward``, else shown twice."""

    at: Instant
    begins: datetime
    ends: datetime
    forward: bool


def change_of(wall: datetime, tz: ZoneInfo) -> Change | None:
    """The change that leaves out or repeats this wall time; None if it exists once."""
    first, second = wall.replace(tzinfo=tz, fold=0), wall.replace(tzinfo=tz, fold=1)
    before, after = _offset(first), _offset(second)
    if before == after:
        return None
    # The change lies between the two readings of the wall time: the earlier one is made with the larger offset.
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
    """The instant of a wall time by the default rule: after the gap, and the first time of two."""
    change = change_of(wall, tz)
    return change.at if change and change.forward else millis(wall.replace(tzinfo=tz, fold=0))


def next_instant(
    next_wall: Callable[[datetime], datetime | None], tz: ZoneInfo, after: Instant, rule: Daylight = DEFAULT
) -> Instant | None:
    """The first instant strictly after ``after`` at which one of the wall times is due that ``next_wall`` enumerates:
    it answers the first one strictly after a wall time, None after the last. Of several wall times in one gap there is
    one fire. The work does not grow with the length of gaps and overlaps: they are stepped over."""
    shown = datetime.fromtimestamp(after // 1000, tz)
    past = shown.replace(tzinfo=None, fold=0)
    change = change_of(past, tz)
    if change is not None:  # ``after`` itself lies in one of the two passes of an overlap
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


def _fires(rule: Daylight, number: int) -> bool:
    """Whether the pass of this number (0 the first, 1 the second) has fires."""
    return rule.overlap == "both" or rule.overlap == ("second" if number else "first")


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or timedelta()
