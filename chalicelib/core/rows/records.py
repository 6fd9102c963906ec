"""The records of work that never became a run. Each is kept for as long as a run."""

from __future__ import annotations

from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, RecordKind
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.why import Why


def record_of(job: Job, kind: RecordKind, reason: Why, now: Instant) -> Record:
    """The record of a job. Of a bundle it counts the events that were neither sent nor have left it."""
    return new_record(
        job.job_id, kind, job.schedule, job.generation, reason, now, created_at=job.created_at, count=job.waiting
    )


def new_record(
    record_id: str,
    kind: RecordKind,
    schedule: str,
    generation: int,
    reason: Why,
    now: Instant,
    *,
    created_at: Instant | None = None,
    count: int = 1,
) -> Record:
    """The record of work that has no job, such as fires that were skipped: ``count`` is their number."""
    return Record(record_id, kind, schedule, generation, reason, now, created_at, count, expires_at=now + HISTORY)
