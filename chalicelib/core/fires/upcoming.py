"""The next fires of a schedule, by the rules that will prepare them (L11)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import fire, walls
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.time import expressions
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import TimedLeaf
from chalicelib.core.triggers.time import Recurrence, rule_of

COUNTED = 1  # fires a day; a hundred thousand schedules with fewer fire 1.2 times a second together


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """An upcoming fire: its nominal instant, and when it is due."""

    nominal: Instant
    due: Instant


def fires(
    schedule: Schedule,
    now: Instant,
    count: int,
    timer: Timer | None = None,
    name: str = "",
    until: Instant | None = None,
) -> list[Occurrence]:
    """The next ``count`` fires of a schedule's timed leaves that are due after ``now``, up to the nominal instant
    ``until``. Without a timer they are those that the schedule ``name`` would have if it were enabled now. None in a
    zone that the rules no longer have."""
    known = timer if timer is not None else Timer(name, 0, 0, now, {})
    found: list[Occurrence] = []
    for leaf in tree.timed_leaves(schedule.trigger) if not walls.unknown(schedule) else ():
        rule = rule_of(leaf.trigger)
        upcoming = (
            _times(schedule, known, leaf.id, rule, now)
            if rule is not None
            else (Occurrence(at, at) for at in _spans(schedule, known, leaf.id, leaf.trigger, now))
        )
        found += islice(takewhile(lambda one: until is None or one.nominal <= until, upcoming), count)
    return sorted(found)[:count]


def preview(schedule: Schedule, now: Instant, count: int, timer: Timer | None = None) -> list[Instant]:
    """The nominal instants of the next ``count`` fires."""
    return [one.nominal for one in fires(schedule, now, count, timer)]


def per_day(schedule: Schedule) -> float | int:
    """How many events a day a schedule's time expressions yield, without regard to exclusions and bounds."""
    rules = tree.recurrences(schedule.trigger)
    daily = [1 if rule.expression is None else expressions.fires_per_day(rule.expression) for rule in rules]
    rates = [rate if rule.repeats is None else min(rate, rule.repeats) for rate, rule in zip(daily, rules, strict=True)]
    return sum(rates) * (schedule.spread.count if schedule.spread else 1)


def counted(schedule: Schedule) -> int | None:
    """The fires a day that count for the quota of the namespace; None for a schedule that fires less often."""
    found = per_day(schedule)
    return math.ceil(found) if found >= COUNTED else None


def _times(schedule: Schedule, timer: Timer, leaf: str, rule: Recurrence, now: Instant) -> Iterator[Occurrence]:
    own = fire.series(timer, schedule, leaf, rule)
    left = None if rule.repeats is None else rule.repeats - timer.fired.get(leaf, 0)
    # ``fired`` already counts the fires that the timer has prepared, which are those before its next instant.
    counted_from = timer.next.get(leaf, now)
    nominal = fire.first_ahead(own, now)
    while nominal is not None and left != 0:
        yield Occurrence(nominal, own.due(nominal))
        left = left - 1 if left is not None and nominal >= counted_from else left
        nominal = own.after(nominal)


def _spans(schedule: Schedule, timer: Timer, leaf: str, rule: TimedLeaf, now: Instant) -> Iterator[Instant]:
    """The instants at which a leaf is due if no event postpones it."""
    span: Millis | None = rule.span
    at: Instant | None = now
    while at is not None:
        if span is None:
            at = rule.next_due(timer.anchor, at, schedule.ends_at)
        else:
            anchor = timer.next.get(leaf, timer.anchor + span) - span
            at = anchor + ((at - anchor) // span + 1) * span
            at = None if schedule.ends_at is not None and at > schedule.ends_at else at
        if at is not None:
            yield at
