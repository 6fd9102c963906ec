"""When a time trigger is due (T1-T3, T6). Pure: the instants follow from the trigger, its anchor and nothing else.

A *nominal* instant is the one that the trigger names: it is what an occurrence is called, what is told to the run,
what bounds and skips are about. The instant at which it is *due* may be later, by its jitter. Both only grow: the
jitter of a fire ends before the next one.

``anchor`` is where intervals count from (when the schedule began to gather); a ``due_time`` or ``start`` takes its
place. ``repeats`` is counted by the timer, for what a cron expression has fired so far can only be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from chalicelib.core import ids
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, Millis, format_duration, iso, parse_when
from chalicelib.core.time import exclusions, expressions, wording
from chalicelib.core.time.days import Excluded
from chalicelib.core.time.wall import Daylight

MAX_LEAPS = 4_000  # from one excluded span to the next, before a trigger is said to fire never


class Recurrence(Protocol):
    """The instants that a leaf names: what `core/triggers/time.py` says of them, as it is read here."""

    @property
    def expression(self) -> str | None: ...
    @property
    def due_time(self) -> str | None: ...
    @property
    def start(self) -> str | None: ...
    @property
    def end(self) -> str | None: ...
    @property
    def repeats(self) -> int | None: ...
    @property
    def jitter(self) -> str | None: ...
    @property
    def jitter_millis(self) -> Millis: ...
    @property
    def excluding(self) -> tuple[Excluded, ...]: ...
    @property
    def zone_name(self) -> str: ...
    @property
    def daylight(self) -> Daylight: ...

    def unbounded(self) -> Self:
        """The instants of its expression alone, as if it had always fired and always would."""


@dataclass(frozen=True, slots=True)
class Series:
    """The occurrences of one leaf in one generation of a schedule, whose life may end at ``until``. ``seed`` names
    schedule and leaf."""

    rule: Recurrence
    anchor: Instant
    until: Instant | None
    seed: str

    def after(self, instant: Instant) -> Instant | None:
        """The first nominal instant strictly after this one."""
        return next_due(self.rule, self.anchor, instant, self.until)

    def due(self, nominal: Instant) -> Instant:
        return jittered(self.rule, self.anchor, nominal, self.seed)

    def last_by(self, instant: Instant, first: Instant) -> Instant | None:
        """The last nominal instant from ``first`` on that is not after this one. Looked for backwards in growing
        steps, so that years of seconds cost no more than a day of hours."""
        for back in (MINUTE, HOUR, DAY, 31 * DAY, instant - first + 1):
            found = self.after(max(instant - back, first - 1))
            if found is not None and found <= instant:
                while (following := self.after(found)) is not None and following <= instant:
                    found = following
                return found
        return None

    def count(self, first: Instant, stop: Instant, most: int) -> tuple[int, Instant | None]:
        """How many there are from the occurrence ``first`` on, before ``stop``, and the one that follows them. Beyond
        ``most`` they are counted no further, unless arithmetic tells."""
        step = _step(self.rule)
        number, nominal = 0, first
        if step is not None:
            ends = [end for end in (_when(self.rule.end, self.anchor), self.until, stop - 1) if end is not None]
            regular = max((min(ends) - first) // step, 0)
            number, nominal = regular, first + regular * step
        upcoming: Instant | None = nominal
        while upcoming is not None and upcoming < stop and (number < most or step is not None):
            upcoming, number = self.after(upcoming), number + 1
        return number, upcoming

    def nth(self, first: Instant, number: int) -> Instant | None:
        """The occurrence that is so many after the occurrence ``first``."""
        step = _step(self.rule)
        if step is not None:
            return first + number * step
        upcoming: Instant | None = first
        for _ in range(number):
            upcoming = self.after(upcoming) if upcoming is not None else None
        return upcoming


def next_due(rule: Recurrence, anchor: Instant, after: Instant, until: Instant | None = None) -> Instant | None:
    """The first nominal instant strictly after ``after``; None if there is none by the trigger's end, or ``until``."""
    ends = [bound for bound in (_when(rule.end, anchor), until) if bound is not None]
    found = _next(rule, anchor, after)
    return found if found is not None and all(found <= end for end in ends) else None


