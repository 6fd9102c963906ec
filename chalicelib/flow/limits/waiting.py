"""Repair a job or run that names a queue in which it has no waiter (`core/runs/queued.py`)."""

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
    """The job or run, taken out of the queue that it names if it has no waiter there.

    Costs one read if it names a queue. The limit counts waiters, so its row does not change. After a conflict the row
    is returned as it was read, and the conditional write of the next decision fails.
    """
    waiter = queued.waiter_of(row)
    if waiter is None or ports.jobs.is_queued(waiter):
        return row
    after = queued.off_queue(row, ports.clock.now())
    if ports.ledger.commit([Replace(after), ExpectNotQueued(waiter)]) is not None:
        return row
    logger.warning("waiter was missing", extra={"job": waiter.job_id, "limit": waiter.limit_name})
    return after
