"""The plan of a re-processing (L21): which schedules run again, for which partitions, and in which order.

The plan follows from the subscriptions. A schedule runs again if its trigger counts the event of the partition, a
status of a run that runs again, or the partition that such a run produces (L22). Its correlation follows from the
partition, as it did the first time. A plan may also begin with a schedule itself: with one of its runs, or with its
fires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chalicelib.core import ids
from chalicelib.core.backfills.backfill import MAX_ENTRIES, MAX_PARTS, unregistered
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.events.periods import period_of
from chalicelib.core.events.products import Product, partition_of, why_none
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather, of_period
from chalicelib.core.jobs.gather import correlate
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.parts import Parts
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.text import count_of
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.parts import MAX_JOBS, every, having, values_of
from chalicelib.core.triggers.program_status import status_key
from chalicelib.core.triggers.size import size_key

# One row can hold this many steps with their names, and a user can still read the plan.
MAX_STEPS = 100
# The statuses that a successful run announces. A schedule that waits for a failure alone is not downstream.
STATUSES = ("COMPLETED", "STARTED")

Values = tuple[tuple[str, str], ...]  # a partition: its keys with their values, in order
Unit = tuple[Values, str]  # what a run is for: a partition, or without one the instant of a fire (RFC 3339), or neither


@dataclass(frozen=True, slots=True)
class Source:
    """A workflow that runs when a schedule does: its own, or that of a node, if the schedule starts a DAG. ``who`` says
    in words what runs it, ``version`` is the present one of its definition, and ``produces`` are its datasets."""

    workflow: str
    schedule: str
    who: str
    version: int = 0
    produces: tuple[Product, ...] = ()


@dataclass(frozen=True, slots=True)
class Follower:
    """A schedule with its subscriptions to one event key, and the workflows that run when it does. ``datasets`` are
    those of its trigger, if it has one job for each period."""

    name: str
    schedule: Schedule
    rows: tuple[Subscription, ...]
    generation: int
    version: int
    sources: tuple[Source, ...]
    datasets: Mapping[str, Dataset] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Origin:
    """A schedule with which a plan begins, for these units. Its trigger is not evaluated. ``why`` is the reason."""

    follower: Follower
    units: tuple[Unit, ...]
    why: str


Graph = Mapping[str, Sequence[Follower]]  # the followers of each event key
Place = tuple[str, tuple[str, ...]]  # a partition: its dataset and its values
Known = Mapping[Place, bool]  # whether partitions are registered


@dataclass(frozen=True, slots=True)
class Step:
    """A schedule that runs again, once for each of ``entries``: the values of ``keys``, joined by ``/``, or the instant
    of a fire.

    ``after`` are the numbers of the steps that must have succeeded. ``upstream`` is the workflow whose status or whose
    data starts the schedule, and ``parent`` the number of the step that runs it; None for a first step. ``why`` says
    the reason in words. ``registered`` is false for a first step whose partition has not been registered. ``dataset``
    and ``base`` are the name and the address of the dataset whose partitions the entries are, if data starts it.
    ``periods``: the entries are periods of the schedule (T25).
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
    dataset: str = ""
    base: str = ""
    periods: bool = False


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """A schedule that counts data of a dataset, which a ``workflow`` of the plan produces (empty: the plan begins with
    this data), and ``why`` the plan does not run it."""

    schedule: str
    dataset: str
    workflow: str
    why: str


@dataclass(frozen=True, slots=True)
class Planned:
    """The steps of a plan, and what it leaves out. ``asked`` are the partitions of which the caller has to say whether
    they are registered, before the plan is complete."""

    steps: tuple[Step, ...]
    not_followed: tuple[NotFollowed, ...] = ()
    asked: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class _StepKey:
    """A schedule, and the keys of the partitions for which it runs. It identifies a step that has no number yet."""

    schedule: str
    keys: tuple[str, ...]


@dataclass(slots=True)
class _Found:
    """The data of a future step: its partitions, and ``causes``, the steps whose runs start it. Each unit has the event
    of a partition of ``product``, if one that a run produces has reached it."""

    follower: Follower
    upstream: str | None
    why: str
    units: dict[Unit, Event | None]
    causes: dict[_StepKey, None]
    parent: _StepKey | None
    product: Product | None = None


@dataclass(slots=True)
class _Whole:
    """A period: the parts of each leaf, and the partitions that have not come, with their leaves and numbers; or why
    its datasets do not determine them."""

    leaves: dict[str, Parts]
    missing: dict[Place, list[tuple[str, int]]]
    refused: str = ""