def jittered(rule: Recurrence, anchor: Instant, nominal: Instant, seed: str) -> Instant:
    """When the occurrence of a nominal instant is due: up to ``jitter`` later, and before the next one. ``seed`` names
    schedule and leaf: what depends on nothing else comes out the same for whoever computes it again."""
    if not rule.jitter_millis:
        return nominal
    following = next_due(rule, anchor, nominal)
    room = rule.jitter_millis if following is None else min(rule.jitter_millis, following - nominal - 1)
    return nominal + int(ids.digest("jitter", seed, nominal, length=12), 16) % (room + 1)


def is_occurrence(rule: Recurrence, anchor: Instant, at: Instant) -> bool:
    """Whether a trigger fires nominally at this very instant."""
    return next_due(rule, anchor, at - 1) == at


def counts_from_anchor(rule: Recurrence) -> bool:
    """Whether its instants depend on when its schedule began to gather, so that no instant by itself is one of them."""
    fixed = rule.due_time is not None or rule.start is not None
    return rule.expression is not None and not fixed and expressions.is_interval(rule.expression)


def describe(rule: Recurrence) -> str:
    """The trigger in words: ``every 10s, first at 2026-03-02T12:00:10.000Z, 4 times``."""
    told = {name: _spelt(getattr(rule, name)) for name in ("due_time", "start", "end")}
    if rule.expression is None:
        parts = [f"at {told['due_time']}"]
    else:
        parts = [wording.describe(rule.expression, rule.zone_name)]
        parts += [f"first at {told['due_time']}"] if rule.due_time else []
    parts += [f"from {told['start']}"] if rule.start else []
    parts += [f"until {told['end']}"] if rule.end else []
    parts += [f"{rule.repeats} times" if rule.repeats > 1 else "once"] if rule.repeats else []
    parts += [f"except on {exclusions.describe(rule.excluding)}"] if rule.excluding else []
    parts += [f"up to {format_duration(rule.jitter_millis)} later"] if rule.jitter else []
    return ", ".join(parts)


def _next(rule: Recurrence, anchor: Instant, after: Instant) -> Instant | None:
    due, start = _when(rule.due_time, anchor), _when(rule.start, anchor)
    if due is not None and after < due:
        return due  # named by itself, so no exclusion is meant against it
    if rule.expression is None:
        return None
    after = after if start is None else max(after, start - 1)
    base = _base(rule.expression, rule.zone_name, anchor, due if due is not None else start)
    for _ in range(MAX_LEAPS):
        found = _fire(rule, rule.expression, base, after)
        end = exclusions.end_of(rule.excluding, rule.zone_name, found) if found is not None else None
        if found is None or end is None:
            return found
        after = end - 1
    return None


def _base(expression: str, zone_name: str, anchor: Instant, first: Instant | None) -> Instant:
    """Where an interval counts from so that ``first`` is its first instant; nothing else counts from anywhere."""
    if first is None or not expressions.is_interval(expression):
        return anchor if first is None else 0
    return first - _interval(expression, zone_name)


def _step(rule: Recurrence) -> Millis | None:
    """How far apart its instants are, if they are so without exception and without end."""
    if rule.expression is None or rule.excluding or not expressions.is_interval(rule.expression):
        return None
    return _interval(rule.expression, rule.zone_name) if expressions.repeats(rule.expression) is None else None


def _interval(expression: str, zone_name: str) -> Millis:
    return expressions.next_fire(expression, zone_name, 0, 0) or 0


def _fire(rule: Recurrence, expression: str, base: Instant, after: Instant) -> Instant | None:
    return expressions.next_fire(expression, rule.zone_name, base, after, rule.daylight)


def _when(text: str | None, anchor: Instant) -> Instant | None:
    return None if text is None else parse_when(text, anchor, "due_time")


def _spelt(text: str | None) -> str:
    """An instant in its one form; a span that has not been resolved yet, as it is written."""
    if text is None:
        return ""
    return iso(parse_when(text, 0, "due_time")) if "-" in text else f"{text} after it is put"
