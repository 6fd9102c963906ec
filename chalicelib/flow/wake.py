"""Wake jobs that wait for something that is no line and no instant: a resume, a carried update, an upstream's success.

The row that asks for it stays in its outbox until all are woken, so a death on the way repeats it; waking twice is
harmless.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import gather
from chalicelib.core.calendar import Instant
from chalicelib.core.rows import GATHERING, Job
from chalicelib.core.sweep import Ref, ref_of
from chalicelib.core.writes import LeaseLine, Replace, SettleGate
from chalicelib.ports import MOST_RACES, Ports

AT_ONCE = 100


def all_of(ports: Ports, schedule: str) -> int:
    """Wake every job of a schedule whose gate asks for it, then settle the gate."""
    gate = ports.catalog.gate(schedule)
    if gate is None or gate.wake_at is None:
        return 0
    woken = _each(ports, gate.schedule, gate.generation)
    ports.ledger.commit([SettleGate(gate)])
    return woken


def constrained(ports: Ports, schedule: str, generation: int) -> int:
    """Wake the jobs of a schedule, for what happened may have met a constraint (C7). All of them: whoever looks at one
    that does not wait for it yet may do so on facts from before."""
    return _each(ports, schedule, generation)


def _each(ports: Ports, schedule: str, generation: int) -> int:
    woken, cursor = 0, None
    while True:
        page = ports.jobs.jobs(schedule, generation, AT_ONCE, cursor)
        refs = list(dict.fromkeys(ref for job in page.items if not job.closed and (ref := _wake(ports, job))))
        woken += len(refs)
        if refs:
            now = ports.clock.now()
            ports.hints.send(refs, now, now)
        if page.cursor is None:
            return woken
        cursor = page.cursor


def _wake_line(ports: Ports, line: str, now: Instant) -> Ref:
    """A job in a queue is woken through it, in its turn: a limit that was raised may let its head go."""
    state = ports.jobs.line(line)
    if state.wake_at is not None and state.wake_at > now:
        ports.ledger.commit([LeaseLine(line, state.wake_at, now)])
    return Ref("line", (line,))


def _wake(ports: Ports, job: Job) -> Ref | None:
    """Put a job's ``wake_at`` to now. Lost to a race, the job was looked at by somebody, on older facts: again."""
    for _ in range(MOST_RACES):
        now = ports.clock.now()
        if job.due_at is not None and job.due_at > now:
            return None  # a prepared fire, or a retry: its own instant wakes it
        queued = job.waits_at is not None
        # Also of a queued job, which its line wakes, the revision moves on: who decides on older facts loses.
        woken = replace(job, wake_at=job.wake_at if queued else now, leases=0, rev=job.rev + 1)
        if ports.ledger.commit([Replace(woken)]) is None:
            return _wake_line(ports, job.waits_at, now) if job.waits_at is not None else ref_of(job)
        current = _again(ports, job)
        if current is None:
            return None
        job = current
    raise RuntimeError(f"waking {job.job_id} lost {MOST_RACES} races; it will be tried again")


def _again(ports: Ports, job: Job) -> Job | None:
    """The job where it is now: who has to wait leaves the place of a fire, and a match may be set apart."""
    for place in dict.fromkeys((job.place, GATHERING, gather.place_apart(job))):
        current = ports.jobs.job(job.schedule, job.generation, place)
        if current is not None and current.job_id == job.job_id and not current.closed:
            return current
    return None
