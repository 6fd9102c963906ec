"""The decision of the step *sweep*: which overdue rows are looked at, and for how long one is left alone afterwards."""

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
    """Names a row that wants attention: what a hint carries and what the wake index yields. Always a rumour."""

    kind: RefKind
    parts: tuple[str, ...]


def ref_of(job: Job) -> Ref:
    return Ref("job", (job.schedule, ids.base36(job.generation), job.sort_key))
