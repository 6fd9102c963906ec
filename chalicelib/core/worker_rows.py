"""The rows that only runs of pull workers have (W5): an offer in the queue of a pool, and the last lines of a run."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.calendar import Instant
from chalicelib.core.stored_row import StoredRow


@dataclass(frozen=True, slots=True)
class Offer(StoredRow):
    """A run that a worker of this pool may take. ``rank`` sorts by inverse priority, latest start, age, and ends with
    the attempt. The run's own row decides: an offer whose run is not on offer is a ghost, and is swept up by whoever
    meets it. It has no end of its own: work may lie in its pool for as long as no worker comes."""

    pool: str
    rank: str
    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Output(StoredRow):
    """The last lines that a run has written, as its worker told them, and the exit code of its command."""

    run_id: str
    attempt: int
    text: str
    told_at: Instant
    exit_code: int | None = None
    expires_at: Instant | None = None
