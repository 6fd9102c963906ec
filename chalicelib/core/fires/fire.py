"""What a fire is: its nominal instant, when its events are due, and how far they are prepared (E2, T6).

A fire is *nominal* at the instant that its trigger names. Its first event is *due* then or, with jitter, later; a
spread makes the others due after it. The emitter prepares an event as a job before it is due. At any instant a fire is

- *ahead*: its first event is not due yet. It is upcoming, and may be skipped.
- *unprepared*: its nominal instant has come, and some of its events are no jobs yet. They are due later, or an outage
  of the emitter delays them.
- *prepared*: all of its events are jobs, which have runs or records from then on.

A fire keeps the *shape* with which its first event was prepared: the number of its events, and their window. An update
that keeps the generation gives its ``spread`` to later fires (L6).

Previews, skips, catch-up, updates and repairs ask this module and `Series` which of these a fire is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.instants import MINUTE, Instant, Millis, iso
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.time import Recurrence, Series, rule_of
from chalicelib.core.why import Why

# An update is committed within this time of the instant that it divides the fires by, or never: `closings.SETTLED`.
COMMITTED: Millis = MINUTE
# What a timer prepared last lies ahead no longer than this.
PREPARED_FOR: Millis = 10 * MINUTE
MAX_COUNTED = 10_000  # unprepared fires that are counted one by one
# Windows that overlap: each is an entry of 30 bytes in the row of the timer, which each emission writes.
MAX_WINDOWS = 1_000


class Shape(NamedTuple):
    """How many events a fire has, and over how many ms they are due; 0: all at once, and none is too late."""

    events: int
    span: Millis


ONE = Shape(1, 0)


class Begun(NamedTuple):
    """A fire whose events are not all prepared, as a timer stores it: its nominal instant, when its first event was
    due, and how many events are prepared. ``resumed_at`` (0: never): the events from number ``resumed_from`` on were
    overdue then, and are planned anew from this instant on."""

    nominal: Instant
    first: Instant
    written: int
    resumed_at: Instant = 0
    resumed_from: int = 0

    @property
    def stored(self) -> tuple[int, ...]:
        """The numbers in the row of the timer."""
        return tuple(self) if self.resumed_at else tuple(self)[:3]


@dataclass(frozen=True, slots=True)
class Unprepared:
    """``events`` of ``fires`` fires are not prepared, although their nominal instants, from ``first`` to ``last``, have
    come. ``exact`` is False if there are more fires than `MAX_COUNTED`."""

    fires: int
    events: int
    first: Instant
    last: Instant
    exact: bool = True

    @property
    def text(self) -> str:
        """What is not prepared, in words: ``47 events of the fire of 2026-03-02T12:00:00.000Z``."""
        of = f"the fire of {iso(self.first)}"
        if self.fires > 1:
            of = f"{self.fires} fires from {iso(self.first)} to {iso(self.last)}"
        if self.events == self.fires:
            return of if self.exact else f"at least {of}"
        return f"{'' if self.exact else 'at least '}{self.events} event{'s' if self.events > 1 else ''} of {of}"


def series(timer: Timer, schedule: Schedule, leaf: str, rule: Recurrence) -> Series:
    """The series of fires of a time leaf."""
    return Series(rule, timer.anchor, schedule.ends_at, f"{timer.schedule}#{leaf}")


def all_series(timer: Timer, schedule: Schedule) -> Iterator[tuple[str, Series]]:
    """The series of each time leaf, by the leaf's id. Leaves that are evaluated when they are due have none."""
    for leaf in tree.timed_leaves(schedule.trigger):
        rule = rule_of(leaf.trigger)
        if rule is not None:
            yield leaf.id, series(timer, schedule, leaf.id, rule)


def begun(timer: Timer) -> list[Begun]:
    """The fires of a timer whose events are not all prepared."""
    return [Begun(*entry) for entry in timer.begun]


def shape(schedule: Schedule) -> Shape:
    """The shape of the fires that a schedule begins now."""
    return Shape(schedule.spread.count, schedule.spread.span) if schedule.spread else ONE


def shape_in(timer: Timer, schedule: Schedule, nominal: Instant) -> Shape:
    """The shape of a fire of a timer: that of the present ``schedule``, or of an earlier one which began the fire."""
    former = (Shape(events, span) for until, events, span in timer.shapes if nominal <= until)
    return next(former, shape(schedule))


def shape_of(job: Job, schedule: Schedule) -> Shape:
    """The shape of the fire of a job, or of a bundle. Older code did not store that of a job: then it is that of the
    present ``schedule``."""
    if own := job.own_shape:
        return Shape(*own)
    return shape(schedule) if job.index or job.window_end is not None else ONE


