"""Daily windows of wall time, ``[start, end)`` in a zone (C3), and the next instant of a time of day (T18).

Both ends follow the default rule of `core/time/wall.py`. A wall time that does not exist is the first instant after the
gap, and one that exists twice is the first of the two. The rule keeps wall times in order, so the windows of two days
never overlap. A window that is wholly within a gap does not open that day. If its start is repeated, a window is open
during both passes; a window that has closed does not open again in the second pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from chalicelib.core import instants
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant
from chalicelib.core.time.wall import wall_to_instant

Clock = tuple[int, int]  # hour and minute; (24, 0) is the midnight that ends a day


DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


_CLOCK = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")


_END_OF_DAY = "24:00"


@dataclass(frozen=True, slots=True)
class Window:
    """Open from ``start`` to ``end`` (``HH:MM``), over midnight if ``end`` is not later than ``start``.

    ``days`` names the days on which the window starts (empty: every day): ``fri`` from 22:00 to 06:00 is open in the
    early hours of Saturday.
    """

    start: str
    end: str
    zone: str
    days: tuple[str, ...] = ()


def parse_clock(text: str, field: str, *, is_end: bool = False) -> Clock:
    """``HH:MM`` as hour and minute; ``24:00`` only with ``is_end``. Raises ``invalid`` for anything else."""
    if not _CLOCK.fullmatch(text) and not (is_end and text == _END_OF_DAY):
        expected = f"a time of day from 00:00 to {'24:00' if is_end else '23:59'}, written HH:MM"
        hint = "use 00:00; only the end of a window may be 24:00" if text == _END_OF_DAY else None
        raise invalid(field, expected, text, hint)
    hour, _, minute = text.partition(":")
    return int(hour), int(minute)


def is_inside(window: Window, now: Instant) -> bool:
    return opening(window, now)[0] <= now


def opening(window: Window, now: Instant) -> tuple[Instant, Instant]:
    """When the window opens and closes: the opening at ``now`` or, if it is closed, the next one."""
    return next(each for each in _openings(window, now) if each[1] > now)


def next_opening(window: Window, now: Instant) -> Instant:
    """The first opening strictly after ``now``, whether or not the window is open at ``now``."""
    return next(opens for opens, _ in _openings(window, now) if opens > now)


def next_clock(clock: str, zone: str, days: tuple[str, ...], after: Instant) -> Instant:
    """The first instant strictly after ``after`` at which it is ``clock`` on one of the days (empty: every day).

    A time in a gap counts as the end of the gap; of a time in an overlap, the first one counts.
    """
    tz, wanted = instants.zone(zone), parse_clock(clock, "clock")
    shown = (_instant(day, wanted, tz) for day in _midnights(days, tz, after))
    return next(instant for instant in shown if instant > after)


def describe(window: Window) -> str:
    """The window in plain words: ``between 22:00 and 06:00 in Europe/Paris, on fri and sat``."""
    days = sorted(set(window.days), key=DAYS.index)
    named = " and ".join(filter(None, [", ".join(days[:-1]), *days[-1:]]))
    return f"between {window.start} and {window.end} in {window.zone}" + (f", on {named}" if named else "")


def _openings(window: Window, now: Instant) -> Iterator[tuple[Instant, Instant]]:
    """The instants at which the window opens and closes, in order and without end. The first pair is one that has
    closed or is open at ``now``, if there is any since the day before."""
    tz = instants.zone(window.zone)
    start, end = parse_clock(window.start, "start"), parse_clock(window.end, "end", is_end=True)
    until = timedelta(days=1 if end <= start else 0)
    for day in _midnights(window.days, tz, now):
        opens, closes = _instant(day, start, tz), _instant(day + until, end, tz)
        if opens < closes:
            yield opens, closes


def _midnights(days: Iterable[str], tz: ZoneInfo, now: Instant) -> Iterator[datetime]:
    """The wall times of midnight of the named days, in order and without end.

    The first is on the day before that of ``now``, because a window that started then may reach into today.
    """
    chosen = {DAYS.index(day) for day in days} or set(range(7))
    today = datetime.fromtimestamp(now / 1000, tz).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    day = today - timedelta(days=1)
    while True:
        if day.weekday() in chosen:
            yield day
        day += timedelta(days=1)


def _instant(midnight: datetime, clock: Clock, tz: ZoneInfo) -> Instant:
    hour, minute = clock
    return wall_to_instant(midnight + timedelta(hours=hour, minutes=minute), tz)


Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
