"""The leaves of a trigger: each names a kind of event to wait for.

A leaf gathers events (T7, T9, T10, T11, T12) or is told by the schedule's timer that its instant has come (T1, T13,
T18). `core/triggers/progress.py` says what a leaf has gathered, and whether it is enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, Tag, field_validator, model_validator

from chalicelib.core import instants, sizes
from chalicelib.core.documents import Document, Duration, Name, Reference, StoredReference, by_type
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Millis, duration
from chalicelib.core.time import windows
from chalicelib.core.time.windows import Day
from chalicelib.core.triggers import patterns
from chalicelib.core.triggers.time import TimeTrigger

Status = Literal["STARTED", "COMPLETED", "FAILED", "KILLED"]


MOST = 1_000_000  # events that one leaf may count


class PartitionTrigger(Document):
    """``count`` new partitions of a dataset, each counted once (T7). Those of a table are its snapshots (T21)."""

    type: Literal["partition", "snapshot"]
    dataset: Reference
    count: int = Field(default=1, ge=1, le=MOST)


class SizeTrigger(Document):
    """At least ``bytes`` of new objects in a dataset (``100GB``, or a number); an object counts once (T9)."""

    type: Literal["size"]
    dataset: Reference
    bytes: int

    @field_validator("bytes", mode="before", json_schema_input_type=int | str)
    @classmethod
    def _spelt(cls, given: Any) -> int:
        return sizes.parse_bytes(given, "")


class ProgramStatusTrigger(Document):
    """A workflow, of any app and namespace, reached one of ``statuses``, ``count`` times (T10). With ``schedule``, only
    runs that this schedule started count; with ``version``, only those claimed with that version of the workflow's
    definition."""

    type: Literal["program_status"]
    workflow: StoredReference
    schedule: StoredReference | None = None
    version: int | None = Field(default=None, ge=1)
    statuses: tuple[Status, ...] = Field(default=("COMPLETED",), min_length=1)
    count: int = Field(default=1, ge=1, le=MOST)

    @field_validator("statuses")
    @classmethod
    def _once_each(cls, statuses: tuple[Status, ...]) -> tuple[Status, ...]:
        return tuple(dict.fromkeys(statuses))


class EventTrigger(Document):
    """``count`` custom events of a type whose payload matches ``pattern`` (T11), posted to a namespace (its own)."""

    type: Literal["event"]
    event: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")
    namespace: Name | None = None
    pattern: dict[str, Any] | None = None
    count: int = Field(default=1, ge=1, le=MOST)

    @field_validator("pattern")
    @classmethod
    def _known_operators(cls, pattern: dict[str, Any] | None) -> dict[str, Any] | None:
        if pattern is not None:
            patterns.check_pattern(pattern, "")
        return pattern


GATHERING_TYPES = ("partition", "snapshot", "size", "program_status", "event")


GatheringLeaf = PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger


AnyGathering = Annotated[
    Annotated[PartitionTrigger, Tag("@partition")]
    | Annotated[PartitionTrigger, Tag("@snapshot")]
    | Annotated[SizeTrigger, Tag("@size")]
    | Annotated[ProgramStatusTrigger, Tag("@program_status")]
    | Annotated[EventTrigger, Tag("@event")],
    by_type(GATHERING_TYPES),
]


class QuietTrigger(Document):
    """What ``of`` waits for has come, and then nothing of it for ``after``: the chunks have all arrived (T12)."""

    type: Literal["quiet"]
    of: AnyGathering
    after: Duration

    @property
    def span(self) -> Millis:
        return duration(self.after)


class ElapsedTrigger(Document):
    """``after`` has passed since the workflow's last run started; since enabling, before the first (T13)."""

    type: Literal["elapsed"]
    after: Duration

    @property
    def span(self) -> Millis:
        return duration(self.after)


class AbsentTrigger(Document):
    """Nothing of ``of`` came ``within`` a span, or from one daily ``deadline`` (HH:MM) to the next (T18)."""

    type: Literal["absent"]
    of: AnyGathering
    within: Duration | None = None
    deadline: str | None = None
    zone: str | None = None
    days: tuple[Day, ...] = ()

    @model_validator(mode="after")
    def _one_of_both(self) -> AbsentTrigger:
        if (self.within is None) == (self.deadline is None):
            raise invalid("within", "either within (a span) or deadline (a time of day)", "both or neither")
        instants.zone(self.place)
        if self.deadline is not None:
            windows.parse_clock(self.deadline, "deadline")
        elif self.days:
            raise invalid("days", "days only with a deadline", list(self.days))
        return self

    @property
    def place(self) -> str:
        return self.zone or "UTC"


LeafTrigger = (
    TimeTrigger
    | PartitionTrigger
    | SizeTrigger
    | ProgramStatusTrigger
    | EventTrigger
    | QuietTrigger
    | ElapsedTrigger
    | AbsentTrigger
)


TimedLeaf = TimeTrigger | ElapsedTrigger | AbsentTrigger


def event_keys(leaf: LeafTrigger) -> tuple[str, ...]:
    """The keys under which the reverse index finds this leaf (T15). Timed leaves are found through their timer."""
    match leaf:
        case PartitionTrigger():
            return (partition_key(leaf.dataset),)
        case SizeTrigger():
            return (size_key(leaf.dataset),)
        case ProgramStatusTrigger():
            return tuple(status_key(leaf.workflow, status) for status in leaf.statuses)
        case EventTrigger():
            return (custom_key(leaf.namespace or "", leaf.event),)
        case QuietTrigger() | AbsentTrigger():
            return event_keys(leaf.of)
        case _:
            return ()


def partition_key(dataset: str) -> str:
    return f"partition:{dataset}"


def size_key(dataset: str) -> str:
    return f"size:{dataset}"


def status_key(workflow: str, status: str) -> str:
    return f"status:{workflow}:{status}"


def custom_key(namespace: str, event: str) -> str:
    return f"event:{namespace}:{event}"


def takes(leaf: LeafTrigger, payload: Mapping[str, Any] | None, schedule: str | None = None) -> bool:
    """Whether an event found under a leaf's key is meant by it: custom events are filtered by their payload, statuses
    by the ``schedule`` that started the run and the ``version`` of the workflow that it was claimed with."""
    source = leaf.of if isinstance(leaf, QuietTrigger | AbsentTrigger) else leaf
    if isinstance(source, EventTrigger) and source.pattern is not None:
        return patterns.matches(source.pattern, payload or {})
    if isinstance(source, ProgramStatusTrigger):
        version = (payload or {}).get("workflow_version")
        return source.schedule in (None, schedule) and source.version in (None, version)
    return True


def source_of(leaf: LeafTrigger) -> LeafTrigger:
    """The leaf that is waited for: what a quiet or absent leaf is about, any other itself."""
    return leaf.of if isinstance(leaf, QuietTrigger | AbsentTrigger) else leaf


def needed(leaf: LeafTrigger) -> int:
    """How many events a leaf wants."""
    return leaf.count if isinstance(leaf, PartitionTrigger | ProgramStatusTrigger | EventTrigger) else 1
