"""What is stored of work that never ran, and how a run is found again by its target's id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.core.calendar import Instant
from chalicelib.core.stored_row import StoredRow

RecordKind = Literal["ABORTED", "DROPPED", "COALESCED", "SKIPPED", "EXPIRED", "LATE"]


@dataclass(frozen=True, slots=True)
class Record(StoredRow):
    """What became of work that never became a run, and why."""

    id: str
    kind: RecordKind
    schedule: str
    generation: int
    reason: str
    recorded_at: Instant
    created_at: Instant | None = None
    count: int = 1
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Pointer(StoredRow):
    """From the target's id of a run to ours."""

    target_id: str
    run_id: str
    attempt: int
    expires_at: Instant
