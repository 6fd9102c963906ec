"""The queue of a limit, in parts or not: who waits in it, waking it, and the runs that hold what its jobs wait for.

`core/limits/parts.py` says how a queue is divided, `core/runs/queued.py` what a job or run in it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from chalicelib.core import ids
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.limits import names as limit_names
from chalicelib.core.limits import parts
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.writes import WakeQueue
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.ref import limit_ref, run_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import follow, queued
from chalicelib.core.system import sweep
from chalicelib.core.writes import ExpectNotQueued, Replace
from chalicelib.log import logger
from chalicelib.ports import Ports

# Beyond its share, a part may have so many of the next waiters: jobs that join together join one part.
UNEVEN = 25


def head_of(ports: Ports, state: LimitState, count: int) -> list[Waiter]:
    """The first waiters of a limit, of all parts of its queue, at most ``count``; fewer if the parts are uneven."""
    if not state.parts:
        return list(ports.jobs.head_of(state.limit_name, count))
    queues = parts.queues(state)
    each = min(count, count * 5 // (4 * state.parts) + UNEVEN)
    pages = [ports.jobs.head_of(queue, each) for queue in (queues if state.waiters else queues[1:])]
    return parts.merged((page, len(page) == each) for page in pages)[:count]


def events_among(waiters: Iterable[Waiter]) -> int:
    """How many jobs and runs these are. The events of a large fire that share a row count until all are settled."""
    return sum(sort_keys.events_of(waiter.job_sort_key) for waiter in waiters)


def waiting(ports: Ports, state: LimitState, most: int) -> int:
    """How many jobs and runs wait at a limit, with each event of a large fire among the first ``most`` rows. Only the
    queues of policies have such rows; for any other limit, nothing is read."""
    name = state.limit_name
    if not state.waiters or not limit_names.is_pace(name) or limit_names.is_target_pace(name):
        return state.waiters
    head = head_of(ports, state, most)
    return events_among(head) + max(0, state.waiters - len(head))


def counted(ports: Ports, state: LimitState) -> LimitState:
    """The state of a limit with the waiters of all parts of its queue."""
    if not state.parts:
        return state
    return replace(state, waiters=sum(each.waiters for each in ports.jobs.limit_states(parts.queues(state))))


def state_of(ports: Ports, limit_name: str) -> LimitState:
    """The state of a limit as it is now, with the waiters of all parts of its queue."""
    return counted(ports, ports.jobs.limit_state(limit_name))


def wake(ports: Ports, ask: PermitRequest, at: Instant) -> Instant | None:
    """Wake a queue in parts after a job has joined one of them. Returns when it is served."""
    state = ports.jobs.limit_state(ask.limit_name)
    number = parts.count(ask, state)
    if state.wake_at is not None and state.parts >= number:
        return state.wake_at
    if ports.ledger.commit([WakeQueue(ask.limit_name, at, number)]) is None and state.wake_at is None:
        ports.hints.send([limit_ref(ask.limit_name)], at, ports.clock.now())
    return state.wake_at


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


MAX_POLLED = 50  # runs of one limit that are polled at a time, least recently polled first
MAX_READ = 500  # unfinished runs that are read to find the holders of a limit that does not name all of them
# The next poll of any unfinished run comes within this time, so the wake index up to then has all of them.
ALL_POLLED_WITHIN: Millis = 30 * MINUTE


def poll_holders(ports: Ports, state: LimitState, now: Instant) -> int:
    """Hint the silent runs that hold slots of this limit, so that each is polled. Returns how many were hinted."""
    held = sorted(
        (run for run in _holders(ports, state, now) if follow.may_have_ended(run, now)),
        key=lambda run: run.wake_at or now,
    )
    refs = [run_ref(run.run_id, run.attempt) for run in held[:MAX_POLLED]]
    if refs:
        ports.hints.send_all(sweep.in_slices(refs, now), now)
    return len(refs)


def _holders(ports: Ports, state: LimitState, now: Instant) -> list[Run]:
    """The unfinished runs with a permit of this limit, or of any share of its pool."""
    names = [ids.attempt_of(holder) for holder in state.starts]
    if state.active > len(names):
        # A pool names no holders, and other limits name only some of very many. All unfinished runs have a `wake_at`.
        refs = ports.wakes.overdue("runs", now + ALL_POLLED_WITHIN, MAX_READ)
        names += [(ref.parts[0], int(ref.parts[1])) for ref in refs if ref.kind == "run"]
    found = ports.runs.several(list(dict.fromkeys(names)))
    return [run for run in found if any(_is_of(permit, state.limit_name) for permit in run.permits)]


def _is_of(permit: str, limit_name: str) -> bool:
    if limit_names.is_pool(permit) and limit_names.is_pool(limit_name):
        return limit_names.pool_of(permit) == limit_names.pool_of(limit_name)
    return permit == limit_name
