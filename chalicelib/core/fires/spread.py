"""Spread: several events of one fire over a window (E2), and which do not start within it."""

from __future__ import annotations

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import fire
from chalicelib.core.fires.fire import Begun
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.why import Why

UNCHECKED = "it was not checked in time"


def as_before(old: Schedule, new: Schedule, one: Begun) -> int:
    """How many of the written events of a fire have the same due instant by the new definition as by the old."""
    moved = (index for index in range(one.written) if fire.due_of(old, one, index) != fire.due_of(new, one, index))
    return next(moved, one.written)


def window_end(schedule: Schedule, first: Instant) -> Instant | None:
    """The end of the window that begins with the first event; None if all events are due at once and none is too
    late."""
    spread = schedule.spread
    return first + spread.span if spread and spread.over else None


def after_hold(job: Job, schedule: Schedule, schedule_state: ScheduleState) -> Instant | None:
    """When an event is due again whose fire was held up by a pause; None if no pause held it up.

    The first event that was due during the pause, and all that follow it, are planned anew from the resume on, as after
    an outage."""
    began, ended = schedule_state.held_from, schedule_state.mode_at
    spread = schedule.spread
    if schedule_state.mode != "enabled" or began is None or spread is None or job.window_end is None:
        return None
    one = Begun(fire.nominal_of(job), job.window_end - spread.span, 0)
    held = next((index for index in range(job.index + 1) if fire.due_of(schedule, one, index) > began), None)
    if held is None or fire.due_of(schedule, one, held) >= ended:
        return None
    return fire.due_of(schedule, one._replace(resumed_at=ended, resumed_from=held), job.index)


def last_chance(job: Job, schedule: Schedule) -> Instant | None:
    """When an event that has not started is dropped; None if it still starts then, late."""
    return job.window_end if schedule.spread and schedule.spread.overflow == "drop" else None


def overflow(job: Job, schedule: Schedule, now: Instant) -> Why | None:
    """Why an event is dropped at the end of its window; None if it is not."""
    end = last_chance(job, schedule)
    if end is None or now < end:
        return None
    ended = f"not started within its window, which ended at {iso(end)}: "
    return Why.of("window_over", ended, job.reason or UNCHECKED)
