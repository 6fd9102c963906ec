"""A job or run that waits in the queue of a limit: its waiter row, its exit from the queue, and a lost waiter row.

The row of the job or run names its queue (``queued_in``, ``rank``), the queue holds a `Waiter` row, and the limit
counts these rows. One transaction changes all three. A restore of tables from backups of different instants may still
separate them. If the waiter row is missing, no limit serves the job or run. The next check then removes the name
(`off_queue`), and the job or run continues as if it had not queued yet.
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
    """The row of a job or a run in its queue; None if it waits in none."""
    if row.queued_in is None or row.rank is None:
        return None
    if isinstance(row, Run):
        return Waiter(row.queued_in, row.rank, row.schedule, row.generation, sort_keys.attempt(row.attempt), row.run_id)
    return Waiter(row.queued_in, row.rank, row.schedule, row.generation, row.sort_key, row.job_id)


def leave(row: Job | Run, taken: Collection[str] = ()) -> list[Write]:
    """The writes with which a job or a run leaves its queue. For a limit in ``taken``, the write that acquires its
    permit counts the waiter down, so no separate `LeaveQueue` is needed."""
    waiter = waiter_of(row)
    if waiter is None:
        return []
    return (
        [RemoveWaiter(waiter)] if waiter.limit_name in taken else [RemoveWaiter(waiter), LeaveQueue(waiter.limit_name)]
    )


def off_queue(row: W, wake_at: Instant) -> W:
    """The job or run without a queue, to be checked at ``wake_at``."""
    return replace(row, queued_in=None, rank=None, rev=row.rev + 1, wake_at=wake_at)