def due_of(shape: Shape, fire: Begun, index: int) -> Instant:
    """When the event ``index`` of a fire is due. Events are evenly spaced over the window, which begins with the first
    one. Those that were overdue when they were prepared are spaced over the rest of the window, but not at less than
    half of their distance; what does not fit comes after the window."""
    if not fire.resumed_at or index < fire.resumed_from:
        return fire.first + index * shape.span // shape.events
    left = shape.events - fire.resumed_from
    rest = max(fire.first + shape.span - fire.resumed_at, left * shape.span // (2 * shape.events))
    return fire.resumed_at + (index - fire.resumed_from) * rest // left


def longest_delay(schedule: Schedule) -> Millis:
    """How long after its nominal instant an event of a fire may be due, if no outage delays it."""
    jitters = (rule.jitter_millis for rule in tree.recurrences(schedule.trigger))
    return max(jitters, default=0) + (schedule.spread.span if schedule.spread else 0)


def check_windows(schedule: Schedule, now: Instant) -> None:
    """Raise ``invalid`` for a spread of which more than `MAX_WINDOWS` windows overlap: the timer keeps each of them.
    The fires after ``now`` are examined, at most twice as many."""
    spread = schedule.spread
    if spread is None or not spread.span:
        return
    for _, own in all_series(Timer("", 0, 0, now, {}), schedule):
        window: deque[Instant] = deque(maxlen=MAX_WINDOWS + 1)
        nominal = own.after(now)
        for _ in range(2 * MAX_WINDOWS):
            if nominal is None:
                break
            window.append(nominal)
            if len(window) > MAX_WINDOWS and window[-1] - window[0] < spread.span:
                hint = "write a shorter over, or let the trigger fire less often"
                expected = f"windows of which at most {MAX_WINDOWS} overlap"
                raise invalid("spread.over", expected, f"more, with {spread.over} for each fire", hint)
            nominal = own.after(nominal)


def first_ahead(own: Series, now: Instant) -> Instant | None:
    """The nominal instant of the first fire of a series that is due after ``now``. No fire is older than its timer."""
    return own.after(max(own.due_bound(now + 1) - 1, own.begins))


def is_ahead(timer: Timer, schedule: Schedule, nominal: Instant, now: Instant) -> bool:
    """Whether a fire at ``nominal`` will be due after ``now``."""
    for _, own in all_series(timer, schedule):
        first = first_ahead(own, now)
        if first is not None and first <= nominal and own.after(nominal - 1) == nominal:
            return True
    return False


def is_left(job: Job, schedule: Schedule, schedule_state: ScheduleState) -> bool:
    """Whether a fire is left of the time before a drain. The resume after it began the timer anew, so that no update
    has the fire prepared again: it is not ahead of the timer."""
    at = schedule_state.resumed.get(str(job.generation))
    if at is None or not job.traits.timed:
        return False
    own = (leaf.trigger for leaf in tree.timed_leaves(schedule.trigger) if leaf.id == job.leaf)
    return nominal_of(job) < at + (0 if any(leaf.is_due_at(at) for leaf in own) else 1)


def unprepared(timer: Timer, schedule: Schedule, now: Instant) -> Unprepared | None:
    """What is not prepared of the fires whose nominal instants have come by ``now``; None if everything is."""
    count = shape(schedule).events
    came = [one for one in begun(timer) if one.nominal <= now]
    rests = [(one.nominal, shape_in(timer, schedule, one.nominal).events - one.written) for one in came]
    rests = [each for each in rests if each[1] > 0]
    found = sorted(nominal for leaf, own in all_series(timer, schedule) for nominal in _passed(timer, leaf, own, now))
    rests = [*rests, *((nominal, count) for nominal in found[:MAX_COUNTED])]
    if not rests:
        return None
    nominals = [nominal for nominal, _ in rests]
    events, exact = sum(rest for _, rest in rests), len(found) <= MAX_COUNTED
    return Unprepared(len(rests), events, min(nominals), max(nominals), exact)


def beside(timer: Timer, prepared: Sequence[Job]) -> Timer:
    """The timer without the events that wait as jobs: an emitter has written these, and not moved the timer. Bundles
    are written in the transaction that moves it."""
    written: dict[Instant, int] = {}
    for job in prepared:
        if job.traits.timed and not job.is_bundle:
            written[nominal_of(job)] = max(job.index + 1, written.get(nominal_of(job), 0))
    left = [one._replace(written=max(one.written, written.get(one.nominal, 0))) for one in begun(timer)]
    return replace(timer, begun=tuple(one.stored for one in left))


def removed(timer: Timer, old: Schedule, new: Schedule, now: Instant, keeps_jobs: bool) -> Unprepared | None:
    """What is not prepared of begun fires, and never will be after an update: of a fire after the new end, and with
    ``keeps_jobs`` False of one that has come by ``now`` and has fewer events now. None if that is nothing."""
    rests = []
    for one in begun(timer):
        count, left = shape_in(timer, old, one.nominal).events, one.written
        if new.ends_at is None or one.nominal <= new.ends_at:
            left = count if keeps_jobs or one.nominal > now else max(one.written, shape(new).events)
        rests += [(one.nominal, count - left)] if left < count else []
    if not rests:
        return None
    nominals = [nominal for nominal, _ in rests]
    return Unprepared(len(rests), sum(rest for _, rest in rests), min(nominals), max(nominals))


def _passed(timer: Timer, leaf: str, own: Series, now: Instant) -> Iterator[Instant]:
    """The nominal instants by ``now`` of which nothing is prepared, at most `MAX_COUNTED` and one."""
    nominal, repeats = timer.next.get(leaf), own.rule.repeats
    most = MAX_COUNTED + 1 if repeats is None else min(MAX_COUNTED + 1, repeats - timer.fired.get(leaf, 0))
    while nominal is not None and nominal <= now and most > 0:
        yield nominal
        nominal, most = own.after(nominal), most - 1


def fire_event(job: Job, kind: Literal["time", "elapsed", "absent"] = "time") -> Event:
    """The event of a prepared fire. Its instant is the nominal one, and it is accepted at the due instant."""
    due = job.due_at if job.due_at is not None else job.created_at
    nominal = nominal_of(job)
    source = event_id(job.schedule, job.generation, job.leaf, nominal, job.index, kind)
    return Event(id=source, kind=kind, key=f"{kind}:{job.schedule}", instant=nominal, accepted_at=due)


def event_id(
    schedule: str, generation: int, leaf: str | None, nominal: Instant, index: int, kind: str = "time"
) -> str:  # fmt: skip
    """The id of the event of a fire."""
    which = (leaf, nominal, index) if index else (leaf, nominal)
    return ids.event_id(kind, schedule, generation, *which)


def event_of(job: Job) -> Event | None:
    """The event that starts a job: that of its instant for a fire, else the one that it carries."""
    return fire_event(job) if job.traits.timed else job.event


def nominal_of(job: Job) -> Instant:
    """The nominal instant of a fire."""
    due = job.due_at if job.due_at is not None else job.created_at
    return due if job.nominal_at is None else job.nominal_at


def fire_of(timer: Timer, leaf: str, nominal: Instant, due: Instant, index: int = 0) -> Job:
    """The job of a fire, as the emitter writes it."""
    job_id = ids.job_id(timer.schedule, timer.generation, f"fire:{nominal}:{leaf}:{index}")
    return Job(
        schedule=timer.schedule,
        generation=timer.generation,
        sort_key=sort_keys.fire(nominal, leaf, index),
        job_id=job_id,
        kind="fire",
        state="PENDING_CONSTRAINTS",
        created_at=due,
        due_at=due,
        nominal_at=None if nominal == due else nominal,
        index=index,
        accepted_at=due,
        leaf=leaf,
        wake_at=due,
    )


UNCHECKED = "it was not checked in time"


def window_end(shape: Shape, first: Instant) -> Instant | None:
    """The end of the window that begins with the first event; None if all events are due at once and none is too
    late."""
    return first + shape.span if shape.span else None


def after_hold(job: Job, schedule: Schedule, schedule_state: ScheduleState) -> Instant | None:
    """When an event is due again whose fire was held up by a pause; None if no pause held it up."""
    one = resumed(job, schedule, schedule_state)
    return due_of(shape_of(job, schedule), one, job.index) if one is not None else None


def resumed(job: Job, schedule: Schedule, schedule_state: ScheduleState) -> Begun | None:
    """The fire of an event after a pause held it up; None if no pause did.

    The first event that was due during the pause, and all that follow it, are planned anew from the resume on, as after
    an outage."""
    began, ended = schedule_state.held_from, schedule_state.mode_at
    if schedule_state.mode != "enabled" or began is None or job.window_end is None:
        return None
    own = shape_of(job, schedule)
    one = Begun(nominal_of(job), job.window_end - own.span, 0)
    held = next((index for index in range(job.index + 1) if due_of(own, one, index) > began), None)
    if held is None or due_of(own, one, held) >= ended:
        return None
    return one._replace(resumed_at=ended, resumed_from=held)


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
