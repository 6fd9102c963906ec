"""The next step of a timer with its writes: the fires to prepare, and the plan that moves it or completes its schedule.

`core/fires/timer.py` computes the fires. An emitter writes them, and then commits the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import lifetime, walls
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.fires.timer import Emission
from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import lifecycle
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.writes import ExpectMode, Put, Replace, Write


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
    timer: Timer, schedule: Schedule, schedule_state: ScheduleState, now: Instant, horizon: Instant
) -> TimerStep | None:
    """The next step of a timer, bounded to one portion; None if there is nothing to prepare before ``horizon``."""
    name = schedule_state.schedule
    if _completes(timer, schedule, schedule_state):
        # The last repeat was prepared during a pause, or the repeats ended before the schedule began.
        return _moved(TimerStep(name), replace(timer, rev=timer.rev + 1), schedule, schedule_state, now, now)
    follows = walls.follows(timer, schedule)
    present = timer if follows else fire_timer.by_present_rules(timer, schedule, now)
    has_moved = (timer.next, timer.wake_at) != (present.next, present.wake_at)
    if not has_moved and (present.wake_at is None or present.wake_at >= horizon):
        return None
    emission = fire_timer.emit(present, schedule, now, horizon) if schedule_state.mode in GATHERING_MODES else None
    if emission is not None and (emission.fires or emission.skipped):
        last_due = max((fire.due_at or now for fire in emission.fires), default=now)
        return _moved(TimerStep(name, emission), emission.timer, schedule, schedule_state, now, last_due)
    if has_moved:
        return _moved(TimerStep(name), replace(present, rev=present.rev + 1), schedule, schedule_state, now, now)
    wakes_at = present.wake_at or now
    ends = lifetime.decide(schedule_state, present, schedule, max(now, wakes_at)) is not None
    return TimerStep(name, again=wakes_at) if ends else None


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
