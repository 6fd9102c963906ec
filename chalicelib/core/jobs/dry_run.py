"""Dry run of a trigger: what it would make of given events, by the rules that gather them (L11). Nothing is stored.

Constraints are left out: they depend on what else runs at the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, Tag, field_validator

from chalicelib.core import ids, instants, sizes
from chalicelib.core.definitions.names import dataset_name, full_name
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.documents import Document, Name, Reference, by_type
from chalicelib.core.events import correlation as event_correlation
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather, timeout
from chalicelib.core.jobs.gather import Touch
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.triggers import occurrences, tree
from chalicelib.core.triggers.event import custom_key
from chalicelib.core.triggers.occurrences import Recurrence
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import Status, status_key
from chalicelib.core.triggers.size import size_key


class _Given(Document):
    """``at``: when it is accepted, RFC 3339; the moment of the request if left out."""

    at: str | None = None

    @field_validator("at")
    @classmethod
    def _is_an_instant(cls, at: str | None) -> str | None:
        if at is not None:
            instants.parse_instant(at, "")
        return at


class GivenTime(_Given):
    """An instant of the schedule's times, or that a span has elapsed, or a feed is absent."""

    type: Literal["time", "elapsed", "absent"]


class GivenPartition(_Given):
    type: Literal["partition", "snapshot"]
    dataset: Reference
    partition: dict[str, str] = Field(default_factory=dict)


class GivenSize(_Given):
    type: Literal["size"]
    dataset: Reference
    bytes: int
    partition: dict[str, str] = Field(default_factory=dict)

    @field_validator("bytes", mode="before", json_schema_input_type=int | str)
    @classmethod
    def _spelt(cls, given: Any) -> int:
        return sizes.parse_bytes(given, "")


class GivenStatus(_Given):
    type: Literal["program_status"]
    workflow: Reference
    status: Status = "COMPLETED"
    schedule: Reference | None = None
    version: int | None = Field(default=None, ge=1)
    partition: dict[str, str] = Field(default_factory=dict)


class GivenEvent(_Given):
    type: Literal["event"]
    event: str
    namespace: Name | None = None
    payload: dict[str, Any] = Field(default_factory=dict)


AnyGiven = Annotated[
    Annotated[GivenTime, Tag("@time")]
    | Annotated[GivenTime, Tag("@elapsed")]
    | Annotated[GivenTime, Tag("@absent")]
    | Annotated[GivenPartition, Tag("@partition")]
    | Annotated[GivenPartition, Tag("@snapshot")]
    | Annotated[GivenSize, Tag("@size")]
    | Annotated[GivenStatus, Tag("@program_status")]
    | Annotated[GivenEvent, Tag("@event")],
    by_type(("time", "elapsed", "absent", "partition", "snapshot", "size", "program_status", "event")),
]


@dataclass(frozen=True, slots=True)
class Step:
    """One event, and how the trigger stands after it. ``why`` is about the event if no leaf counts it."""

    at: Instant
    event: str
    touched: bool
    fires: bool
    verdict: tree.Verdict
    why: str


def dry_run(name: str, schedule: Schedule, given: Sequence[AnyGiven], now: Instant) -> tuple[list[Step], list[Job]]:
    """Play events, in the order of their instants, to an empty trigger. Returns the steps and the jobs left waiting.

    Time passes between events, and may complete a match by itself; after the last one it stands still.
    """
    waiting: dict[str, Job] = {}
    steps: list[Step] = []
    rows = list(_rows(name, schedule))
    for number, (at, event, words, timed) in enumerate(sorted(_events(name, given, now), key=lambda each: each[0])):
        found = [row for row in rows if row.event_key == event.key]
        steps += _let_time_pass(schedule, waiting, at)
        touched, against = gather.touched(schedule, event, found)
        touched = (*touched, *_timed(schedule, timed, at))
        steps.append(_play(schedule, waiting, event, words, (touched, against), f"{number}"))
    return steps, list(waiting.values())


