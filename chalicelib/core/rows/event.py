"""The rows of events. Each is an outbox until its event is applied to all schedules of its key; an `AppliedEvent` marks
each generation to which it was applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chalicelib.core.instants import DAY, Instant, Millis
from chalicelib.core.rows.stored import StoredRow

# How long a custom event is kept after it was applied, as long as an `AppliedEvent`. During this time its id counts
# once.
POSTED_LIFE: Millis = 45 * DAY
# How long the applied events of a job outlive its claim, at least.
CLAIMED_LIFE: Millis = 15 * DAY


@dataclass(frozen=True, slots=True)
class Event(StoredRow):
    """A fact that may meet triggers. ``accepted_at`` is when Sluice accepted it: a leaf counts the event if it gathers
    since then or earlier.

    ``kind`` is a type of the leaves that count it, or ``run_now``. A reader keeps a kind that it does not know. ``by``
    is the ARN of the signer who posted the event, or who requested the run that it is about."""

    id: str
    kind: str
    key: str
    instant: Instant
    accepted_at: Instant
    partition: Mapping[str, str] | None = None
    dataset: str | None = None
    path: str | None = None
    workflow: str | None = None
    run_id: str | None = None
    status: str | None = None
    schedule: str | None = None
    size: int | None = None
    payload: Mapping[str, Any] | None = None
    by: str | None = None

    @property
    def own_id(self) -> str:
        """The id without the name that a mark has behind it, if the event belongs to several jobs of a schedule."""
        return self.id.partition("@")[0]


@dataclass(frozen=True, slots=True)
class Partition(StoredRow):
    """The row that registers a partition, and the outbox of its event until that is applied to all schedules.

    ``put_at``, ``put_etag`` and ``sequencer`` are those of the version of the flag or manifest that made it ready; the
    instant of the event in place of ``put_at`` if that is None. ``replayed``: a run has registered it whose
    re-processing starts what follows, so its event starts nothing (L22)."""

    dataset: str
    values: tuple[str, ...]
    event: Event
    object_key: str
    replayed: bool = False
    cursor: str | None = None
    leases: int = 0
    put_at: Instant | None = None
    put_etag: str | None = None
    sequencer: str | None = None
    wake_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class NewestPartition(StoredRow):
    """The partition of a dataset that came last, and when: the instant of its event, or that at which Sluice accepted
    it if a clock that is ahead made the former later (C18)."""

    dataset: str
    partition: Mapping[str, str]
    at: Instant


def newest_by(event: Event) -> NewestPartition | None:
    """What an event says about the newest partition of its dataset; None if it is of no partition."""
    if event.kind != "partition" or event.dataset is None:
        return None
    return NewestPartition(event.dataset, dict(event.partition or {}), min(event.instant, event.accepted_at))


@dataclass(frozen=True, slots=True)
class CountedObject(StoredRow):
    """An object that was counted for size leaves, and the outbox of its event. ``etag`` is set if overwrites count.

    Also a version of a flag or manifest by which a partition was written again: ``etag`` names the version, and
    ``put_etag`` and ``sequencer`` are as in `Partition`."""

    dataset: str
    object_key: str
    etag: str
    event: Event
    cursor: str | None = None
    leases: int = 0
    put_etag: str | None = None
    sequencer: str | None = None
    wake_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class ManifestRow(StoredRow):
    """A manifest that was read, and what was missing then (T8). ``waits_for`` is the key of one of the ``missing``
    objects of its partition's folder: its arrival leads to the next check. ``problem`` says why no arrival does.

    ``put_at``, ``put_etag`` and ``sequencer`` are those of the version that was read."""

    dataset: str
    values: tuple[str, ...]
    object_key: str
    put_at: Instant
    put_etag: str | None = None
    sequencer: str | None = None
    waits_for: str = ""
    missing: int = 0
    problem: str = ""
    rev: int = 1
    expires_at: Instant | None = None

    @property
    def waits(self) -> bool:
        """Whether the partition is not ready by this manifest."""
        return bool(self.waits_for or self.problem)

    @property
    def why(self) -> str:
        """What the partition waits for."""
        if self.problem:
            return f"its manifest {self.object_key} makes nothing ready: {self.problem}"
        if self.missing > 1:
            return f"its manifest lists {self.missing} objects that have not come, such as {self.waits_for}"
        return f"its manifest lists {self.waits_for}, which has not come"


@dataclass(frozen=True, slots=True)
class PostedEvent(StoredRow):
    """A custom event, and its outbox. ``expires_at`` is set once the event has been applied to all schedules."""

    event: Event
    cursor: str | None = None
    leases: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None

    @property
    def event_id(self) -> str:
        return self.event.id

    @property
    def namespace(self) -> str | None:
        """The namespace of a custom event; None for the change of an alarm."""
        kind, _, name = self.event.key.partition(":")
        return name.partition(":")[0] if kind == "event" else None


Outbox = Partition | CountedObject | PostedEvent
Stored = TypeVar("Stored", bound=Outbox)


def advanced(outbox: Stored, cursor: str | None, now: Instant) -> Stored:
    """The outbox after its event was applied to a page of schedules. ``cursor`` is the start of the next page; None
    after the last one."""
    after = replace(outbox, cursor=cursor, leases=0, wake_at=now if cursor else None)
    return replace(after, expires_at=now + POSTED_LIFE) if isinstance(after, PostedEvent) and not cursor else after


@dataclass(frozen=True, slots=True)
class LastArrival(StoredRow):
    """When an event of the feed of an absent leaf was last accepted (T18)."""

    schedule: str
    generation: int
    leaf: str
    at: Instant


@dataclass(frozen=True, slots=True)
class AppliedEvent(StoredRow):
    """The mark that an event has been applied to a job of a generation. It outlives every queue message."""

    schedule: str
    generation: int
    event: Event
    event_job: str
    expires_at: Instant | None = None

    @property
    def event_id(self) -> str:
        return self.event.id
