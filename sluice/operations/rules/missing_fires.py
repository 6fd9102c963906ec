"""The fires that a schedule has had since an instant, with or without a run: those that a repair looks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chalicelib.core.changes import replace
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import fire
from chalicelib.core.fires.fire import Begun, Shape, fire_of
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Timer, Version
from chalicelib.core.triggers.time import Series

MAX_FIRES = 10_000  # of one schedule that a repair looks for


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of the fires of a schedule by its versions, from the newest on: since when each is in force. A fire
    has the shape that was in force when it was prepared: at most ``lead`` before its first event, and later after an
    outage. So a fire of ``sizes`` has as many events as its rows say."""

    known: tuple[tuple[Instant, Shape], ...]
    sizes: Mapping[Instant, int]
    lead: Millis

    @classmethod
    def of(cls, versions: Sequence[Version], sizes: Mapping[Instant, int], lead: Millis) -> Shapes:
        """The shapes of the newest versions, newest first."""
        made = ((row.created_at, fire.shape(Schedule.model_validate(row.definition))) for row in versions)
        return cls(tuple(made), sizes, lead)

    def at(self, nominal: Instant, due: Instant) -> Shape:
        """The shape of a fire, and of one whose first event is due at ``due`` if no row shows the fire."""
        found = (shape for created_at, shape in self.known if created_at <= due - self.lead)
        shape = next(found, self.known[-1][1])
        size = self.sizes.get(nominal, shape.events)
        alike = (each for each in (shape, *(each for _, each in self.known)) if each.events == size)
        return next(alike, shape._replace(events=size))


def since(timer: Timer, schedule: Schedule, instant: Instant, shapes: Shapes) -> Iterator[Job]:
    """The fires of time leaves that a timer has prepared, and that were due at ``instant`` or later."""
    longest = max(shape.span for _, shape in shapes.known)
    known = {one.nominal: one for one in fire.begun(timer)}
    for leaf, own in fire.all_series(timer, schedule):
        for nominal in _nominals(own, timer, leaf, instant - fire.longest_delay(schedule) - longest):
            first = own.due(nominal)
            shape = fire.shape_in(timer, schedule, nominal) if nominal in known else shapes.at(nominal, first)
            one = known.get(nominal) or Begun(nominal, first, shape.events)
            dues = [fire.due_of(shape, one, index) for index in range(one.written)]
            jobs = (fire_of(timer, leaf, nominal, due, i) for i, due in enumerate(dues) if due >= instant)
            end, kept = fire.window_end(shape, first), () if shape == fire.ONE else tuple(shape)
            yield from (replace(job, shape=kept, window_end=end) for job in jobs)


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
