"""Rows as they arrive in another installation: without permits of limits that do not move with them, and with the
buckets that are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from chalicelib.core import zones
from chalicelib.core.access.grants import MISSING
from chalicelib.core.instants import Instant
from chalicelib.core.limits import names
from chalicelib.core.rows import authors
from chalicelib.core.rows.backfill import PlanPart
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Timer, Version
from chalicelib.core.writes import Row
from sluice.operations.rules.limits import Moving, Use, as_used, is_active
from sluice.operations.rules.owner import notifies, posted, unheard

W = TypeVar("W", Job, Run)


@dataclass(frozen=True, slots=True)
class Arrival:
    """``buckets`` maps the buckets of the source to those that take their place. ``limits`` are those that move with
    the rows, and ``use`` is how the rows use them. ``by`` is who imports: an author of all that runs, because an export
    is a file that can be edited."""

    buckets: Mapping[str, str]
    now: Instant
    limits: Moving
    use: Use = field(default_factory=Use)
    by: str = ""

    @property
    def everything(self) -> bool:
        return not self.limits.namespaces


def arriving(row: Row | LimitState, arrival: Arrival) -> tuple[Row | LimitState, ...]:
    """The row as it is stored in the new installation; empty if it is left out. Of a row of another namespace, the
    events and the notice that its schedules have not got."""
    buckets = arrival.buckets
    match row:
        case PrefixRow():
            row = replace(row, bucket=buckets.get(row.bucket, row.bucket))
        case Definition(kind="dataset"):
            bucket = str(row.document.get("bucket", ""))
            row = replace(row, document={**row.document, "bucket": buckets.get(bucket, bucket)})
        case Definition(kind="workflow" | "dag") if arrival.by:
            row = replace(row, authors=authors.with_author(row, row.document, arrival.by))
        case Version() if arrival.by:
            row = replace(row, authors=authors.with_author(row, row.definition, arrival.by))
        case Job() | Run() if arrival.by and (isinstance(row, Job) or is_active(row)):
            row = replace(row, approvals={})  # who edits the file may have added some in the name of others
        case Timer(walls=walls) if walls and row.rules != zones.version():
            row = replace(row, wake_at=arrival.now)  # the emitter brings it to the rules of time zones that are here
    if arrival.everything:
        return (row,)
    if not isinstance(row, PlanPart) and not arrival.limits.moves(row):
        return (row,) if notifies(row) is not None else tuple(posted(event, arrival.now) for event in unheard(row))
    stored = _of_namespaces(row, arrival)
    return (stored,) if stored is not None else ()


def _of_namespaces(row: Row | LimitState, arrival: Arrival) -> Row | LimitState | None:
    limits = arrival.limits
    match row:
        case Job():
            held = tuple(filter(limits.has, row.held))
            units = row.units if any(map(names.is_pool, held)) else 0
            job = _out_of_other_queues(replace(row, held=held, units=units), arrival)
            # The grants may be here already, so that no change of them wakes it.
            return replace(job, wake_at=arrival.now) if job.reason.code == MISSING else job
        case Run() if is_active(row):
            other = set(lacking(row, limits))
            kept = replace(row, permits=tuple(name for name in row.permits if name not in other))
            return _out_of_other_queues(kept, arrival)
        case Waiter():
            return row if limits.has(row.limit_name) else None
        case LimitState() if limits.has(row.limit_name):
            return as_used(row, arrival.use, limits.namespaces)
        case Reprocess() if row.expires_at is None:  # the backfill of its step may be elsewhere
            return replace(row, wake_at=arrival.now, rev=row.rev + 1)
        case GrantsRow():  # jobs that have arrived before may wait for these grants
            return replace(row, wake_at=arrival.now, rev=row.rev + 1)
        case _:
            return row


def lacking(run: Run, limits: Moving) -> tuple[str, ...]:
    """The limits of which a run arrives without the permit that it held. The new installation counts it there. A permit
    that no run releases, such as that of a pace, is in no count."""
    return tuple(filter(names.returns_permit, limits.others(run.permits))) if is_active(run) else ()


def _out_of_other_queues(row: W, arrival: Arrival) -> W:
    """The job or run in its queue if that queue moves, too; else it requests its permits again."""
    if row.queued_in is None or arrival.limits.has(row.queued_in):
        return row
    return replace(row, queued_in=None, rank=None, wake_at=arrival.now, rev=row.rev + 1)
