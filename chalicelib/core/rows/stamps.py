"""Stamps: the few attributes of a row by which one sees that it has changed, cheaper to read than the whole row."""

from __future__ import annotations

from typing import Any

from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState

Stamp = tuple[Any, ...]
# Every change of a row raises its `rev`. The others tell apart a row that was removed and written again.
_STATE = ("rev", "generation", "version", "mode", "updated_at")
_JOB = ("rev", "job_id", "attempt", "tries")
ATTRIBUTES = {"schedule_state": _STATE, "job": _JOB}


def stamp_of(row: ScheduleState | Job) -> Stamp:
    """Equal for two reads of a gate or a job between which it has not changed."""
    return tuple(getattr(row, name) for name in (_STATE if isinstance(row, ScheduleState) else _JOB))
