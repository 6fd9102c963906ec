"""The fires that a schedule has had since an instant, with or without a run: those that a repair looks for."""

from __future__ import annotations

from collections.abc import Iterator

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import fire
from chalicelib.core.fires.fire import Begun, fire_of
from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.triggers.time import Series

MAX_FIRES = 10_000  # of one schedule that a repair looks for


def since(timer: Timer, schedule: Schedule, instant: Instant) -> Iterator[Job]:
    """The fires of time leaves that a timer has prepared, and that were due at ``instant`` or later."""
    known = {one.nominal: one for one in fire.begun(timer)}
    for leaf, own in fire.all_series(timer, schedule):
        for nominal in _nominals(own, timer, leaf, instant - fire.longest_delay(schedule)):
            one = known.get(nominal) or Begun(nominal, own.due(nominal), fire.events_of(schedule))
            dues = [fire.due_of(schedule, one, index) for index in range(one.written)]
            yield from (fire_of(timer, leaf, nominal, due, i) for i, due in enumerate(dues) if due >= instant)


def _nominals(own: Series, timer: Timer, leaf: str, instant: Instant) -> Iterator[Instant]:
    """The nominal instants, from ``instant`` on, of the fires that the timer has left behind."""
    stop, left = timer.next.get(leaf), MAX_FIRES
    if stop is None and own.rule.repeats is not None:  # used up: only a count from the beginning finds the last fire
        nominal, left = own.after(own.begins), timer.fired.get(leaf, 0)
    else:
        nominal = own.after(max(instant - 1, own.begins))
    while nominal is not None and left and (stop is None or nominal < stop):
        left -= 1
        if nominal >= instant:
            yield nominal
        nominal = own.after(nominal)
