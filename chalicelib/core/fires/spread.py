"""Spread: several events of one fire over a window (E2), when each is due, and which do not start within it."""

from __future__ import annotations

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.job import Job


def due_of(schedule: Schedule, first: Instant, index: int) -> Instant:
    """When the event ``index`` is due. Events are evenly spaced over the window; the first is due at its start."""
    spread = schedule.spread
    return first + (index * spread.span // spread.count if spread else 0)


def events_of(schedule: Schedule) -> int:
    """The number of events of a fire."""
    return schedule.spread.count if schedule.spread else 1


def due_by(schedule: Schedule, first: Instant, now: Instant) -> int:
    """How many events of a fire are due until ``now``."""
    count, passed = events_of(schedule), now - first
    if passed < 0:
        return 0
    span = schedule.spread.span if schedule.spread else 0
    # The event of number i is due ``i * span // count`` ms after the first one.
    return count if span == 0 else min(((passed + 1) * count - 1) // span + 1, count)


def as_before(old: Schedule, new: Schedule, first: Instant, written: int) -> int:
    """How many of the first ``written`` events of a fire have the same due instant by the new definition as by the
    old."""
    moved = (index for index in range(written) if due_of(old, first, index) != due_of(new, first, index))
    return next(moved, written)


def window_end(schedule: Schedule, first: Instant) -> Instant | None:
    """The end of the window that begins with the first event; None if all events are due at once and none is too
    late."""
    spread = schedule.spread
    return first + spread.span if spread and spread.over else None


def last_chance(job: Job, schedule: Schedule) -> Instant | None:
    """When an event that has not started is dropped; None if it still starts then, late."""
    return job.window_end if schedule.spread and schedule.spread.overflow == "drop" else None


def overflow(job: Job, schedule: Schedule, now: Instant) -> str | None:
    """Why an event is dropped at the end of its window; None if it is not."""
    end = last_chance(job, schedule)
    if end is None or now < end:
        return None
    return f"not started within its window, which ended at {iso(end)}: {job.reason or 'it was not checked in time'}"