def _play(
    schedule: Schedule,
    waiting: dict[str, Job],
    event: Event,
    words: str,
    leaves_met: tuple[tuple[str, ...], tuple[str, ...]],
    number: str,
) -> Step:
    touched, against = leaves_met
    at = event.accepted_at
    correlation = event_correlation.correlate(schedule.by, event) if schedule.by else None
    lost = bool(schedule.by) and correlation is None
    place = event_correlation.gathering_place(correlation)
    row = Subscription(event.key, "demo.dry.run", 0, 0, number, 0)
    job = waiting.get(place)
    over = job is not None and timeout.is_over(job, schedule, None, at)
    touches = [Touch(event, () if lost else touched)]
    gathered = gather.gather(job, touches, schedule, row, correlation, at, against, over)
    after = gathered.job if gathered.job is not None else None if gathered.dropped else job
    verdict = tree.evaluate(schedule.trigger, after.leaves if after else {}, at)
    fires = after is not None and verdict.met
    waiting.pop(place, None)
    if after is not None and not fires:
        waiting[place] = after
    if not touched and not against:
        return Step(at, words, False, fires, verdict, "no leaf of the trigger waits for it")
    if lost:
        why = f"it carries no value of every correlation key ({', '.join(schedule.by)})"
        return Step(at, words, False, fires, verdict, why)
    return Step(at, words, True, fires, verdict, verdict.why)


def _let_time_pass(schedule: Schedule, waiting: dict[str, Job], until: Instant) -> list[Step]:
    """The matches that time alone completes by ``until``: no other event came for long enough (T12)."""
    steps: list[Step] = []
    for place, job in list(waiting.items()):
        at = job.created_at
        verdict = tree.evaluate(schedule.trigger, job.leaves, at)
        while not verdict.met and verdict.turns_at is not None and verdict.turns_at <= until:
            at = verdict.turns_at
            verdict = tree.evaluate(schedule.trigger, job.leaves, at)
        if verdict.met and not gather.has_expired(job, schedule, at):
            steps.append(Step(at, "time passes", True, True, verdict, verdict.why))
            del waiting[place]
    return sorted(steps, key=lambda step: step.at)


def _rows(name: str, schedule: Schedule) -> Iterator[Subscription]:
    for leaf in tree.leaves(schedule.trigger):
        for key in leaf.trigger.event_keys():
            yield Subscription(key, name, 0, 0, leaf.id, 0)


def _timed(schedule: Schedule, kind: str | None, at: Instant) -> tuple[str, ...]:
    """The timed leaves that are meant: of a time only those that fire at this very instant."""
    meant = (
        (leaf.id, leaf.trigger.recurrence())
        for leaf in tree.timed_leaves(schedule.trigger)
        if leaf.trigger.type == kind
    )
    return tuple(leaf for leaf, rule in meant if rule is None or _fires(rule, at))


def _fires(rule: Recurrence, at: Instant) -> bool:
    """Whether a time may fire at an instant. An interval may at any: it counts from when its schedule is enabled."""
    return occurrences.counts_from_anchor(rule) or occurrences.is_occurrence(rule, 0, at)


def _events(name: str, given: Sequence[AnyGiven], now: Instant) -> Iterator[tuple[Instant, Event, str, str | None]]:
    namespace, app, _ = name.split(".")
    for number, each in enumerate(given):
        at = instants.parse_instant(each.at) if each.at else now
        made = _event(each, ids.event_id("rehearsed", number), namespace, app, at)
        yield at, made, _words(each), each.type if isinstance(each, GivenTime) else None


def _event(given: AnyGiven, event_id: str, namespace: str, app: str, at: Instant) -> Event:
    partition: Mapping[str, str] = getattr(given, "partition", {})
    match given:
        case GivenPartition():
            key = partition_key(dataset_name(given.dataset, namespace))
            return Event(event_id, "partition", key, at, at, partition)
        case GivenSize():
            key = size_key(dataset_name(given.dataset, namespace))
            return Event(event_id, "size", key, at, at, partition, size=given.bytes)
        case GivenStatus():
            key = status_key(full_name(given.workflow, namespace, app), given.status)
            started_by = full_name(given.schedule, namespace, app) if given.schedule is not None else None
            payload = {"workflow_version": given.version} if given.version is not None else None
            return Event(event_id, "program_status", key, at, at, partition, schedule=started_by, payload=payload)
        case GivenEvent():
            key = custom_key(given.namespace or namespace, given.event)
            return Event(event_id, "event", key, at, at, payload=given.payload)
        case _:
            return Event(event_id, given.type, f"{given.type}:{namespace}", at, at)


def _words(given: AnyGiven) -> str:
    match given:
        case GivenPartition():
            values = "/".join(f"{key}={value}" for key, value in given.partition.items())
            return f"{given.type} {values} of {given.dataset}" if values else f"{given.type} of {given.dataset}"
        case GivenSize():
            return f"{sizes.spell_bytes(given.bytes)} of {given.dataset}"
        case GivenStatus():
            return f"{given.workflow} reached {given.status}"
        case GivenEvent():
            return f"event {given.event}"
        case _:
            return given.type
