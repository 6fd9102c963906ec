"""Wake jobs that wait for something that is no line and no instant: a resume, a carried update, an upstream's success.

The row that asks for it stays in its outbox until all are woken, so a death on the way repeats it; waking twice is
harmless.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.instants import Instant
from chalicelib.core.jobs import claim, gather
from chalicelib.core.limits.writes import LeaseQueue
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, limit_ref, ref_of
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.writes import ClearStateWake, Replace
from chalicelib.flow import facts, priority
from chalicelib.flow.limits import waiting
from chalicelib.flow.priority import Inherited
from chalicelib.ports import MAX_RACES, Ports

BATCH_SIZE = 100


def all_of(ports: Ports, schedule: str) -> int:
    """Wake every job of a schedule whose gate asks for it, then settle the gate. What queues gets the rank and the
    timeout of the definition as it is now, or begins anew where that has other limits."""
    schedule_state = ports.catalog.schedule_state(schedule)
    if schedule_state is None or schedule_state.wake_at is None:
        return 0
    woken = _each(ports, schedule_state.schedule, schedule_state.generation, Inherited(ports, schedule_state.schedule))
    ports.ledger.commit([ClearStateWake(schedule_state)])
    return woken


def constrained(ports: Ports, schedule: str, generation: int) -> int:
    """Wake the jobs of a schedule, for what happened may have met a constraint (C7). All of them: whoever looks at one
    that does not wait for it yet may do so on facts from before."""
    return _each(ports, schedule, generation)


def _each(ports: Ports, schedule: str, generation: int, lending: Inherited | None = None) -> int:
    woken, cursor = 0, None
    while True:
        page = ports.jobs.jobs(schedule, generation, BATCH_SIZE, cursor)
        found = (ref for job in page.items if not job.closed for ref in _wake(ports, job, lending))
        refs = list(dict.fromkeys(found))
        woken += len(refs)
        if refs:
            now = ports.clock.now()
            ports.hints.send(refs, now, now)
        if page.cursor is None:
            return woken
        cursor = page.cursor


def _wake_queue(ports: Ports, limit_name: str, now: Instant) -> Ref:
    """A job in a queue is woken through it, in its turn: a limit that was raised may let its head go."""
    state = ports.jobs.limit_state(limit_name)
    if state.wake_at is not None and state.wake_at > now:
        ports.ledger.commit([LeaseQueue(limit_name, state.wake_at, now)])
    return limit_ref(limit_name)


def _wake(ports: Ports, job: Job, lending: Inherited | None) -> tuple[Ref, ...]:
    """Put a job's ``wake_at`` to now. Lost to a race, the job was looked at by somebody, on older facts: again."""
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        if job.due_at is not None and job.due_at > now:
            return ()  # a prepared fire, or a retry: its own instant wakes it
        refs = _wake_queued(ports, job, job.queued_in, lending, now) if job.queued_in is not None else None
        if job.queued_in is None and ports.ledger.commit([Replace(_woken(job, now))]) is None:
            refs = (ref_of(job),)
        if refs is not None:
            return refs
        current = _again(ports, job)
        if current is None:
            return ()
        job = waiting.regained(ports, current)
    raise RuntimeError(f"waking {job.job_id} lost {MAX_RACES} races; it will be tried again")


def _woken(job: Job, at: Instant | None) -> Job:
    return replace(job, wake_at=at, leases=0, rev=job.rev + 1)


def _wake_queued(
    ports: Ports, job: Job, limit_name: str, lending: Inherited | None, now: Instant
) -> tuple[Ref, ...] | None:  # fmt: skip
    """A job that queues is woken through its line. Also of such a job the revision moves on: who decides on older facts
    loses. None if somebody else was faster."""
    known = facts.gather(ports, job) if lending is not None else None
    if known is None or lending is None or known.schedule is None or known.workflow is None:
        if ports.ledger.commit([Replace(_woken(job, job.wake_at))]) is not None:
            return None
        return (_wake_queue(ports, limit_name, now),)
    if claim.asks_otherwise(job, known.asks(job.schedule.partition(".")[0])):
        later, plan = claim.request_again(job, {held: ports.jobs.limit_state(held) for held in job.held}, now)
        if ports.ledger.commit(plan) is not None:
            return None
        return (ref_of(later), *(_wake_queue(ports, each, now) for each in dict.fromkeys((limit_name, *job.held))))
    raised = priority.with_inherited(ports, job, known.schedule, known.workflow, lending)
    if ports.ledger.commit(claim.rank_again(job, raised, known)) is not None:
        return None
    return (_wake_queue(ports, limit_name, now),)


def _again(ports: Ports, job: Job) -> Job | None:
    """The job where it is now: who has to wait leaves the place of a fire, and a match may be set apart."""
    for sort_key in dict.fromkeys((job.sort_key, GATHERING, gather.detached_key(job))):
        current = ports.jobs.job(job.schedule, job.generation, sort_key)
        if current is not None and current.job_id == job.job_id and not current.closed:
            return current
    return None
