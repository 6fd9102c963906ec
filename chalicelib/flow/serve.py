"""Serve the queue of a line: whoever moves its ``wake_at`` checks its head, as many jobs as there are permits."""

from __future__ import annotations

from collections.abc import Mapping

from chalicelib.core import lines, routes
from chalicelib.core.calendar import Instant
from chalicelib.core.lines import Ask, LineState, Waiter
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import LeaseLine, LeaveLine, NotWaiting, Remove, SettleLine
from chalicelib.flow import facts, launch
from chalicelib.flow.check import check_job
from chalicelib.flow.drain import drain
from chalicelib.ports import Ports

BESIDE = 3  # waiters read beside those that failed, should one that was served still be among them


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
        return 0  # too early: whoever set that instant has hinted it, and the sweep stands behind
    lease = now + lines.SLOTS_LEASE
    if ports.ledger.commit([LeaseLine(line, state.wake_at, lease)]) is not None:
        return 0  # somebody else serves it
    try:
        return _serve_head(ports, line)
    finally:
        _next_look(ports, line, lease)


def _serve_head(ports: Ports, line: str) -> int:
    """Serve from the head on, which is read anew after each: a start takes its time, and who has come meanwhile may be
    more urgent than those behind (W2). A waiter whose check raises is stepped over, holds up nobody, and is told last.
    """
    handled: set[tuple[str, str]] = set()
    failed: list[Exception] = []
    served = 0
    while True:
        fresh = [waiter for waiter in ports.jobs.head_of(line, len(failed) + BESIDE) if _which(waiter) not in handled]
        if not fresh:
            return _told(served, failed)
        handled.add(_which(fresh[0]))
        try:
            if not _serve_one(ports, fresh[0]):
                return _told(served, failed)
        except Exception as error:  # told when the others have had their turn
            failed.append(error)
        else:
            served += 1


def _told(served: int, failed: list[Exception]) -> int:
    if failed:
        raise ExceptionGroup(f"{len(failed)} waiters could not be checked", failed)
    return served


def _serve_one(ports: Ports, waiter: Waiter) -> bool:
    """Check one waiter in its turn; False if it must go on waiting, and so must all behind it."""
    if waiter.run is not None:
        return _serve_run(ports, waiter, *waiter.run)
    place = (waiter.job_schedule, waiter.job_generation, waiter.job_place)
    job = ports.jobs.job(*place)
    if job is not None and job.closed:
        drain(ports, waiter.job_schedule, waiter.job_generation)
        job = ports.jobs.job(*place)
    if job is None or job.job_id != waiter.job_id or job.waits_at != waiter.line:
        # Its job is gone or went elsewhere, which takes the row along in the same transaction: a late reader's view.
        ports.ledger.commit([NotWaiting(waiter), Remove(waiter), LeaveLine(waiter.line)])
        return True
    return check_job(ports, place, turn=waiter.line, only=waiter.job_id).ended != "waiting"


def _which(waiter: Waiter) -> tuple[str, str]:
    """A job that was moved while it was served is served again in its new place."""
    return waiter.rank, waiter.job_place


def _serve_run(ports: Ports, waiter: Waiter, run_id: str, attempt: int) -> bool:
    """The same for a run whose next start call wants a permit."""
    run = ports.runs.run(run_id, attempt)
    if run is None or run.waits_at != waiter.line or run.rank != waiter.rank:
        ports.ledger.commit([Remove(waiter), LeaveLine(waiter.line)])  # a late reader's view: it is gone already
        return True
    return not launch.start(ports, run_id, attempt, turn=waiter.line)


def _next_look(ports: Ports, line: str, lease: Instant) -> None:
    """Say when the queue wants serving again, unless the write that freed a permit has said so already."""
    now = ports.clock.now()
    state = ports.jobs.line(line)
    if state.waiters == 0:
        ports.ledger.commit([SettleLine(line)])
        return
    asks, states = _asks_of_head(ports, state)
    look = routes.looks_again(asks, line, states, now) or lease
    paced = lines.is_timed(next((ask for ask in asks if ask.line == line), None))
    if ports.ledger.commit([LeaseLine(line, lease, look)]) is None and paced:
        ports.hints.send([Ref("line", (line,))], look, now)


def _asks_of_head(ports: Ports, state: LineState) -> tuple[tuple[Ask, ...], Mapping[str, LineState]]:
    """What the head of the queue asks of all lines, and how these stand; nothing if that cannot be told now."""
    head = ports.jobs.head_of(state.line, 1)
    if not head:
        return (), {}
    if head[0].run is not None:
        run = ports.runs.run(*head[0].run)
        return launch.of_run(ports, run) if run else ((), {})
    job = ports.jobs.job(head[0].job_schedule, head[0].job_generation, head[0].job_place)
    known = facts.gather(ports, job) if job else None
    return (known.asks(head[0].job_schedule.partition(".")[0]), known.lines) if known else ((), {})
