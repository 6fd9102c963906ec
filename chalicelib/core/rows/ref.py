"""Refs: the names of rows that need attention, which hints carry and the wake index yields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from chalicelib.core import ids
from chalicelib.core.instants import Instant
from chalicelib.core.rows import sort_keys
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
    "grants",
    "stops",
    "backfill",
    "reprocess",
    "deployment",
    "dag_run",
    "elements",
    "notice",
    "notice_window",
    "deadline",
    "freshness",
    "fires",  # the timer of a schedule, to prepare its fires together with those of others
    "shard",  # a part of a shard of a wake index
    "block",  # a block of permits
    "queue",  # the queue of a limit that is served in blocks
]


@dataclass(frozen=True, slots=True)
class Ref:
    """The name of a row that may need attention. It is unconfirmed: read the row strongly before acting."""

    kind: RefKind
    parts: tuple[str, ...]


def ref_of(job: Job) -> Ref:
    """The ref of a job's row."""
    return Ref("job", (job.schedule, ids.base36(job.generation), job.sort_key))


def by_instant(rows: Iterable[tuple[Ref, Instant]]) -> list[tuple[Instant, list[Ref]]]:
    """The hints for these rows: for each instant its refs, the earliest first."""
    groups: dict[Instant, list[Ref]] = {}
    for ref, instant in rows:
        groups.setdefault(instant, []).append(ref)
    return sorted(groups.items(), key=lambda group: group[0])


def events_of(ref: Ref) -> int:
    """How many events a ref stands for: those of a bundle, else one."""
    return sort_keys.events_of(ref.parts[-1]) if ref.kind == "job" else 1


def run_ref(run_id: str, attempt: int) -> Ref:
    return Ref("run", (run_id, f"{attempt:03d}"))


def limit_ref(limit_name: str) -> Ref:
    return Ref("limit", (limit_name,))


def block_ref(limit_name: str, *parts: str) -> Ref:
    """The ref of a block of permits of a limit, with the appointments and the jobs."""
    return Ref("block", (limit_name, *parts))


def queue_ref(limit_name: str, *sent: str) -> Ref:
    """The ref of a queue that is served in blocks, with the marks of the jobs whose blocks are on their way."""
    return Ref("queue", (limit_name, *sent))


def is_of_block(ref: Ref) -> bool:
    """Whether a ref concerns blocks of permits, which no other work may delay."""
    return ref.kind in ("block", "queue")


@dataclass(frozen=True, slots=True)
class ShardPart:
    """A part of a shard of a wake index: the rows that wake up to ``until``, from a position on. ``cursor`` is the
    position, None for the first row."""

    table: str
    shard: int
    until: Instant
    cursor: str | None = None


def shard_ref(part: ShardPart) -> Ref:
    """The ref of a part of a shard."""
    return Ref("shard", (part.table, str(part.shard), str(part.until), part.cursor or ""))


def shard_part(ref: Ref) -> ShardPart:
    """The part of a shard that a ref names."""
    table, shard, until, cursor = ref.parts
    return ShardPart(table, int(shard), int(until), cursor or None)


def fires_ref(schedule: str, crowd: int = 0) -> Ref:
    """The ref of a timer whose fires are to be prepared, together with those of other timers. ``crowd``: about how many
    timers are due at its instant, if these are many."""
    return Ref("fires", (schedule, str(crowd)) if crowd else (schedule,))


def crowd_of(refs: Iterable[Ref]) -> int:
    """The largest crowd that refs of fires name."""
    return max((int(ref.parts[1]) for ref in refs if len(ref.parts) > 1), default=0)
