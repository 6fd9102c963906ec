"""The fires that a schedule has had since an instant, with or without a run: those that a repair looks for."""

from __future__ import annotations

from collections.abc import Iterator

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import spread
from chalicelib.core.fires.timer import fire_of, series
from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.occurrences import Recurrence, Series

MAX_FIRES = 10_000  # of one schedule that a repair looks for


def since(timer: Timer, schedule: Schedule, instant: Instant) -> Iterator[Job]:
    """The fires of time leaves that a timer has prepared, and that were due at ``instant`` or later."""
    for leaf in tree.timed_leaves(schedule.trigger):
        rule = leaf.trigger.recurrence()
        if rule is None:
            continue  # it is evaluated when it is due, and its timer has the next instant
        own, begun = series(timer, schedule, leaf.id, rule), {nominal: written for nominal, _, written in timer.begun}
        for nominal in _nominals(own, rule, timer, leaf.id, instant):
            due = own.due(nominal)
            for index in range(begun.get(nominal, spread.events_of(schedule))):
                yield fire_of(timer, leaf.id, nominal, spread.due_of(schedule, due, index), index)


def _nominals(own: Series, rule: Recurrence, timer: Timer, leaf: str, instant: Instant) -> Iterator[Instant]:
    """The nominal instants of the fires that the timer has left behind, from ``instant`` on."""
    stop, left = timer.next.get(leaf), MAX_FIRES
    if stop is None and rule.repeats is not None:  # used up: only a count from the beginning finds the last fire
        nominal, left = own.after(timer.anchor - 1), timer.fired.get(leaf, 0)
    else:
        nominal = own.after(max(instant, timer.anchor) - 1)
    while nominal is not None and left and (stop is None or nominal < stop):
        left -= 1
        if own.due(nominal) >= instant:
            yield nominal
        nominal = own.after(nominal)
