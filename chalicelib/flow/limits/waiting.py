"""Find out whether what names a queue has its row there, and let it go on if not (`core/runs/queued.py`)."""

from __future__ import annotations

from typing import TypeVar

from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import queued
from chalicelib.core.writes import ExpectNotQueued, Replace
from chalicelib.log import logger
from chalicelib.ports import Ports

W = TypeVar("W", Job, Run)


def regained(ports: Ports, row: W) -> W:
    """The job or run as it stands: in no queue, if it has no row in the one that it names. Costs one read if it names
    one. The line counts rows, so it is not touched. After a lost race the row is returned as it was read, and whatever
    is decided from it is refused.
    """
    waiter = queued.waiter_of(row)
    if waiter is None or ports.jobs.is_queued(waiter):
        return row
    after = queued.off_queue(row, ports.clock.now())
    if ports.ledger.commit([Replace(after), ExpectNotQueued(waiter)]) is not None:
        return row
    logger.warning("row in a queue was missing", extra={"job": waiter.job_id, "limit": waiter.limit_name})
    return after
