"""Events as they are stored: each in an outbox until every schedule of its key has it, and marked where it was applied.

All of these are rows, told by `core/rows/schedule.py` with the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chalicelib.core.instants import DAY, Instant, Millis
from chalicelib.core.rows.stored import StoredRow

POSTED_LIFE: Millis = 45 * DAY  # after it was told; as long as a marker: so long the same id is the same event


@dataclass(frozen=True, slots=True)
class Event(StoredRow):
    """A fact that may fire triggers. ``accepted_at`` is when it became ready; only later leaves count it.

    ``kind`` is a type of the leaves that count it, or ``run_now``. A reader keeps a kind that it does not know."""

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


@dataclass(frozen=True, slots=True)
class Partition(StoredRow):
    """The registry row of a partition and the outbox of its event: due until every schedule of its key has it."""

    dataset: str
    values: tuple[str, ...]
    event: Event
    object_key: str
    cursor: str | None = None
    leases: int = 0
    wake_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class CountedObject(StoredRow):
    """An object that was counted for size leaves, and the outbox of its event. ``etag``: if overwrites count."""

    dataset: str
    object_key: str
    etag: str
    event: Event
    cursor: str | None = None
    leases: int = 0
    wake_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class PostedEvent(StoredRow):
    """A custom event, and its outbox. It has an end once it has been told, and none before."""

    event: Event
    cursor: str | None = None
    leases: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None


Outbox = Partition | CountedObject | PostedEvent
Stored = TypeVar("Stored", bound=Outbox)


def told(outbox: Stored, cursor: str | None, now: Instant) -> Stored:
    """The outbox after a page of those who wait for its event; without a ``cursor`` that was the last one."""
    after = replace(outbox, cursor=cursor, leases=0, wake_at=now if cursor else None)
    return replace(after, expires_at=now + POSTED_LIFE) if isinstance(after, PostedEvent) and not cursor else after


@dataclass(frozen=True, slots=True)
class LastArrival(StoredRow):
    """When an event of an absent leaf was last accepted (T18)."""

    schedule: str
    generation: int
    leaf: str
    at: Instant


@dataclass(frozen=True, slots=True)
class AppliedEvent(StoredRow):
    """Says that an event has been applied to a generation, and to which job. Lives longer than any message can."""

    schedule: str
    generation: int
    event: Event
    event_job: str
    expires_at: Instant | None = None