@dataclass(slots=True)
class _Data:
    """What a walk learns about the data that runs produce, and about the periods of schedules with ``per``. ``made``
    are the partitions that the runs of the plan register, ``incomplete`` the periods that do not run, by schedule."""

    known: Known
    now: Instant
    asked: dict[Place, None] = field(default_factory=dict)
    not_followed: dict[tuple[str, str, str], NotFollowed] = field(default_factory=dict)
    made: set[Place] = field(default_factory=set)
    wholes: dict[tuple[str, Values], _Whole] = field(default_factory=dict)
    incomplete: dict[str, dict[Values, NotFollowed]] = field(default_factory=dict)
    parts: int = 0

    def event(self, product: Product, values: Mapping[str, str]) -> Event | str:
        """The event of the partition that a run for these values produces, or why no step follows from it."""
        chosen, name = partition_of(product.dataset, values), product.name
        if product.dataset.format == "iceberg":
            return f"the snapshot that a run commits to {name} starts it by itself"
        if product.dataset.told_again_by == "objects":
            return f"a partition of {name} that is written again starts it by itself"
        if chosen is None:
            return why_none(name, product.dataset, values)
        if not product.registers and not self.known.get((name, chosen)):
            self.asked[name, chosen] = None
            return f"partition {'/'.join(chosen)} of {name} is not registered, and starts it by itself when it comes"
        if product.registers:
            self.made.add((name, chosen))
        return unregistered(name, product.dataset, chosen, 0)

    def leave_out(self, followers: Iterable[Follower], product: Product, source: Source, why: str) -> None:
        for each in followers:
            key = (each.name, product.name, source.workflow)
            self.not_followed.setdefault(key, NotFollowed(each.name, product.name, source.workflow, why))

    def leave_out_period(self, follower: Follower, cause: _Cause, unit: Values, why: str) -> None:
        """Leave out a period that its trigger would not start now."""
        left = NotFollowed(follower.name, cause.event.dataset or "", cause.workflow or "", why)
        self.incomplete.setdefault(follower.name, {})[unit] = left

    def why_not(self, follower: Follower, unit: Values) -> str:
        """Why a period does not run, by the partitions that are registered or that the plan registers; empty if its
        trigger would start it. Raises ``invalid`` for more than `MAX_PARTS`."""
        if of_period.follows_former(follower.schedule, follower.datasets):
            return "its values are those of the period before; run it by a backfill"
        whole = self.wholes.get((follower.name, unit))
        if whole is None:
            whole = self.wholes[follower.name, unit] = self._whole(follower, unit)
        if whole.refused:
            return whole.refused
        for place in [place for place in whole.missing if place in self.made]:
            for leaf, number in whole.missing.pop(place):
                whole.leaves[leaf] = having(whole.leaves[leaf], number)
        lacks = of_period.lacks(follower.schedule, whole.leaves, self.now)
        return f"lacks {lacks}" if lacks else ""

    def _whole(self, follower: Follower, unit: Values) -> _Whole:
        try:
            leaves = of_period.needed_by(follower.schedule, dict(unit), follower.datasets)[1]
        except SluiceError as refused:
            return _Whole({}, {}, refused.message)
        self.parts += sum(parts.need for parts in leaves.values())
        if self.parts > MAX_PARTS:
            hint = "re-process a part of the range, or with scope only"
            raise invalid("from", f"at most {MAX_PARTS:,} partitions of all periods", f"{self.parts:,} or more", hint)
        missing: dict[Place, list[tuple[str, int]]] = {}
        for leaf, parts in leaves.items():
            for part in every(parts):
                place = (parts.dataset, tuple(values_of(parts, part).values()))
                if self.known.get(place):
                    leaves[leaf] = having(leaves[leaf], part.number)
                else:
                    missing.setdefault(place, []).append((leaf, part.number))
                    self.asked[place] = None
        return _Whole(leaves, missing)

    def periods_left(self) -> Iterator[NotFollowed]:
        """The schedules of which the plan leaves out periods, with what the first of these lacks."""
        for of_schedule in filter(None, self.incomplete.values()):
            first, *others = of_schedule.values()
            more = f"; {count_of(len(others), 'more period')} cannot run either" if others else ""
            yield replace(first, why=f"{first.why}{more}")

    def leave_out_several(self, follower: Follower, cause: _Cause, why: str) -> None:
        """Leave out a schedule that has no run for each partition, as an entry of the plan is."""
        dataset, workflow = cause.event.dataset or "", cause.workflow or ""
        self.not_followed.setdefault(
            (follower.name, dataset, workflow), NotFollowed(follower.name, dataset, workflow, why)
        )


