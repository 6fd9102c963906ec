"""Stamps: the few attributes of a row that show whether it has changed. They cost less to read than the whole row."""

from __future__ import annotations

from typing import Any

from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState

Stamp = tuple[Any, ...]
# Every change of a row raises its `rev`. The other attributes differ in a row that was deleted and written again.
_STATE = ("rev", "generation", "version", "mode", "updated_at")
_JOB = ("rev", "job_id", "attempt", "tries")
ATTRIBUTES = {"schedule_state": _STATE, "job": _JOB}


def stamp_of(row: ScheduleState | Job) -> Stamp:
    """The stamp of a schedule state or a job: two reads have equal stamps if the row has not changed between them."""
    return tuple(getattr(row, name) for name in (_STATE if isinstance(row, ScheduleState) else _JOB))
