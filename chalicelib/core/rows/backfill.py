"""What is stored of a backfill (L12), and the two writes that only it needs.

A backfill is a **plan**, written once, and a **cursor** into it: the row says how far the plan has been handed out,
which of its entries are under way, and what has become of those that are not. Told by `core/rows/schedule.py` and
`core/writes.py` with all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow

# RUNNING until every entry has had its run (DONE), somebody cancels it, or its schedule is not what it was (ENDED).
BackfillState = Literal["RUNNING", "DONE", "CANCELLED", "ENDED"]


BackfillOrder = Literal["oldest", "newest"]


@dataclass(frozen=True, slots=True)
class Backfill(StoredRow):
    """One backfill of a schedule. ``plan`` names its entries, in `PlanPart` rows; ``next`` is the first one that has
    not been handed out. ``live`` holds the entries under way, each with the generation in which its job lives: never
    more than ``concurrency``. ``dropped`` are entries whose job left without a run.

    ``since`` and ``until`` are those of an interval; ``dataset``, its ``keys`` and its address (``base``) those of
    partitions. ``cancel_runs``: the runs under way are to end, too. ``wake_at`` asks for a look at what has become of
    ``live``.
    """

    schedule: str
    id: str
    generation: int
    version: int
    state: BackfillState
    plan: str
    total: int
    first: str
    last: str
    order: BackfillOrder
    concurrency: int
    created_at: Instant
    by: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    since: Instant | None = None
    until: Instant | None = None
    dataset: str | None = None
    keys: tuple[str, ...] = ()
    base: str = ""
    next: int = 0
    live: Mapping[str, int] = field(default_factory=dict)
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    dropped: int = 0
    reason: str = ""
    cancel_runs: bool = False
    ended_at: Instant | None = None
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class PlanPart(StoredRow):
    """A part of a backfill's plan: instants (RFC 3339), or the values of partitions joined by ``/``. The plan's name is
    a digest of its backfill and all of it, so writing it again changes nothing. It ends with its backfill."""

    plan: str
    number: int
    entries: tuple[str, ...]
    expires_at: Instant | None = None
