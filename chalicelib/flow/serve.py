"""Serve the queue of a line: whoever moves its ``wake_at`` checks its head, as many jobs as there are permits."""

from __future__ import annotations

from chalicelib.core import lines
from chalicelib.core.calendar import Instant
from chalicelib.core.check import asks_of
from chalicelib.core.lines import LineState, Waiter
from chalicelib.core.rows import Job
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import LeaseLine, LeaveLine, Remove, SettleLine
from chalicelib.flow import facts
from chalicelib.flow.check import check_job
from chalicelib.flow.drain import drain
from chalicelib.ports import Ports

AT_ONCE = 20  # waiters read at a time


def serve(ports: Ports, line: str) -> int:
    """Launch from the head of a queue until no permit is left. Returns how many left the queue."""
    now = ports.clock.now()
    state = ports.jobs.line(line)
    if state.wake_at is None:
        return 0
    if state.waiters == 0:
        ports.ledger.commit([SettleLine(line)])
        return 0
    if state.wake_at > now:
        ports.hints.send([Ref("line", (line,))], state.wake_at, now)
        return 0
    lease = now + lines.SLOTS_LEASE
    if ports.ledger.commit([LeaseLine(line, state.wake_at, lease)]) is not None:
        return 0  # somebody else serves it
    served = _serve_head(ports, line)
    _next_look(ports, line, lease)
    return served


def _serve_head(ports: Ports, line: str) -> int:
    served = 0
    while True:
        head = ports.jobs.head_of(line, AT_ONCE)
        for waiter in head:
            if not _serve_one(ports, waiter):
                return served
            served += 1
        if not head:
            return served


def _serve_one(ports: Ports, waiter: Waiter) -> bool:
    """Check one waiter in its turn; False if it must go on waiting, and so must all behind it."""
    place = (waiter.job_schedule, waiter.job_generation, waiter.job_place)
    job = ports.jobs.job(*place)
    if job is not None and job.closed:
        drain(ports, waiter.job_schedule, waiter.job_generation)
        job = ports.jobs.job(*place)
    if job is None or job.job_id != waiter.job_id or job.waits_at != waiter.line:
        # Its job is gone or went elsewhere, which takes the row along in the same transaction: a late reader's view.
        ports.ledger.commit([Remove(waiter), LeaveLine(waiter.line)])
        return True
    return check_job(ports, place, turn=waiter.line).ended != "waiting"


def _next_look(ports: Ports, line: str, lease: Instant) -> None:
    """Say when the queue wants serving again, unless the write that freed a permit has said so already."""
    now = ports.clock.now()
    state = ports.jobs.line(line)
    if state.waiters == 0:
        ports.ledger.commit([SettleLine(line)])
        return
    look = _look(ports, state, now)
    if ports.ledger.commit([LeaseLine(line, lease, look)]) is None and look < lease:
        ports.hints.send([Ref("line", (line,))], look, now)


def _look(ports: Ports, state: LineState, now: Instant) -> Instant:
    """The instant of the next permit, as the head of the queue asks for it."""
    head = ports.jobs.head_of(state.line, 1)
    job: Job | None = None
    if head:
        job = ports.jobs.job(head[0].job_schedule, head[0].job_generation, head[0].job_place)
    known = facts.gather(ports, job) if job else None
    if known is None or known.schedule is None or known.workflow is None:
        return now
    asks = asks_of(known.schedule, known.workflow, known.start_rate)
    ask = next((ask for ask in asks if ask.line == state.line), None)
    return lines.next_look(ask, state, now) if ask else now
