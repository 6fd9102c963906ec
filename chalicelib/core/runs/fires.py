"""What has become of the events of a fire whose events are in bundles (`core/fires/bundles.py`).

An event is in its bundle, or it has left it. What became of one in a bundle follows from the rows of the bundle: the
job has those that wait, the run those that were sent, the record those that were dropped. One that has left has rows of
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from chalicelib.core.fires import bundles
from chalicelib.core.fires.bundles import Plan
from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Fire, Record, Run
from chalicelib.core.runs import sends
from chalicelib.core.states import is_terminal
from chalicelib.core.why import NONE, Why

EventState = Literal["WAITING", "SENT", "RETRYING", "FAILED", "DROPPED", "UNKNOWN"]
FireState = Literal["WAITING", "SENDING", "SENT", "FAILED", "DROPPED", "UNKNOWN"]

NOT_WRITTEN = Why.of("due_later", "it is prepared about two minutes before it is due")
NO_ROW = "no row says what became of it: it ran before an update, under another id, or its record has expired"
UNKNOWN = Why.of("end_unknown", NO_ROW)


class EventOfFire(NamedTuple):
    """One event, by its number from 0 on. ``row`` is its own job, run or record, if it has left its bundle."""

    number: int
    state: EventState
    reason: Why = NONE
    due: Instant | None = None
    row: Run | Job | Record | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """The rows of the ``count`` events from number ``first`` on that were written together.

    ``left`` are the numbers of those that may have rows of their own. ``own`` are these rows by number: the last
    attempt of a run, or a record, and in ``waits`` the job that waits for the first or for another try.
    """

    first: int
    count: int
    job: Job | None = None
    run: Run | None = None
    record: Record | None = None
    left: frozenset[int] = frozenset()
    own: Mapping[int, Run | Record] = field(default_factory=dict)
    waits: Mapping[int, Job] = field(default_factory=dict)

    @property
    def plan(self) -> Plan | None:
        """When its events are due; None if no row says so."""
        known = self.job.plan if self.job is not None else ()
        known = known or (self.run.plan if self.run is not None else ())
        return Plan(*known) if known else None


def left_of(row: Fire, bundle: Bundle) -> frozenset[int]:
    """The numbers of the events that have left a bundle, whose own ``left`` is not known. Once its job is gone, only
    its run names them, and only up to its last send; so they are those of which neither run nor record tells."""
    job, run, numbers = bundle.job, bundle.run, range(bundle.first, bundle.first + bundle.count)
    named = {*row.left, *(job.left if job is not None else ()), *(run.left if run is not None else ())}
    if job is None:
        sent = _sent(bundle)
        rest = [number for number in numbers if number not in sent and number not in named]
        named |= set(rest) if bundle.record is None or bundle.record.count < len(rest) else set()
    return frozenset(number for number in named if number in numbers)


def _sent(bundle: Bundle) -> set[int]:
    """The numbers of the events that were sent, and of those that left the bundle before one that was."""
    run, job = bundle.run, bundle.job
    found = {*run.ahead, *range(bundle.first, bundle.first + run.count)} if run is not None else set()
    return found | {*job.ahead} if job is not None else found


def events(bundle: Bundle, plan: Plan | None) -> Iterator[EventOfFire]:
    """The events of a bundle in the order of their numbers. ``plan`` is that of another bundle of the fire: it says
    when they are due if no row of this one does."""
    planned = bundle.plan or plan
    sent = _sent(bundle)
    removed: Record | None = None  # of several events, those from its number on
    for number in range(bundle.first, bundle.first + bundle.count):
        due = planned.due(number) if planned is not None else None
        if number in bundle.left:
            one = _own(bundle, number, due, removed)
            removed = one.row if isinstance(one.row, Record) and one.row.count > 1 else removed
            yield one
        elif number in sent:
            yield EventOfFire(number, "SENT", due=due)
        elif bundle.job is not None:
            yield EventOfFire(number, "WAITING", bundle.job.reason, due)
        elif bundle.record is not None:
            yield EventOfFire(number, "DROPPED", bundle.record.reason, due)
        else:
            yield EventOfFire(number, "UNKNOWN", UNKNOWN, due)


def _own(bundle: Bundle, number: int, due: Instant | None, removed: Record | None) -> EventOfFire:
    """An event that has left its bundle. One record stands for all events that an update has removed (``removed``)."""
    job, row = bundle.waits.get(number), bundle.own.get(number)
    if job is not None:
        again = job.tries > 0 or job.traits.redelivers
        return EventOfFire(number, "RETRYING" if again else "WAITING", job.reason, job.due_at, job)
    match row:
        case Run(state="SUCCEEDED"):
            return EventOfFire(number, "SENT", row.reason, row.due_at, row)
        case Run():
            return EventOfFire(number, "FAILED" if is_terminal(row.state) else "WAITING", row.reason, row.due_at, row)
        case Record():
            return EventOfFire(number, "DROPPED", row.reason, due, row)
    dropped = removed if removed is not None else bundle.record
    if dropped is not None:
        return EventOfFire(number, "DROPPED", dropped.reason, due)
    return EventOfFire(number, "UNKNOWN", UNKNOWN, due)


def written(row: Fire) -> list[tuple[int, int]]:
    """The number of the first event and the number of events of each bundle of a fire."""
    ends = (*row.starts[1:], row.written)
    return [(first, end - first) for first, end in zip(row.starts, ends, strict=True)]


def state_of(counts: Mapping[EventState, int]) -> FireState:
    """The state of a fire, from the number of its events in each state. Once none waits, it is that of its worst
    events."""
    waits = counts["WAITING"] + counts["RETRYING"]
    if waits:
        return "WAITING" if waits == sum(counts.values()) and not counts["RETRYING"] else "SENDING"
    worst: Sequence[FireState] = ("FAILED", "DROPPED", "SENT")
    return next((state for state in worst if counts[state]), "UNKNOWN")  # type: ignore[index]


def runs_of(run: Run) -> list[Run]:
    """The runs of the events for which the run of a bundle stands; any other run itself."""
    if run.sends is None:
        return [run]
    fire_id, first = bundles.fire_of_bundle(run.run_id), run.spread[0]
    numbers = (*range(first, first + run.count), *run.ahead)
    found = (bundles.run_of_event(run, fire_id, number) for number in numbers)
    return [each for each in found if each is not None]


def sends_of(found: Iterable[EventOfFire]) -> list[tuple[Instant, Instant]]:
    """The instants of the events that were sent with a run of their own, each with that of its send."""
    runs = [one.row for one in found if one.state == "SENT" and isinstance(one.row, Run)]
    return [(run.due_at, run.start_requested_at) for run in runs if run.due_at and run.start_requested_at]


def folded(runs: Sequence[Run]) -> list[Run]:
    """Runs with one in place of those of the bundles of a fire, where the first of them is. It has the id of that one,
    and stands for the events of all."""
    found: dict[str, Run] = {}
    for run in runs:
        fire_id = bundles.fire_of(run.run_id) if run.sends is not None else None
        key = fire_id or f"{run.run_id}#{run.attempt}"
        found[key] = _joined(found[key], run) if key in found else run
    return list(found.values())


def _joined(one: Run, other: Run) -> Run:
    """The run of two bundles of a fire."""
    return replace(
        one,
        spread=min(one.spread, other.spread),
        count=one.events + other.events,
        ahead=(),
        left=(),
        sends=sends.joined(one.sends or {}, other.sends or {}),
        created_at=min(one.created_at, other.created_at),
        due_at=min((at for at in (one.due_at, other.due_at) if at is not None), default=None),
        accepted_at=min((at for at in (one.accepted_at, other.accepted_at) if at is not None), default=None),
        ended_at=max((at for at in (one.ended_at, other.ended_at) if at is not None), default=None),
        late=one.late or other.late,
    )
