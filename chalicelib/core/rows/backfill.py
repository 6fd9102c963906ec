"""The rows of a backfill (L12): the backfill itself, and the parts of its plan.

A backfill is a **plan**, written once, and a **cursor** into it. The row counts the entries of the plan that have
become jobs, names the active ones, and counts how the others ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow

# RUNNING until every entry has had its run (DONE), a user cancels it (CANCELLED), or its schedule changes (ENDED).
BackfillState = Literal["RUNNING", "DONE", "CANCELLED", "ENDED"]


BackfillOrder = Literal["oldest", "newest"]
BackfillOnly = Literal["all", "missing", "failed"]


@dataclass(frozen=True, slots=True)
class Backfill(StoredRow):
    """One backfill of a schedule. ``plan`` names its entries, in `PlanPart` rows; ``next`` is the number of the first
    entry without a job. ``live`` maps the active entries to the generations of their jobs: never more than
    ``concurrency``. ``dropped`` counts the entries whose job ended without a run.

    ``since`` and ``until`` bound a backfill of fires; ``dataset``, its ``keys`` and its address (``base``) belong to
    one of partitions. ``periods``: the entries are periods of the schedule, by its ``keys`` (T25). ``cancel_runs``: the
    active runs are cancelled, too. At ``wake_at`` Sluice checks the ``live`` entries.

    ``namespace`` is that of its re-processing, if it is a step of one. Of a first step, ``run`` is the run that runs
    again, if it begins with a run. Of another, ``upstream`` is the workflow whose status starts the schedule, if it is
    not started by partitions of ``dataset``.
    ``parent_schedule`` and ``parent`` are the schedule and the id of the backfill that runs it.

    ``only`` says which entries of its range the plan has (L23). It has none of the ``left_alone``, which were in flight
    when it was made; ``in_flight`` names the first of them. Nor has it any of the ``left_out`` periods, of which
    partitions were missing; ``incomplete`` names the first of them.
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
    upstream: str | None = None
    namespace: str | None = None
    run: str | None = None
    parent_schedule: str | None = None
    parent: str | None = None
    only: BackfillOnly = "all"
    left_alone: int = 0
    in_flight: tuple[str, ...] = ()
    periods: bool = False
    left_out: int = 0
    incomplete: tuple[str, ...] = ()
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

    @property
    def requested_by(self) -> str | None:
        """The ARN of the signer who began it, for its jobs; None if nothing checked who signed."""
        return self.by if self.by.startswith("arn:") else None


@dataclass(frozen=True, slots=True)
class PlanPart(StoredRow):
    """A part of a backfill's plan: instants (RFC 3339), or the values of partitions joined by ``/``. The name of the
    plan is a digest of the backfill and of all entries, so writing it is idempotent. It expires with its backfill."""

    plan: str
    number: int
    entries: tuple[str, ...]
    expires_at: Instant | None = None
