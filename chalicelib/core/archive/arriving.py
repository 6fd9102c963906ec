"""Rows as they arrive in another installation: without permits of limits that the namespaces there share, and with the
buckets that are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chalicelib.core import states, zones
from chalicelib.core.archive.owner import of_limit
from chalicelib.core.instants import Instant
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.writes import Row


def arriving(
    row: Row | LimitState, buckets: Mapping[str, str], everything: bool, now: Instant
) -> Row | LimitState | None:
    """The row as it is stored in the new installation; None if it is left out. ``buckets`` maps the buckets of the
    source to those that take their place. ``everything``: the export has all limits of the source."""
    match row:
        case PrefixRow():
            return replace(row, bucket=buckets.get(row.bucket, row.bucket))
        case Definition(kind="dataset"):
            bucket = str(row.document.get("bucket", ""))
            return replace(row, document={**row.document, "bucket": buckets.get(bucket, bucket)})
        case Job() if not everything:
            return _job(row, now)
        case Run() if not everything:
            return _run(row, now)
        case Timer(walls=walls) if walls and row.rules != zones.version():
            return replace(row, wake_at=now)  # the emitter brings it to the rules of time zones that are here
        case Waiter() if not everything:
            return None if of_limit(row.limit_name) is None else row
        case _:
            return row


def _job(job: Job, now: Instant) -> Job:
    """The job with the permits of its own namespace. It requests those of shared limits again."""
    queues = job.queued_in is not None and of_limit(job.queued_in) is None
    kept = replace(job, held=own(job.held))
    return replace(kept, queued_in=None, rank=None, wake_at=now, rev=job.rev + 1) if queues else kept


def _run(run: Run, now: Instant) -> Run:
    """The run with the permits of its own namespace. The permit of a pace is for an instant, which has passed."""
    if states.is_terminal(run.state):
        return run
    queues = run.queued_in is not None and of_limit(run.queued_in) is None
    kept = replace(run, permits=own(run.permits, paces=True))
    return replace(kept, queued_in=None, rank=None, wake_at=now, rev=run.rev + 1) if queues else kept


def own(permits: tuple[str, ...], paces: bool = False) -> tuple[str, ...]:
    """The permits of limits that belong to a namespace; with ``paces``, also EMR's start rate, which no row returns."""
    return tuple(name for name in permits if of_limit(name) is not None or (paces and name.startswith("emr:")))
