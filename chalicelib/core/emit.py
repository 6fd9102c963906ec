"""The decision of the step *emit*: which fires of a timer are to be prepared now, and when it wants the next look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chalicelib.core import calendar, ids, triggers
from chalicelib.core.calendar import DAY, Instant, Millis, iso
from chalicelib.core.model import Schedule
from chalicelib.core.rows import HISTORY, Event, Gate, Job, Record, Timer
from chalicelib.core.triggers import TimeTrigger

# Fires older than this are skipped on record when the emitter comes back (T5: catch-up `all` within one day).
CATCH_UP_WINDOW: Millis = DAY
# How many fires of one timer are prepared in one go; the rest follows with the next look.
MOST_FIRES = 500
# How many skipped fires are counted one by one; beyond, the record says "at least".
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Emission:
    """The schedule events to write, the timer as it stands after them, and what was skipped."""

    fires: tuple[Job, ...]
    timer: Timer
    skipped: tuple[Record, ...]


def first_timer(schedule: Schedule, gate: Gate, now: Instant) -> Timer | None:
    """The timer of a schedule enabled at ``now``; None if its trigger has no time leaf. Enabling never catches up."""
    leaves = triggers.time_leaves(schedule.trigger)
    if not leaves:
        return None
    upcoming = {leaf.id: _next(leaf.trigger, now, now) for leaf in leaves}
    return Timer(
        schedule=gate.schedule,
        generation=gate.generation,
        version=gate.version,
        anchor=now,
        next=upcoming,
        wake_at=min(upcoming.values()),
    )


def emit(timer: Timer, schedule: Schedule, now: Instant, horizon: Instant) -> Emission:
    """All fires due before ``horizon``, bounded; a repeat after a crash computes the same ids."""
    fires: list[Job] = []
    skipped: list[Record] = []
    upcoming: dict[str, Instant] = {}
    for leaf in triggers.time_leaves(schedule.trigger):
        nominal = timer.next[leaf.id]
        oldest = now - CATCH_UP_WINDOW
        if nominal < oldest:
            first, missed = nominal, 0
            while nominal < oldest and missed < MOST_COUNTED:
                nominal, missed = _next(leaf.trigger, timer.anchor, nominal), missed + 1
            skipped.append(_skipped(timer, leaf.id, (first, oldest), missed, now))
            nominal = _next(leaf.trigger, timer.anchor, oldest - 1)
        while nominal < horizon and len(fires) < MOST_FIRES:
            fires.append(_fire(timer, leaf.id, nominal))
            nominal = _next(leaf.trigger, timer.anchor, nominal)
        upcoming[leaf.id] = nominal
    later = replace(timer, next=upcoming, rev=timer.rev + 1, wake_at=min(upcoming.values()))
    return Emission(tuple(fires), later, tuple(skipped))


def preview(
    schedule: Schedule, now: Instant, count: int, anchors: Mapping[str, Instant] | None = None
) -> list[Instant]:
    """The next ``count`` fire times of a schedule's time leaves."""
    fires: list[Instant] = []
    for leaf in triggers.time_leaves(schedule.trigger):
        instant = now
        for _ in range(count):
            instant = _next(leaf.trigger, (anchors or {}).get(leaf.id, now), instant)
            fires.append(instant)
    return sorted(fires)[:count]


def fire_event(job: Job) -> Event:
    """The event that a prepared fire is, once it is due. It is accepted at its nominal instant."""
    nominal = job.due_at or job.created_at
    source = ids.event_id("time", job.schedule, job.generation, job.leaf, nominal)
    return Event(id=source, kind="time", key=f"time:{job.schedule}", instant=nominal, accepted_at=nominal)


def _fire(timer: Timer, leaf: str, nominal: Instant, index: int = 0) -> Job:
    job_id = ids.job_id(timer.schedule, timer.generation, f"fire:{nominal}:{leaf}:{index}")
    return Job(
        schedule=timer.schedule,
        generation=timer.generation,
        place=f"FIRE#{iso(nominal)}#{leaf}#{index}",
        job_id=job_id,
        kind="fire",
        state="PENDING_CONSTRAINTS",
        created_at=nominal,
        due_at=nominal,
        accepted_at=nominal,
        leaf=leaf,
        wake_at=nominal,
    )


def _skipped(timer: Timer, leaf: str, span: tuple[Instant, Instant], missed: int, now: Instant) -> Record:
    first, until = span
    record_id = ids.job_id(timer.schedule, timer.generation, f"skipped:{leaf}:{first}:{timer.rev}")
    least = "at least " if missed == MOST_COUNTED else ""
    reason = f"{least}{missed} fires from {iso(first)} to {iso(until)} were missed by more than a day and are skipped"
    kept = now + HISTORY
    return Record(record_id, "SKIPPED", timer.schedule, timer.generation, reason, now, count=missed, expires_at=kept)


def _next(leaf: object, anchor: Instant, after: Instant) -> Instant:
    if not isinstance(leaf, TimeTrigger):
        raise TypeError(f"expected a time leaf, got {type(leaf).__name__}")
    return calendar.next_fire(leaf.expression, leaf.zone, anchor, after)
