"""The decision of the step *emit*: which fires of a timer are to be prepared now, and when it wants the next look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.core import ids, occurrences, triggers, windows
from chalicelib.core.calendar import DAY, Instant, Millis, duration, iso
from chalicelib.core.leaves import AbsentTrigger, ElapsedTrigger, LeafTrigger, TimedLeaf, TimeTrigger
from chalicelib.core.model import Schedule
from chalicelib.core.rows import HISTORY, Event, Gate, Job, Record, Timer

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
    """The timer of a schedule that begins to gather at ``now``; None if its trigger has no timed leaf. Enabling never
    catches up; of an elapsed leaf only a run that started since counts (T13)."""
    upcoming = {}
    for leaf in triggers.timed_leaves(schedule.trigger):
        nominal = _next(timed(leaf.trigger), now, now)
        if nominal is not None:
            upcoming[leaf.id] = nominal
    if not upcoming:
        return None
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
    for leaf in triggers.timed_leaves(schedule.trigger):
        nominal, rule = timer.next.get(leaf.id), timed(leaf.trigger)
        oldest = now - CATCH_UP_WINDOW
        if nominal is not None and nominal < oldest and isinstance(rule, TimeTrigger):
            record, nominal = _skip(timer, leaf.id, rule, nominal, now)
            skipped.append(record)
        while nominal is not None and nominal < horizon and len(fires) < MOST_FIRES:
            fires.append(_fire(timer, leaf.id, nominal))
            if not isinstance(rule, TimeTrigger):
                # What is decided anew when due is prepared once: after an outage the past cannot be decided, and
                # before this one is due the next is not known.
                nominal = _next(rule, timer.anchor, max(nominal, now))
                break
            nominal = _next(rule, timer.anchor, nominal)
        if nominal is not None:
            upcoming[leaf.id] = nominal
    later = replace(timer, next=upcoming, rev=timer.rev + 1, wake_at=min(upcoming.values(), default=None))
    return Emission(tuple(fires), later, tuple(skipped))


def rearm(timer: Timer, leaf: str, at: Instant) -> Timer:
    """The timer with another instant for a leaf: what it waits for moved (T12, T13, T18)."""
    upcoming = {**timer.next, leaf: at}
    return replace(timer, next=upcoming, rev=timer.rev + 1, wake_at=min(upcoming.values()))


def moved_to(leaf: TimedLeaf, since: Instant, happened: Instant | None, due: Instant) -> Instant | None:
    """An elapsed or absent leaf is decided anew when it is due. The instant to which it moved because of what happened
    meanwhile (the last start, the last event of the feed); None if it holds."""
    base = max(since, happened) if happened is not None else since
    if isinstance(leaf, TimeTrigger):
        return None
    if isinstance(leaf, AbsentTrigger) and leaf.within is None:
        began = _previous_deadline(leaf, due)
        came = happened is not None and began < happened and since <= happened
        return _next(leaf, since, due) if came else None
    span = leaf.span if isinstance(leaf, ElapsedTrigger) else duration(leaf.within or "")
    return base + span if base + span > due else None


def _previous_deadline(leaf: AbsentTrigger, due: Instant) -> Instant:
    """The deadline before this one: what came between the two is what was expected."""
    back = due - 8 * DAY
    while (following := _next(leaf, back, back)) is not None and following < due:
        back = following
    return back


def preview(
    schedule: Schedule, now: Instant, count: int, anchors: Mapping[str, Instant] | None = None
) -> list[Instant]:
    """The next ``count`` instants at which a schedule's timed leaves are due, as things stand. ``anchors`` is where
    each of them counts from, now if it is not there."""
    fires: list[Instant] = []
    for leaf in triggers.timed_leaves(schedule.trigger):
        anchor, instant = (anchors or {}).get(leaf.id, now), now
        for _ in range(count):
            following = _foreseen(timed(leaf.trigger), anchor, instant)
            if following is None:
                break
            fires.append(instant := following)
    return sorted(fires)[:count]


def anchors_of(timer: Timer, schedule: Schedule) -> dict[str, Instant]:
    """Where each timed leaf counts from: a span from the look before its next one, all else from the timer's anchor,
    for a leaf whose repeats are used up has its anchor too."""
    spans = {leaf.id: _span(timed(leaf.trigger)) for leaf in triggers.timed_leaves(schedule.trigger)}
    return {
        leaf: timer.anchor if span is None else timer.next.get(leaf, timer.anchor + span) - span
        for leaf, span in spans.items()
    }


def _foreseen(leaf: TimedLeaf, anchor: Instant, after: Instant) -> Instant | None:
    """When a leaf is due next if nothing happens that moves it."""
    span = _span(leaf)
    return _next(leaf, anchor, after) if span is None else anchor + ((after - anchor) // span + 1) * span


def _span(leaf: TimedLeaf) -> Millis | None:
    """The span that a leaf measures; None if it goes by the clock."""
    if isinstance(leaf, ElapsedTrigger):
        return leaf.span
    return duration(leaf.within) if isinstance(leaf, AbsentTrigger) and leaf.within is not None else None


def fire_event(job: Job, kind: Literal["time", "elapsed", "absent"] = "time") -> Event:
    """The event that a prepared fire is, once it is due. It is accepted at its nominal instant."""
    nominal = job.due_at or job.created_at
    source = ids.event_id(kind, job.schedule, job.generation, job.leaf, nominal)
    return Event(id=source, kind=kind, key=f"{kind}:{job.schedule}", instant=nominal, accepted_at=nominal)


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


def _skip(timer: Timer, leaf: str, rule: TimeTrigger, nominal: Instant, now: Instant) -> tuple[Record, Instant | None]:
    """Count the fires that are too old to be caught up on; the record of them, and the first one that is not."""
    oldest, missed = now - CATCH_UP_WINDOW, 0
    upcoming: Instant | None = nominal
    while upcoming is not None and upcoming < oldest and missed < MOST_COUNTED:
        upcoming, missed = _next(rule, timer.anchor, upcoming), missed + 1
    record = _skipped(timer, leaf, (nominal, oldest), missed, now)
    return record, _next(rule, timer.anchor, oldest - 1)


def _skipped(timer: Timer, leaf: str, span: tuple[Instant, Instant], missed: int, now: Instant) -> Record:
    first, until = span
    record_id = ids.job_id(timer.schedule, timer.generation, f"skipped:{leaf}:{first}:{timer.rev}")
    least = "at least " if missed == MOST_COUNTED else ""
    reason = f"{least}{missed} fires from {iso(first)} to {iso(until)} were missed by more than a day and are skipped"
    kept = now + HISTORY
    return Record(record_id, "SKIPPED", timer.schedule, timer.generation, reason, now, count=missed, expires_at=kept)


def timed(leaf: LeafTrigger) -> TimedLeaf:
    """The leaf as one that a timer tells."""
    if not isinstance(leaf, TimeTrigger | ElapsedTrigger | AbsentTrigger):
        raise TypeError(f"expected a timed leaf, got {type(leaf).__name__}")
    return leaf


def _next(leaf: TimedLeaf, anchor: Instant, after: Instant) -> Instant | None:
    """When a leaf is due next, strictly after ``after``; None if never again."""
    match leaf:
        case TimeTrigger():
            return occurrences.next_due(leaf, anchor, after)
        case ElapsedTrigger():
            return after + leaf.span
        case AbsentTrigger() if leaf.deadline is not None:
            return windows.next_clock(leaf.deadline, leaf.place, leaf.days, after)
        case _:
            return after + duration(leaf.within or "")
