"""When a time trigger is due (T1-T3, T6). Pure: the instants follow from the trigger, its anchor and nothing else.

A *nominal* instant is one that the trigger names: it identifies an occurrence, the run's context contains it, and
bounds and exclusions refer to it. An occurrence is *due* at its nominal instant or, by its jitter, later. Both instants
increase from fire to fire: the jitter of a fire ends before the next one.

Intervals count from ``anchor``, the instant at which the schedule began to gather, unless ``due_time`` or ``start`` is
set. The timer counts ``repeats``, because the fires of a cron expression so far cannot be computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

from chalicelib.core import ids
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, Millis, format_duration, iso, parse_when
from chalicelib.core.time import days, exclusions, expressions, wording
from chalicelib.core.time.days import Excluded
from chalicelib.core.time.wall import MAX_LEAPS, Daylight


class Recurrence(Protocol):
    """The rule of the instants that a leaf names: the properties of `TimeTrigger` that this module reads."""

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
    def calendar(self) -> str | None: ...
    @property
    def zone_name(self) -> str: ...
    @property
    def daylight(self) -> Daylight: ...

    def unbounded(self) -> Self:
        """The rule of its expression alone, without a first instant, bounds and ``repeats``."""


@dataclass(frozen=True, slots=True)
class Series:
    """The occurrences of one leaf in one generation of a schedule, which may end at ``until``. ``seed`` identifies
    schedule and leaf, for the jitter."""

    rule: Recurrence
    anchor: Instant
    until: Instant | None
    seed: str

    def after(self, instant: Instant) -> Instant | None:
        """The first nominal instant strictly after ``instant``; None if there is none."""
        return next_due(self.rule, self.anchor, instant, self.until)

    def due(self, nominal: Instant) -> Instant:
        return jittered(self.rule, self.anchor, nominal, self.seed)

    @property
    def begins(self) -> Instant:
        """Nominal instants of this generation come strictly after this one. A ``due_time`` may be the anchor itself."""
        return self.anchor - 1 if _when(self.rule.due_time, self.anchor) == self.anchor else self.anchor

    def due_bound(self, instant: Instant) -> Instant:
        """The bound that separates the nominal instants by when they are due: those before it are due before
        ``instant``, the others at ``instant`` or later. Without jitter it is ``instant``."""
        longest = self.rule.jitter_millis
        last = self.last_by(instant, instant - longest) if longest else None
        return last if last is not None and self.due(last) >= instant else instant

    def last_by(self, instant: Instant, first: Instant) -> Instant | None:
        """The last nominal instant from ``first`` on that is not after ``instant``; None if there is none. The search
        goes back in growing spans, so that seconds over years cost no more than hours over a day."""
        for span in (MINUTE, HOUR, DAY, 31 * DAY, instant - first + 1):
            found = self.after(max(instant - span, first - 1))
            if found is not None and found <= instant:
                while (following := self.after(found)) is not None and following <= instant:
                    found = following
                return found
        return None

    def count(self, first: Instant, stop: Instant, most: int) -> tuple[int, Instant | None]:
        """The number of occurrences from ``first`` on and before ``stop``, and the occurrence that follows them. The
        count stops at ``most``, except for regular intervals, which need no counting."""
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
        """The occurrence that is ``number`` after the occurrence ``first``; None if there is none."""
        step = _step(self.rule)
        if step is not None:
            return first + number * step
        upcoming: Instant | None = first
        for _ in range(number):
            upcoming = self.after(upcoming) if upcoming is not None else None
        return upcoming


def next_due(rule: Recurrence, anchor: Instant, after: Instant, until: Instant | None = None) -> Instant | None:
    """The first nominal instant strictly after ``after``; None if there is none by the rule's end or by ``until``."""
    ends = [bound for bound in (_when(rule.end, anchor), until) if bound is not None]
    found = _next(rule, anchor, after)
    return found if found is not None and all(found <= end for end in ends) else None


def jittered(rule: Recurrence, anchor: Instant, nominal: Instant, seed: str) -> Instant:
    """The instant at which a nominal instant is due: up to ``jitter`` later, and before the next occurrence. ``seed``
    identifies schedule and leaf; the result depends on the arguments alone, so each computation gives the same."""
    if not rule.jitter_millis:
        return nominal
    following = next_due(rule, anchor, nominal)
    longest = rule.jitter_millis if following is None else min(rule.jitter_millis, following - nominal - 1)
    return nominal + int(ids.digest("jitter", seed, nominal, length=12), 16) % (longest + 1)


