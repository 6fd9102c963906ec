"""Bundles: one row for many events of a fire, which differ in nothing but their number and their instant (E2).

A fire of 10,000 events that are due at one instant has these rows and ids:

    demo.flights.batch.m1n5.4b2f       the fire: a row `Fire`, which names its bundles
    demo.flights.batch.m1n5.4b2f-0_6y  a bundle: the events 0 to 249. First a `Job`, then a `Run` with the same id
    demo.flights.batch.m1n5.4b2f-7     an event, number 7: it has no row

The numbers in ids are written in base 36. Sluice sends the events of a bundle in the order of their numbers, each under
its own id and not before its own instant. An event that needs a decision of its own *leaves* the bundle: one that a
target refuses, one that is tried again, one that a user cancels. It becomes a job of its own, with its id.

The emitter writes the bundles of a fire in the transaction that moves the timer. So each event is in one bundle.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import fire
from chalicelib.core.fires.fire import Begun, Shape
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.run import Fire, Run
from chalicelib.core.rows.schedule import HISTORY, ScheduleState, Timer

# One invocation sends a bundle. So its events are due within a second, and are no more than it sends in a few seconds.
WINDOW: Millis = SECOND
LEAST, USUAL = 5, 250
BUNDLES = 60  # of a fire whose events are due at one instant, if they are more than `USUAL` each
LEAF = "0"  # of a spread: its trigger is one time
_EVENT = "-"  # between the id of a fire and the number of an event
_COUNT = "_"  # no digit of base 36; between the number of the first event of a bundle and the number of its events


class Plan(NamedTuple):
    """When the events of a bundle are due: evenly over ``rest`` ms from ``at`` on, ``left`` of them from number
    ``first`` on. ``events`` and ``span`` are the shape of the fire."""

    at: Instant
    first: int
    rest: Millis
    left: int
    events: int
    span: Millis

    def due(self, number: int) -> Instant:
        """When the event with this number is due."""
        return self.at + (number - self.first) * self.rest // self.left

    @property
    def shape(self) -> Shape:
        return Shape(self.events, self.span)


def plan_of(shape: Shape, one: Begun) -> Plan:
    """The plan of the events of a fire that are not written, as `fire.due_of` computes their instants."""
    if not one.resumed_at:
        return Plan(one.first, 0, shape.span, shape.events, *shape)
    left = shape.events - one.resumed_from
    rest = max(one.first + shape.span - one.resumed_at, left * shape.span // (2 * shape.events))
    return Plan(one.resumed_at, one.resumed_from, rest, left, *shape)


def size(shape: Shape) -> int:
    """How many events of a fire may be in one bundle; 1 if they are too few, or due too far apart."""
    most = max(USUAL, -(-shape.events // BUNDLES))
    if shape.span:
        most = min(most, shape.events * WINDOW // shape.span)
    return most if min(most, shape.events) >= LEAST else 1


# -- ids -----------------------------------------------------------------------------------------------------------


def fire_id(schedule: str, generation: int, nominal: Instant) -> str:
    return ids.job_id(schedule, generation, f"fire:{nominal}")


def fire_id_of(job: Job) -> str:
    """The id of the fire of an event or a bundle."""
    return fire_id(job.schedule, job.generation, fire.nominal_of(job))


def event_id(fire_id: str, number: int) -> str:
    """The id of the job, and of the run, of one event of a fire that has bundles."""
    return f"{fire_id}{_EVENT}{ids.base36(number)}"


def bundle_id(fire_id: str, first: int, count: int) -> str:
    return f"{event_id(fire_id, first)}{_COUNT}{ids.base36(count)}"


def is_bundle_id(job_id: str) -> bool:
    return _COUNT in job_id.rpartition(".")[2].partition(_EVENT)[2]


def number_of(job_id: str) -> tuple[str, int] | None:
    """The id of the fire and the number of an event; None for any other id."""
    fire_of, found, number = job_id.rpartition(_EVENT)
    if not found or not number or set(number) - set(ids.DIGITS):
        return None
    return fire_of, int(number, 36)


def place_of(job_id: str) -> tuple[str, int, int] | None:
    """The id of the fire, the number of the first event, and the number of events of a bundle; None for any other
    id."""
    if not is_bundle_id(job_id):
        return None
    fire_of, _, numbers = job_id.rpartition(_EVENT)
    first, _, count = numbers.partition(_COUNT)
    return fire_of, int(first, 36), int(count, 36)


def fire_of_bundle(bundle_id: str) -> str:
    return bundle_id.rpartition(_EVENT)[0]


def fire_of(work_id: str) -> str | None:
    """The id of the fire of a bundle, or of an event of a fire that has bundles; None for any other work."""
    return fire_of_bundle(work_id) if _EVENT in work_id.rpartition(".")[2] else None


# -- write ---------------------------------------------------------------------------------------------------------


def bundle_of(timer: Timer, one: Begun, shape: Shape) -> Job:
    """The next bundle of a fire, as the emitter writes it."""
    plan, first, most = plan_of(shape, one), one.written, size(shape)
    due = plan.due(first)
    within = range(first, min(shape.events, first + most))
    count = max(1, bisect_right(within, due + WINDOW, key=plan.due))
    job = fire.fire_of(timer, LEAF, one.nominal, due, first)
    return replace(
        job,
        job_id=bundle_id(fire_id(timer.schedule, timer.generation, one.nominal), first, count),
        sort_key=sort_keys.bundle(one.nominal, LEAF, first, count),
        nominal_at=one.nominal,
        count=count,
        plan=tuple(plan),
    )


def fire_row(timer: Timer, bundles: Sequence[Job], now: Instant) -> Fire:
    """The row of the fire of these bundles, which follow each other."""
    first = bundles[0]
    return Fire(
        id=fire_of_bundle(first.job_id),
        schedule=timer.schedule,
        generation=timer.generation,
        nominal_at=fire.nominal_of(first),
        starts=tuple(each.index for each in bundles),
        written=bundles[-1].index + bundles[-1].count,
        expires_at=now + HISTORY,
    )


def after(stored: Fire | None, more: Fire) -> Fire:
    """The row of a fire with ``more`` bundles than are ``stored``. A fire may be written again in its generation: after
    a drain that ended before it, or after a restore. Then its bundles replace those that were written before."""
    if stored is None:
        return more
    starts = tuple(start for start in stored.starts if start < more.starts[0])
    return replace(more, starts=(*starts, *more.starts), left=stored.left, rev=stored.rev + 1)


def without(bundle: Job, numbers: Iterable[int]) -> Job:
    """The bundle without events that left it, due when the first of its other events is."""
    own = {number for number in numbers if bundle.index <= number < bundle.index + bundle.count}
    return _settled(bundle, (), {*bundle.left, *own})


def alone(event: Job) -> Job:
    """An event that leaves its bundle: it also leaves the queue in which its bundle waits."""
    return replace(event, queued_in=None, rank=None, state="PENDING_CONSTRAINTS")


def ahead(event: Job, now: Instant) -> Job:
    """An event that leaves its bundle because this is divided. If it is not due yet, it is a prepared fire as the
    emitter writes one, so that an update prepares it again."""
    own = alone(event)
    if own.due_at is None or own.due_at <= now:
        return own
    return replace(own, sort_key=sort_keys.fire(fire.nominal_of(own), LEAF, own.index))


# -- read ----------------------------------------------------------------------------------------------------------


def due(bundle: Job, number: int) -> Instant:
    return Plan(*bundle.plan).due(number)


def numbers(bundle: Job) -> list[int]:
    """The numbers of the events that are neither settled nor have left, in their order."""
    gone = {*bundle.left, *bundle.ahead}
    return [number for number in range(bundle.index + bundle.done, bundle.index + bundle.count) if number not in gone]


def has(bundle: Job, event: Job) -> bool:
    """Whether an event is neither settled nor has left the bundle."""
    return event.index >= bundle.index + bundle.done and event.index not in (*bundle.left, *bundle.ahead)


def last_due(job: Job) -> Instant | None:
    """When the last event of a job is due."""
    return due(job, job.index + job.count - 1) if job.is_bundle else job.due_at


def event_of(bundle: Job, number: int) -> Job:
    """One event of a bundle as the job that it becomes if it leaves the bundle."""
    at = due(bundle, number)
    job_id = event_id(fire_of_bundle(bundle.job_id), number)
    nominal = fire.nominal_of(bundle)
    return replace(
        bundle,
        job_id=job_id,
        sort_key=sort_keys.detached(at, job_id),
        created_at=at,
        due_at=at,
        nominal_at=None if nominal == at else nominal,
        accepted_at=at,
        index=number,
        count=1,
        plan=(),
        shape=tuple(Plan(*bundle.plan).shape),
        done=0,
        ahead=(),
        left=(),
        wake_at=at,
        leases=0,
        rev=1,
    )


def events(bundle: Job) -> Iterator[Job]:
    """The events of a bundle that are neither settled nor have left it."""
    return (event_of(bundle, number) for number in numbers(bundle))


def settled(bundle: Job, sent: Collection[int], left: Collection[int] = ()) -> Job | None:
    """The bundle once the events with the numbers ``sent`` are settled, and those in ``left`` have left it. None if no
    event remains."""
    later = _settled(bundle, sent, {*bundle.left, *left})
    return later if later.waiting else None


def _settled(bundle: Job, sent: Collection[int], left: Collection[int]) -> Job:
    ahead = {*bundle.ahead, *sent}
    done = next_gap(bundle.index, bundle.done, {*ahead, *left})
    kept = tuple(sorted(number for number in ahead if number >= bundle.index + done))
    later = replace(
        bundle, done=done, ahead=kept, left=tuple(sorted(left)), rev=bundle.rev + 1, leases=0
    )  # fmt: skip
    rest = numbers(later)
    at = due(bundle, rest[0]) if rest else bundle.due_at
    # One that waits in a queue is woken by it.
    return replace(later, due_at=at, wake_at=at if bundle.queued_in is None else bundle.wake_at)


def next_gap(first: int, done: int, gone: Collection[int]) -> int:
    """How many events from number ``first`` on are over: at least ``done``, and then those that are ``gone``."""
    while first + done in gone:
        done += 1
    return done


def first_after(bundle: Job, now: Instant) -> Job | None:
    """The first event of a job that is due after ``now``; None if there is none."""
    if not bundle.is_bundle:
        return bundle if bundle.due_at is not None and bundle.due_at > now else None
    found = next((number for number in numbers(bundle) if due(bundle, number) > now), None)
    return event_of(bundle, found) if found is not None else None


def until(bundle: Job, instant: Instant, events: int) -> Job | None:
    """The part of a bundle that is due at the latest at an instant, or has a number of at least ``events``; None if
    there is none. Each other event counts as one that has left."""
    later = {number for number in numbers(bundle) if number < events and due(bundle, number) > instant}
    part = replace(bundle, left=tuple(sorted({*bundle.left, *later})))
    return part if numbers(part) else None


# -- in the queue of a policy --------------------------------------------------------------------------------------


def waiters(bundle: Job, waiter: Waiter, now: Instant) -> list[Waiter]:
    """The events of a queued bundle that are due, each as a waiter. Only the bundle has a row in the queue."""
    fire_id = fire_of_bundle(bundle.job_id)
    return [
        replace(
            waiter,
            job_sort_key=sort_keys.event(bundle.sort_key, number),
            job_id=event_id(fire_id, number),
        )
        for number in numbers(bundle)
        if due(bundle, number) <= now
    ]


def waiter_of(waiter: Waiter) -> tuple[Waiter, int] | None:
    """The waiter of the bundle of an event, and the number of the event; None for the waiter of a job."""
    found = sort_keys.event_in(waiter.job_sort_key)
    place = number_of(waiter.job_id)
    if found is None or place is None:
        return None
    key, number = found
    first = int(key.rpartition("#")[2].partition("+")[0])
    own = bundle_id(place[0], first, sort_keys.events_of(key))
    return replace(waiter, job_sort_key=key, job_id=own), number


def leased_as(bundle: Job, number: int) -> Job:
    """What a lease on one event of a queued bundle covers. All events of a fire have the leases of one instant."""
    return replace(event_of(bundle, number), due_at=begins_at(bundle))


# -- what an update or a pause changes -----------------------------------------------------------------------------


def begins_at(bundle: Job) -> Instant:
    """When the first event of the fire was due."""
    plan = Plan(*bundle.plan)
    return plan.at if bundle.window_end is None else bundle.window_end - plan.span


def planned_anew(bundle: Job, schedule: Schedule, schedule_state: ScheduleState) -> Job:
    """The bundle with the instants at which its events are due after a pause that held its fire up."""
    number = next(iter(numbers(bundle)), None)
    one = fire.resumed(event_of(bundle, number), schedule, schedule_state) if number is not None else None
    if number is None or one is None:
        return bundle
    plan = plan_of(Plan(*bundle.plan).shape, one)
    if tuple(plan) == bundle.plan:
        return bundle
    at = plan.due(number)
    wake_at = at if bundle.queued_in is None else bundle.wake_at
    return replace(bundle, plan=tuple(plan), due_at=at, wake_at=wake_at, rev=bundle.rev + 1, leases=0)


# -- one event of a run --------------------------------------------------------------------------------------------


def sent_in(run: Run) -> frozenset[int]:
    """The numbers of the events that the run of a bundle shows as sent."""
    first = run.spread[0]
    return frozenset(range(first, first + run.count)) - {*run.left} | {*run.ahead}


def run_of_event(run: Run, fire_id: str, number: int) -> Run | None:
    """The run of one event out of the run of its bundle; None if the bundle has not sent it."""
    first, events = run.spread
    if number not in run.ahead and (not first <= number < first + run.count or number in run.left):
        return None
    own, event = event_id(fire_id, number), run.event
    at = Plan(*run.plan).due(number) if run.plan else run.due_at
    if event is not None:
        known = fire.event_id(run.schedule, run.generation, LEAF, event.instant, number)
        event = replace(event, id=known, accepted_at=event.accepted_at if at is None else at)
    one = replace(run, run_id=own, spread=(number, events), count=1, ahead=(), left=(), sends=None, event=event)
    return one if at is None else replace(one, created_at=at, due_at=at, accepted_at=at)


def sort_key(fire_row: Fire, first: int, count: int) -> str:
    """The sort key of a bundle of a fire."""
    return sort_keys.bundle(fire_row.nominal_at, LEAF, first, count)


def left_by(fire_row: Fire, number: int) -> Fire:
    """The row of a fire after an event has left its bundle before it was due."""
    return replace(fire_row, left=tuple(sorted({*fire_row.left, number})), rev=fire_row.rev + 1)


def holds(fire_row: Fire, number: int) -> tuple[int, int] | None:
    """The number of the first event and the number of events of the bundle that an event was written in."""
    at = bisect_right(fire_row.starts, number) - 1
    if at < 0 or number >= fire_row.written:
        return None
    end = fire_row.starts[at + 1] if at + 1 < len(fire_row.starts) else fire_row.written
    return fire_row.starts[at], end - fire_row.starts[at]
