"""Several events of one fire, spread over a window (E2): when each is due, and what does not fit into the window."""

from __future__ import annotations

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.job import Job


def due_of(schedule: Schedule, first: Instant, index: int) -> Instant:
    """When the event of this index is due: they come evenly over the window, the first at its beginning."""
    spread = schedule.spread
    return first + (index * spread.span // spread.count if spread else 0)


def events_of(schedule: Schedule) -> int:
    """How many events a fire has."""
    return schedule.spread.count if schedule.spread else 1


def as_before(old: Schedule, new: Schedule, first: Instant, written: int) -> int:
    """How many of the first ``written`` events of a fire are due by the new definition when they were by the old."""
    moved = (each for each in range(written) if due_of(old, first, each) != due_of(new, first, each))
    return next(moved, written)


def window_end(schedule: Schedule, first: Instant) -> Instant | None:
    """When the window ends that begins with the first event; None if all come at once, and none is ever too late."""
    spread = schedule.spread
    return first + spread.span if spread and spread.over else None


def last_chance(job: Job, schedule: Schedule) -> Instant | None:
    """When an event is dropped that has not been started; None if it is started all the same, late."""
    return job.window_end if schedule.spread and schedule.spread.overflow == "drop" else None


def overflow(job: Job, schedule: Schedule, now: Instant) -> str | None:
    """Why an event does not fit into its window, if it is dropped for that."""
    end = last_chance(job, schedule)
    if end is None or now < end:
        return None
    return f"it did not fit into its window, which ended at {iso(end)}: {job.reason or 'it was not checked in time'}"