def is_occurrence(rule: Recurrence, anchor: Instant, at: Instant) -> bool:
    """Whether ``at`` is a nominal instant of the rule."""
    return next_due(rule, anchor, at - 1) == at


def counts_from_anchor(rule: Recurrence) -> bool:
    """Whether the instants depend on when the schedule began to gather, so that without an anchor none is known."""
    fixed = rule.due_time is not None or rule.start is not None
    return rule.expression is not None and not fixed and expressions.is_interval(rule.expression)


def describe(rule: Recurrence) -> str:
    """The rule in plain words: ``every 10s, first at 2026-03-02T12:00:10.000Z, 4 times``."""
    texts = {name: _format_when(getattr(rule, name)) for name in ("due_time", "start", "end")}
    if rule.expression is None:
        parts = [f"at {texts['due_time']}"]
    else:
        parts = [wording.describe(rule.expression, rule.zone_name)]
        parts += [f"first at {texts['due_time']}"] if rule.due_time else []
    parts += [f"from {texts['start']}"] if rule.start else []
    parts += [f"until {texts['end']}"] if rule.end else []
    parts += [f"{rule.repeats} times" if rule.repeats > 1 else "once"] if rule.repeats else []
    parts += [f"without {rule.calendar}"] if rule.calendar else []
    parts += [f"except on {exclusions.describe(rule.excluding)}"] if rule.excluding else []
    parts += [f"up to {format_duration(rule.jitter_millis)} later"] if rule.jitter else []
    return ", ".join(parts)


def _next(rule: Recurrence, anchor: Instant, after: Instant) -> Instant | None:
    due, start = _when(rule.due_time, anchor), _when(rule.start, anchor)
    if due is not None and after < due:
        return due  # the user named this instant, so exclusions do not apply to it
    if rule.expression is None:
        return None
    after = after if start is None else max(after, start - 1)
    base = _base(rule.expression, rule.zone_name, anchor, due if due is not None else start)
    if not rule.excluding:
        return expressions.next_fire(rule.expression, rule.zone_name, base, after, rule.daylight)
    return _next_free(rule, rule.expression, base, after)


def _next_free(rule: Recurrence, expression: str, base: Instant, after: Instant) -> Instant | None:
    """The next instant that is not excluded. A day excludes the wall times of a cron expression that it has, also those
    that fire on the next day because the clocks skip them. It excludes the instants of an interval."""
    listed = days.read(rule.excluding, rule.zone_name)
    has_walls = expressions.has_walls(expression)
    daylight = replace(rule.daylight, free_from=listed.free_from) if has_walls else rule.daylight
    for _ in range(MAX_LEAPS):
        found = expressions.next_fire(expression, rule.zone_name, base, after, daylight)
        if found is None:
            return None
        end = listed.window_end(found) if has_walls else listed.end_of(found)
        if end is None:
            return found
        after = end - 1
    return None


def _base(expression: str, zone_name: str, anchor: Instant, first: Instant | None) -> Instant:
    """The instant from which an interval counts so that it begins at ``first``. Other expressions ignore it."""
    if first is None or not expressions.is_interval(expression):
        return anchor if first is None else 0
    return first - _interval(expression, zone_name)


def _step(rule: Recurrence) -> Millis | None:
    """The distance in ms between the instants of a rule; None if they are irregular, some are excluded, or they end."""
    if rule.expression is None or rule.excluding or not expressions.is_interval(rule.expression):
        return None
    return _interval(rule.expression, rule.zone_name) if expressions.repeats(rule.expression) is None else None


def _interval(expression: str, zone_name: str) -> Millis:
    return expressions.next_fire(expression, zone_name, 0, 0) or 0


def _when(text: str | None, anchor: Instant) -> Instant | None:
    return None if text is None else parse_when(text, anchor, "due_time")


def _format_when(text: str | None) -> str:
    """An instant in its normal form; a span that is not resolved yet as the user wrote it."""
    if text is None:
        return ""
    return iso(parse_when(text, 0, "due_time")) if "-" in text else f"{text} after the put"
