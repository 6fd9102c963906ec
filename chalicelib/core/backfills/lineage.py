"""The plan of a re-processing (L21): which schedules run again, for which partitions, and in which order.

The plan follows from the subscriptions alone. A schedule runs again if its trigger counts the event of the partition,
or a status of a run that runs again. Its correlation follows from the partition, as it did the first time. A plan may
also begin with a schedule itself: with one of its runs, or with its fires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from chalicelib.core import ids
from chalicelib.core.backfills.backfill import MAX_ENTRIES
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.gather import correlate
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.triggers.program_status import status_key

# One row can hold this many steps with their names, and a user can still read the plan.
MAX_STEPS = 100
# The statuses that a successful run announces. A schedule that waits for a failure alone is not downstream.
STATUSES = ("COMPLETED", "STARTED")

Values = tuple[tuple[str, str], ...]  # a partition: its keys with their values, in order
Unit = tuple[Values, str]  # what a run is for: a partition, or without one the instant of a fire (RFC 3339), or neither


@dataclass(frozen=True, slots=True)
class Source:
    """A workflow that runs when a schedule does: its own, or that of a node, if the schedule starts a DAG. ``who`` says
    in words what runs it, and ``version`` is the present one of its definition."""

    workflow: str
    schedule: str
    who: str
    version: int = 0


@dataclass(frozen=True, slots=True)
class Follower:
    """A schedule with its subscriptions to one event key, and the workflows that run when it does."""

    name: str
    schedule: Schedule
    rows: tuple[Subscription, ...]
    generation: int
    version: int
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """A schedule with which a plan begins, for these units. Its trigger is not evaluated. ``why`` is the reason."""

    follower: Follower
    units: tuple[Unit, ...]
    why: str


Graph = Mapping[str, Sequence[Follower]]  # the followers of each event key


@dataclass(frozen=True, slots=True)
class Step:
    """A schedule that runs again, once for each of ``entries``: the values of ``keys``, joined by ``/``, or the instant
    of a fire.

    ``after`` are the numbers of the steps that must have succeeded. ``upstream`` is the workflow whose status starts
    the schedule, and ``parent`` the number of the step that runs it; None for a first step. ``why`` says the reason in
    words. ``registered`` is false for a first step whose partition has not been registered.
    """

    schedule: str
    workflow: str
    generation: int
    version: int
    keys: tuple[str, ...]
    entries: tuple[str, ...]
    after: tuple[int, ...]
    upstream: str | None
    why: str
    parent: int | None = None
    registered: bool = True


@dataclass(frozen=True, slots=True)
class _StepKey:
    """A schedule, and the keys of the partitions for which it runs. It identifies a step that has no number yet."""

    schedule: str
    keys: tuple[str, ...]


@dataclass(slots=True)
class _Found:
    """The data of a future step: its partitions, and ``causes``, the steps whose runs start it."""

    follower: Follower
    upstream: str | None
    why: str
    units: dict[Unit, None]
    causes: dict[_StepKey, None]
    parent: _StepKey | None


def announced_keys(follower: Follower) -> tuple[str, ...]:
    """The event keys under which the runs of a schedule announce that they go well."""
    return tuple(status_key(source.workflow, status) for source in follower.sources for status in STATUSES)


def plan(
    graph: Graph,
    events: Sequence[Event],
    downstream: bool = True,
    upto: str | None = None,
    origin: Origin | None = None,
) -> tuple[Step, ...]:
    """The steps that run the schedules of these partition events again, or the ``origin``, each after all steps that
    start it.

    Without ``downstream`` the plan has only the schedules that count the events themselves. With ``upto`` it has only
    the steps of that workflow, and those that lead to them. Raises `SluiceError` (``invalid``) if the plan does not
    contain the workflow, and for a plan that is too large.
    """
    found = _walk(graph, events, origin, downstream)
    numbers = {place: number for number, place in enumerate(_in_order(found))}
    _check_size(found)
    steps = tuple(_step(place, found[place], numbers) for place in numbers)
    return steps if upto is None else _leading_to(steps, upto)


def _walk(graph: Graph, events: Sequence[Event], origin: Origin | None, downstream: bool) -> dict[_StepKey, _Found]:
    """Every place that an event or the origin reaches, with the places that lead to it."""
    found: dict[_StepKey, _Found] = {}
    open_ends: deque[tuple[_StepKey, Unit]] = deque()
    for event in events:
        why = f"counts partitions of {event.dataset}"
        open_ends += _reached(graph, event, "", None, why, found)
    if origin is not None:
        open_ends += _begun(origin, found)
    while open_ends and downstream:
        place, (partition, at) = open_ends.popleft()
        for source, status in product(found[place].follower.sources, STATUSES):
            event = status_event(source, status, dict(partition))
            why = f"counts {status} of {source.workflow}, which {source.who} runs"
            open_ends += _reached(graph, event, at, place, why, found)
    return found


def _begun(origin: Origin, found: dict[_StepKey, _Found]) -> Iterator[tuple[_StepKey, Unit]]:
    for unit in origin.units:
        place = _StepKey(origin.follower.name, tuple(key for key, _ in unit[0]))
        found.setdefault(place, _Found(origin.follower, None, origin.why, {}, {}, None)).units[unit] = None
        yield place, unit


def _reached(
    graph: Graph, event: Event, at: str, cause: _StepKey | None, why: str, found: dict[_StepKey, _Found]
) -> Iterator[tuple[_StepKey, Unit]]:
    """Note the schedules that count an event; ``at`` is the fire from which it follows. Yields each schedule and unit
    that is new."""
    for follower in graph.get(event.key, ()):
        if not gather.touched(follower.schedule, event, follower.rows)[0]:
            continue
        by = follower.schedule.by
        values = correlate(by, event) if by else dict(event.partition or {})
        if values is None:
            continue  # the event lacks a correlation key: it did not count the first time either
        unit = (tuple(values.items()), "" if values else at)
        place = _StepKey(follower.name, tuple(values))
        known = found.setdefault(place, _Found(follower, event.workflow, why, {}, {}, cause))
        if cause is not None:
            known.causes[cause] = None
        if unit not in known.units:
            known.units[unit] = None
            yield place, unit


def status_event(source: Source, status: str, partition: Mapping[str, str]) -> Event:
    """A status of a run of this workflow for a partition, as triggers count it."""
    return Event(
        id=ids.event_id("program_status", source.schedule, status),
        kind="program_status",
        key=status_key(source.workflow, status),
        instant=0,
        accepted_at=0,
        partition=partition or None,
        workflow=source.workflow,
        status=status,
        schedule=source.schedule,
        payload={"workflow_version": source.version} if source.version else None,
    )


def _in_order(found: Mapping[_StepKey, _Found]) -> list[_StepKey]:
    """The steps, each after those that start it. In a cycle, the link back to the step that was
    visited first is ignored."""
    ordered: list[_StepKey] = []
    seen: set[_StepKey] = set()

    def visit(start: _StepKey) -> None:
        seen.add(start)
        path = [(start, iter(found[start].causes))]
        while path:
            place, causes = path[-1]
            cause = next((each for each in causes if each not in seen), None)
            if cause is None:
                ordered.append(place)
                path.pop()
            else:
                seen.add(cause)
                path.append((cause, iter(found[cause].causes)))

    for place in found:
        if place not in seen:
            visit(place)
    return ordered


def _step(place: _StepKey, found: _Found, numbers: Mapping[_StepKey, int]) -> Step:
    own = numbers[place]
    return Step(
        schedule=place.schedule,
        workflow=found.follower.schedule.workflow,
        generation=found.follower.generation,
        version=found.follower.version,
        keys=place.keys,
        entries=tuple("/".join(value for _, value in partition) or at for partition, at in found.units),
        after=tuple(sorted(number for cause in found.causes if (number := numbers[cause]) < own)),
        upstream=found.upstream,
        why=found.why,
        parent=None if found.parent is None or numbers[found.parent] > own else numbers[found.parent],
    )


def _leading_to(steps: Sequence[Step], workflow: str) -> tuple[Step, ...]:
    wanted = {number for number, step in enumerate(steps) if step.workflow == workflow}
    if not wanted:
        known = ", ".join(dict.fromkeys(step.workflow for step in steps))
        raise invalid("upto", f"a workflow that would run again: {known}", workflow)
    for number in range(len(steps) - 1, -1, -1):
        if number in wanted:
            wanted.update(steps[number].after)
    kept = {number: place for place, number in enumerate(sorted(wanted))}
    chosen = [(steps[number], steps[number].parent) for number in kept]
    return tuple(
        replace(step, after=tuple(kept[cause] for cause in step.after), parent=None if parent is None else kept[parent])
        for step, parent in chosen
    )


def _check_size(found: Mapping[_StepKey, _Found]) -> None:
    if len(found) > MAX_STEPS:
        hint = "re-process a part with upto, then what follows that workflow"
        raise invalid("dataset", f"at most {MAX_STEPS} schedules in one re-processing", f"{len(found)} schedules", hint)
    most = max((len(each.units) for each in found.values()), default=0)
    if most > MAX_ENTRIES:
        raise invalid("partitions", f"at most {MAX_ENTRIES} runs of one schedule", f"{most} partitions")


def skipped_by(steps: Iterable[tuple[int, ...]], failed: set[int]) -> set[int]:
    """The numbers of the steps that cannot run, because a step that starts them has failed or is skipped."""
    lost = set(failed)
    for number, after in enumerate(steps):
        if lost.intersection(after):
            lost.add(number)
    return lost - failed
