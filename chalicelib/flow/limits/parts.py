"""The queue of a limit, in parts or not: who waits, and waking it (`core/limits/parts.py`)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.instants import Instant
from chalicelib.core.limits import parts
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.writes import WakeQueue
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.ref import limit_ref
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
