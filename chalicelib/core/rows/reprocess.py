"""The row of a re-processing (L21): its steps, each a backfill of one schedule, and the state of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow

# RUNNING until every step has ended: all have succeeded (DONE), or one has not (FAILED), or a user cancels it.
ReprocessState = Literal["RUNNING", "DONE", "FAILED", "CANCELLED"]
# A step is skipped if a step that starts it has not succeeded.
StepState = Literal["waiting", "running", "succeeded", "failed", "skipped", "cancelled"]


@dataclass(frozen=True, slots=True)
class Reprocess(StoredRow):
    """One re-processing: of partitions of ``dataset``, of a ``run``, or of the fires of ``schedule`` in ``[since,
    until)``. ``first`` and ``last`` are the bounds of its first step. Each of ``steps`` is a stored
    `core/backfills/reprocess.py::StoredStep`. At most one step runs at a time, as a backfill with ``concurrency``.

    ``cancel_runs``: active runs are cancelled, too. At ``wake_at`` Sluice checks the running step.
    """

    namespace: str
    id: str
    state: ReprocessState
    dataset: str
    keys: tuple[str, ...]
    base: str
    first: str
    last: str
    steps: tuple[Mapping[str, Any], ...]
    concurrency: int
    created_at: Instant
    by: str = ""
    run: str = ""
    schedule: str = ""
    since: Instant | None = None
    until: Instant | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    cancel_runs: bool = False
    ended_at: Instant | None = None
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None