def announced_keys(follower: Follower) -> tuple[str, ...]:
    """The event keys under which the runs of a schedule announce that they go well, and those of the data that they
    produce."""
    statuses = tuple(status_key(source.workflow, status) for source in follower.sources for status in STATUSES)
    products = dict.fromkeys(product.name for source in follower.sources for product in source.produces)
    return (*statuses, *(key for name in products for key in (partition_key(name), size_key(name))))


def plan(
    graph: Graph,
    events: Sequence[Event],
    downstream: bool = True,
    upto: str | None = None,
    origin: Origin | None = None,
    known: Known | None = None,
    dataset: Dataset | None = None,
    now: Instant = 0,
) -> Planned:
    """The steps that run the schedules of these partition events again, or the ``origin``, each after all steps that
    start it. ``known`` says which of the partitions that runs produce, or that periods need, are registered.
    ``dataset`` is that of the events.

    A partition leads to each period to which it belongs, once (T25). A period that its trigger would not start at
    ``now`` is left out.

    Without ``downstream`` the plan has only the schedules that count the events themselves. With ``upto`` it has only
    the steps of that workflow, and those that lead to them. Raises `SluiceError` (``invalid``) if the plan does not
    contain the workflow, and for a plan that is too large.
    """
    data = _Data(known or {}, now)
    found = _Walk(graph, data, dataset).all(events, origin, downstream)
    numbers = {place: number for number, place in enumerate(_in_order(found))}
    _check_size(found)
    steps = tuple(_step(place, found[place], numbers) for place in numbers)
    kept = steps if upto is None or data.asked else _leading_to(steps, upto)
    ran = {step.schedule for step in kept}
    left = [each for each in data.not_followed.values() if each.schedule not in ran]
    return Planned(kept, (*left, *data.periods_left()) if upto is None else (), tuple(data.asked))


