"""A job or a run that waits in the queue of a line: its row there, how it leaves, and how it goes on without that row.

What waits says so itself (``queued_in``, ``rank``) and has a `Waiter` row in the queue; the line counts the rows. The
three change in one transaction. A restore from backups of different instants may still part them: what names a queue
and has no row there is served by nobody. The next look at it takes the name off (`without_place`), and it goes on as a
job or run that has not queued yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from chalicelib.core.instants import Instant
from chalicelib.core.limits.writes import LeaveQueue
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import RemoveWaiter, Write

W = TypeVar("W", Job, Run)


def waiter_of(row: Job | Run) -> Waiter | None:
    """The row that a job or a run has in a queue; None if it waits in none."""
    if row.queued_in is None or row.rank is None:
        return None
    if isinstance(row, Run):
        return Waiter(row.queued_in, row.rank, row.schedule, row.generation, sort_keys.attempt(row.attempt), row.run_id)
    return Waiter(row.queued_in, row.rank, row.schedule, row.generation, row.sort_key, row.job_id)


def leave(row: Job | Run, taken: Collection[str] = ()) -> list[Write]:
    """Leave the queue. A permit that is ``taken`` of that very line counts the waiter down in the same write."""
    waiter = waiter_of(row)
    if waiter is None:
        return []
    return (
        [RemoveWaiter(waiter)] if waiter.limit_name in taken else [RemoveWaiter(waiter), LeaveQueue(waiter.limit_name)]
    )


def off_queue(row: W, wake_at: Instant) -> W:
    """A job or a run that names no queue any more, and is to be looked at."""
    return replace(row, queued_in=None, rank=None, rev=row.rev + 1, wake_at=wake_at)
