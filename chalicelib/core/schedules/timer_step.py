"""The next step of a timer with its writes: the fires to prepare, and the plan that moves it or completes its schedule.

`core/fires/timer.py` computes the fires. An emitter writes them, and then commits the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from chalicelib.core.changes import replace
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import bundles, lifetime, walls
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.fires.timer import Emission
from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Fire
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import lifecycle
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.writes import Create, ExpectMode, Put, Replace, Write


@dataclass(frozen=True, slots=True)
class TimerStep:
    """The result of one step of a timer: the fires to write, and the plan that moves the timer. ``again`` is the
    instant at which the timer needs a hint before the next tick."""

    schedule: str
    emission: Emission | None = None
    plan: tuple[Write, ...] = ()
    again: Instant | None = None

    @property
    def fires(self) -> tuple[Job, ...]:
        return self.emission.fires if self.emission else ()


def unknown_zones(timer: Timer, schedule: Schedule, schedule_state: ScheduleState) -> tuple[str, ...]:
    """The zones without which the present rules cannot move a timer; empty if it can be moved, or need not be."""
    stays = _completes(timer, schedule, schedule_state) or walls.follows(timer, schedule)
    return () if stays else tuple(walls.unknown(schedule))


def next_step(
    timer: Timer,
    schedule: Schedule,
    schedule_state: ScheduleState,
    now: Instant,
    horizon: Instant,
    bundled: bool = False,
) -> TimerStep | None:
    """The next step of a timer, bounded to one portion; None if there is nothing to prepare before ``horizon``.
    ``bundled``: many events of a fire are one row (`core/fires/bundles.py`)."""
    name = schedule_state.schedule
    if _completes(timer, schedule, schedule_state):
        # The last repeat was prepared during a pause, or the repeats ended before the schedule began.
        return _moved(TimerStep(name), replace(timer, rev=timer.rev + 1), schedule, schedule_state, now, now)
    follows = walls.follows(timer, schedule)
    present = timer if follows else fire_timer.by_present_rules(timer, schedule, now)
    has_moved = (timer.next, timer.wake_at) != (present.next, present.wake_at)
    if not has_moved and (present.wake_at is None or present.wake_at >= horizon):
        return None
    gathers = schedule_state.mode in GATHERING_MODES
    emission = fire_timer.emit(present, schedule, now, horizon, bundled) if gathers else None
    if emission is not None and (emission.fires or emission.skipped):
        last_due = max((bundles.last_due(job) or now for job in emission.fires), default=now)
        return _moved(TimerStep(name, emission), emission.timer, schedule, schedule_state, now, last_due)
    if has_moved:
        return _moved(TimerStep(name), replace(present, rev=present.rev + 1), schedule, schedule_state, now, now)
    wakes_at = present.wake_at or now
    ends = lifetime.decide(schedule_state, present, schedule, max(now, wakes_at)) is not None
    return TimerStep(name, again=wakes_at) if ends else None


def with_bundles(step: TimerStep, stored: Mapping[str, Fire | None], now: Instant) -> TimerStep:
    """The step with the writes of its bundles. ``stored`` are the rows of their fires. An event that has left a fire
    stays out of it when the fire is written again."""
    if step.emission is None or not step.emission.bundles:
        return step
    fires: list[Job] = [job for job in step.emission.fires if not job.is_bundle]
    plan: list[Write] = []
    for fire_id, group in groupby(step.emission.bundles, key=lambda job: bundles.fire_of_bundle(job.job_id)):
        written = list(group)
        row = bundles.after(stored.get(fire_id), bundles.fire_row(step.emission.timer, written, now))
        written = [bundles.without(job, row.left) if row.left else job for job in written]
        written = [job for job in written if job.waiting]
        fires += written
        plan += [*map(Put, written), Create(row) if row.rev == 1 else Replace(row)]
    return replace(step, emission=replace(step.emission, fires=tuple(fires)), plan=(*step.plan, *plan))


def _completes(timer: Timer, schedule: Schedule, schedule_state: ScheduleState) -> bool:
    return schedule_state.mode == "enabled" and lifetime.is_used_up(timer, schedule)


def _moved(
    step: TimerStep, timer: Timer, schedule: Schedule, schedule_state: ScheduleState, now: Instant, last_due: Instant
) -> TimerStep:
    """The step with its plan: the moved timer, records of skipped fires and, after the last fire, the completion of
    the schedule."""
    plan: list[Write] = [*map(Put, step.emission.skipped)] if step.emission else []
    again: Instant | None = None
    if lifetime.is_used_up(timer, schedule):
        # The pause stays. The plan expects that mode, so a concurrent resume conflicts, or finds the used-up timer.
        enabled = schedule_state.mode == "enabled"
        plan += (
            lifecycle.complete(schedule_state, now)[1]
            if enabled
            else [ExpectMode(schedule_state, (schedule_state.mode,))]
        )
        timer = lifetime.completed(timer, schedule, last_due) if enabled else timer
        again = timer.wake_at
    return replace(step, plan=(Replace(timer), *plan), again=again)