@dataclass(slots=True)
class _Walk:
    """Every place that an event or the origin reaches (``found``), with the places that lead to it."""

    graph: Graph
    data: _Data
    dataset: Dataset | None = None
    found: dict[_StepKey, _Found] = field(default_factory=dict)

    def all(self, events: Sequence[Event], origin: Origin | None, downstream: bool) -> dict[_StepKey, _Found]:
        open_ends: deque[tuple[_StepKey, Unit]] = deque()
        for event in events:
            why = f"counts partitions of {event.dataset}"
            open_ends += self._reached(_Cause(event, why), self.graph.get(event.key, ()))
        if origin is not None:
            open_ends += self._begun(origin)
        while open_ends and downstream:
            place, unit = open_ends.popleft()
            for source in self.found[place].follower.sources:
                open_ends += self._after(source, place, unit)
        return self.found

    def _begun(self, origin: Origin) -> Iterator[tuple[_StepKey, Unit]]:
        for unit in origin.units:
            place = _StepKey(origin.follower.name, tuple(key for key, _ in unit[0]))
            self.found.setdefault(place, _Found(origin.follower, None, origin.why, {}, {}, None)).units[unit] = None
            yield place, unit

    def _after(self, source: Source, place: _StepKey, unit: Unit) -> Iterator[tuple[_StepKey, Unit]]:
        """The schedules that count a status of a run for this unit, or the data that it produces. One that counts both
        runs once."""
        values, at = dict(unit[0]), unit[1]
        by_status: set[str] = set()
        for status in STATUSES:
            event = status_event(source, status, values)
            followers = self.graph.get(event.key, ())
            by_status |= {each.name for each in followers if self._values(each, event) is not None}
            why = f"counts {status} of {source.workflow}, which {source.who} runs"
            yield from self._reached(_Cause(event, why, source.workflow, place, at), followers)
        for product in source.produces:
            counting = [each for each in self.graph.get(partition_key(product.name), ()) if each.name not in by_status]
            event_or_why = self.data.event(product, values)
            if isinstance(event_or_why, Event):
                why = f"counts partitions of {product.name}, which {source.workflow} produces"
                cause = _Cause(event_or_why, why, source.workflow, place, product=product)
                yield from self._reached(cause, counting)
            else:
                counted = [each for each in counting if gather.touched(each.schedule, _any_of(product), each.rows)[0]]
                self.data.leave_out(counted, product, source, event_or_why)
            why = f"counts the bytes of {product.name}, and starts by itself when they come"
            by_size = self.graph.get(size_key(product.name), ())
            self.data.leave_out((each for each in by_size if each.name not in by_status), product, source, why)

    def _reached(self, cause: _Cause, followers: Iterable[Follower]) -> Iterator[tuple[_StepKey, Unit]]:
        """Note the schedules that count an event. Yields each schedule and unit that is new."""
        for follower in followers:
            unlisted = self._unlisted(follower, cause.event)
            if unlisted:
                self.data.leave_out_several(follower, cause, unlisted)
                continue
            if follower.schedule.per is not None:
                yield from self._periods(follower, cause)
                continue
            values, why = self._values(follower, cause.event), self._why_not(follower, cause.event)
            if why:
                self.data.leave_out_several(follower, cause, why)
            if why or values is None:
                continue
            unit = (tuple(values.items()), "" if values else cause.at)
            yield from self._noted(follower, cause, unit, cause.event if cause.product is not None else None)

    def _periods(self, follower: Follower, cause: _Cause) -> Iterator[tuple[_StepKey, Unit]]:
        """Note the periods of a schedule to which a partition belongs (T25)."""
        schedule, dataset = follower.schedule, cause.product.dataset if cause.product is not None else self.dataset
        part = period_of(dataset, cause.event.partition or {}) if dataset is not None else None
        if dataset is None or part is None:
            return
        leaves, _ = gather.touched(schedule, cause.event, follower.rows)
        joined = gather.joined(schedule, cause.event) if leaves else ()
        places = of_period.places_of(schedule, dataset, part, joined, leaves)
        if len(places) > MAX_JOBS:
            self.data.leave_out_period(follower, cause, (), of_period.TOO_MANY)
            return
        for place in places:
            unit = tuple(place.correlation.items())
            why = self.data.why_not(follower, unit)
            if why:
                self.data.leave_out_period(follower, cause, unit, f"does not run {place.period.label}: {why}")
            else:
                self.data.incomplete.get(follower.name, {}).pop(unit, None)
                yield from self._noted(follower, cause, (unit, ""), None)

    def _noted(
        self, follower: Follower, cause: _Cause, unit: Unit, event: Event | None
    ) -> Iterator[tuple[_StepKey, Unit]]:
        place = _StepKey(follower.name, tuple(key for key, _ in unit[0]))
        begun = _Found(follower, cause.workflow, cause.why, {}, {}, cause.place, cause.product)
        known = self.found.setdefault(place, begun)
        if cause.place is not None:
            known.causes[cause.place] = None
        is_new, before = unit not in known.units, known.units.get(unit)
        if is_new or before is not None:  # of the partitions that share the values, the last one counts
            known.units[unit] = event if cause.product is not None else before
        if is_new:
            yield place, unit

    def _values(self, follower: Follower, event: Event) -> dict[str, str] | None:
        """The values for which a schedule runs when it counts an event. None if it does not count it: by its trigger,
        or because the event lacks a correlation key. Then it did not count the first time either."""
        if not gather.touched(follower.schedule, event, follower.rows)[0]:
            return None
        by = follower.schedule.by
        return correlate(by, event) if by else dict(event.partition or {})

    def _unlisted(self, follower: Follower, event: Event) -> str:
        """Why a schedule never counts an event that its trigger would count; empty if it lists its values (T27)."""
        unlisted = gather.unlisted(follower.schedule, event)
        counts = unlisted is not None and gather.touched(follower.schedule, event, follower.rows)[0]
        return f"does not list {unlisted} in values" if counts else ""

    def _why_not(self, follower: Follower, event: Event) -> str:
        """Why a schedule that counts an event has no run for the partition of this event; empty if it has one."""
        schedule = follower.schedule
        joined = gather.joined(schedule, event) if gather.touched(schedule, event, follower.rows)[0] else ()
        if not any(job.mark for job in joined):
            return ""
        each = " and ".join(key for key in schedule.by if key not in (event.partition or {}))
        values = "/".join(f"{key}=VALUE" for key in schedule.by)
        return f"has one run for each {each}: start each by sluice run {follower.name} --partition {values}"


@dataclass(frozen=True, slots=True)
class _Cause:
    """An event that starts schedules, ``why``, and from which run it follows: of a ``workflow``, at a ``place`` of the
    plan, for the fire ``at``. ``product`` is that whose partition the event is."""

    event: Event
    why: str
    workflow: str | None = None
    place: _StepKey | None = None
    at: str = ""
    product: Product | None = None


def _any_of(product: Product) -> Event:
    """An event of any partition of a dataset."""
    return Event("", "partition", partition_key(product.name), 0, 0, dataset=product.name)


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
    step = Step(
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
        periods=found.follower.schedule.per is not None,
    )
    product, events = found.product, [event for event in found.units.values() if event is not None]
    if product is None or [event.dataset for event in events] != [product.name] * len(found.units):
        return step
    # The events of whole partitions start its runs, also if it runs once for the partitions of a month.
    dataset = product.dataset
    entries = tuple("/".join((event.partition or {}).values()) for event in events)
    base = f"s3://{dataset.bucket}/{dataset.prefix}"
    return replace(step, keys=dataset.keys, entries=entries, dataset=product.name, base=base)


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
