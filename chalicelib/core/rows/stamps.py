"""Stamps: the few attributes of a row that show whether it has changed. They cost less to read than the whole row."""

from __future__ import annotations

from typing import Any

from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState

Stamp = tuple[Any, ...]


def stamp_of(row: ScheduleState | Job) -> Stamp:
    """The stamp of a schedule state or a job: two reads have equal stamps if the row has not changed between them."""
    return tuple(getattr(row, name) for name in kinds.ROWS[type(row)].stamp)
