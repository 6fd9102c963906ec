"""Refs: the names of rows that need attention, which hints carry and the wake index yields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.core import ids
from chalicelib.core.rows.job import Job

RefKind = Literal[
    "job",
    "run",
    "limit",
    "partition",
    "object",
    "event",
    "timer",
    "schedule",
    "backfill",
    "dag_run",
    "notice",
    "notice_window",
    "deadline",
]


@dataclass(frozen=True, slots=True)
class Ref:
    """The name of a row that may need attention. It is unconfirmed: read the row strongly before acting."""

    kind: RefKind
    parts: tuple[str, ...]


def ref_of(job: Job) -> Ref:
    """The ref of a job's row."""
    return Ref("job", (job.schedule, ids.base36(job.generation), job.sort_key))
