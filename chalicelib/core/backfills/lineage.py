"""The plan of a re-processing (L21): which schedules run again, for which partitions, and in which order.

The plan depends on the subscriptions alone. A schedule runs again if its trigger counts the event of the partition, or
a status of a run that runs again. Sluice derives its correlation from the partition, as for the first run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chalicelib.core import ids
from chalicelib.core.backfills.backfill import MAX_ENTRIES
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.events.correlation import correlate
from chalicelib.core.jobs import gather
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.triggers.program_status import status_key

# One row can hold this many steps with their names, and a user can still read the plan.
MAX_STEPS = 100
# The statuses that a successful run announces. A schedule that waits for a failure alone is not downstream.
STATUSES = ("COMPLETED", "STARTED")

Values = tuple[tuple[str, str], ...]  # a partition: its keys with their values, in order


@dataclass(frozen=True, slots=True)
class Follower:
    """A schedule with its subscriptions to one event key, and the present version of its workflow's definition."""

    name: str
    schedule: Schedule
    rows: tuple[Subscription, ...]
    workflow_version: int = 0

    @property
    def generation(self) -> int:
        return self.rows[0].generation

    @property
    def version(self) -> int:
        return self.rows[0].version


Graph = Mapping[str, Sequence[Follower]]  # the followers of each event key


@dataclass(frozen=True, slots=True)
class Step:
    """A schedule that runs again, once for each of ``entries``: the values of ``keys``, joined by ``/``.

    ``after`` are the numbers of the steps that must have succeeded before. ``upstream`` is the workflow whose status
    starts the schedule; None for a schedule that counts the partition itself. ``why`` is the reason, for users.
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


@dataclass(frozen=True, slots=True)
class _Place:
    """A schedule, and the keys of the partitions for which it runs. It identifies a step that has no number yet."""

    schedule: str
    keys: tuple[str, ...]


@dataclass(slots=True)
class _Found:
    """The data of a future step: its partitions, and ``causes``, the steps whose runs start it."""

    follower: Follower
    upstream: str | None
    why: str
    partitions: dict[Values, None]
    causes: dict[_Place, None]


def announced_keys(schedule: Schedule) -> tuple[str, ...]:
    """The event keys of the statuses that successful runs of a schedule announce."""
    return tuple(status_key(schedule.workflow, status) for status in STATUSES)


def plan(graph: Graph, events: Sequence[Event], downstream: bool = True, upto: str | None = None) -> tuple[Step, ...]:
    """The steps that run the schedules of these partition events again, each after all steps that start it.

    Without ``downstream`` the plan has only the schedules that count the events themselves. With ``upto`` it has only
    the steps of that workflow, and those that lead to them. Raises `SluiceError` (``invalid``) if the plan does not
    contain the workflow, and for a plan that is too large.
    """
    found = _walk(graph, events, downstream)
    numbers = {place: number for number, place in enumerate(_in_order(found))}
    _check_size(found)
    steps = tuple(_step(place, found[place], numbers) for place in numbers)
    return steps if upto is None else _leading_to(steps, upto)


def _walk(graph: Graph, events: Sequence[Event], downstream: bool) -> dict[_Place, _Found]:
    """All steps that the events reach, each with the steps that start it."""
    found: dict[_Place, _Found] = {}
    open_ends: list[tuple[_Place, Values]] = []
    for event in events:
        why = f"counts partitions of {event.dataset}"
        open_ends += _reached(graph, event, None, None, why, found)
    while open_ends and downstream:
        place, partition = open_ends.pop(0)
        own = found[place].follower
        for status in STATUSES:
            event = status_event(own, status, dict(partition))
            why = f"counts {status} of {own.schedule.workflow}, which {own.name} runs"
            open_ends += _reached(graph, event, place, own.schedule.workflow, why, found)
    return found


def _reached(
    graph: Graph, event: Event, cause: _Place | None, upstream: str | None, why: str, found: dict[_Place, _Found]
) -> Iterator[tuple[_Place, Values]]:
    """Add the schedules that count an event to ``found``. Yields each new pair of a schedule and a partition."""
    for follower in graph.get(event.key, ()):
        if not gather.touched(follower.schedule, event, follower.rows)[0]:
            continue
        by = follower.schedule.by
        values = correlate(by, event) if by else dict(event.partition or {})
        if values is None:
            continue  # the event lacks a correlation key: it did not count the first time either
        partition = tuple(values.items())
        place = _Place(follower.name, tuple(values))
        known = found.setdefault(place, _Found(follower, upstream, why, {}, {}))
        if cause is not None:
            known.causes[cause] = None
        if partition not in known.partitions:
            known.partitions[partition] = None
            yield place, partition


def status_event(follower: Follower, status: str, partition: Mapping[str, str]) -> Event:
    """The event of a status that a run of this schedule for a partition announces, as triggers count it."""
    return Event(
        id=ids.event_id("program_status", follower.name, status),
        kind="program_status",
        key=status_key(follower.schedule.workflow, status),
        instant=0,
        accepted_at=0,
        partition=partition or None,
        workflow=follower.schedule.workflow,
        status=status,
        schedule=follower.name,
        payload={"workflow_version": follower.workflow_version} if follower.workflow_version else None,
    )


def _in_order(found: Mapping[_Place, _Found]) -> list[_Place]:
    """The steps, each after those that start it. In a cycle, the link back to the step that was
    visited first is ignored."""
    ordered: list[_Place] = []
    seen: set[_Place] = set()

    def visit(start: _Place) -> None:
        seen.add(start)
        road = [(start, iter(found[start].causes))]
        while road:
            place, causes = road[-1]
            cause = next((each for each in causes if each not in seen), None)
            if cause is None:
                ordered.append(place)
                road.pop()
            else:
                seen.add(cause)
                road.append((cause, iter(found[cause].causes)))

    for place in found:
        if place not in seen:
            visit(place)
    return ordered


def _step(place: _Place, found: _Found, numbers: Mapping[_Place, int]) -> Step:
    own = numbers[place]
    return Step(
        schedule=place.schedule,
        workflow=found.follower.schedule.workflow,
        generation=found.follower.generation,
        version=found.follower.version,
        keys=place.keys,
        entries=tuple("/".join(value for _, value in partition) for partition in found.partitions),
        after=tuple(sorted(number for cause in found.causes if (number := numbers[cause]) < own)),
        upstream=found.upstream,
        why=found.why,
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
    return tuple(replace(steps[number], after=tuple(kept[cause] for cause in steps[number].after)) for number in kept)


def _check_size(found: Mapping[_Place, _Found]) -> None:
    if len(found) > MAX_STEPS:
        hint = "re-process a part with upto, then what follows that workflow"
        raise invalid("dataset", f"at most {MAX_STEPS} schedules in one re-processing", f"{len(found)} schedules", hint)
    most = max((len(each.partitions) for each in found.values()), default=0)
    if most > MAX_ENTRIES:
        raise invalid("partitions", f"at most {MAX_ENTRIES} runs of one schedule", f"{most} partitions")


def skipped_by(steps: Iterable[tuple[int, ...]], failed: set[int]) -> set[int]:
    """The numbers of the steps that cannot run, because a step that starts them has failed or is skipped."""
    lost = set(failed)
    for number, after in enumerate(steps):
        if lost.intersection(after):
            lost.add(number)
    return lost - failed
