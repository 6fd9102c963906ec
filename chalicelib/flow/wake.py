"""Wake jobs that wait neither for a limit nor for an instant: after a resume, a carried update, an upstream's success.

The row that requests this stays an open outbox until all jobs are woken, so a crash repeats the step. It is idempotent.
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
    """Wake every job of a schedule whose state has a ``wake_at``, then clear it. Returns how many refs were hinted.

    A queued job gets the rank and the timeout of the present definition. If that has other limits, the job requests its
    permits again from the first.
    """
    schedule_state = ports.catalog.schedule_state(schedule)
    if schedule_state is None or schedule_state.wake_at is None:
        return 0
    woken = _each(ports, schedule_state.schedule, schedule_state.generation, Inherited(ports, schedule_state.schedule))
    ports.ledger.commit([ClearStateWake(schedule_state)])
    return woken


def constrained(ports: Ports, schedule: str, generation: int) -> int:
    """Wake all jobs of a schedule, because an event may have met a constraint (C7). Returns how many refs were hinted.

    A job that does not wait for that constraint is woken too: a concurrent check of it may rely on older facts.
    """
    return _each(ports, schedule, generation)


def _each(ports: Ports, schedule: str, generation: int, inherited: Inherited | None = None) -> int:
    woken, cursor = 0, None
    while True:
        page = ports.jobs.jobs(schedule, generation, BATCH_SIZE, cursor)
        found = (ref for job in page.items if not job.closed for ref in _wake(ports, job, inherited))
        refs = list(dict.fromkeys(found))
        woken += len(refs)
        if refs:
            now = ports.clock.now()
            ports.hints.send(refs, now, now)
        if page.cursor is None:
            return woken
        cursor = page.cursor


def _wake_queue(ports: Ports, limit_name: str, now: Instant) -> Ref:
    """Wake the queue of a limit, and return the ref to hint. A raised limit may have permits for the head now."""
    state = ports.jobs.limit_state(limit_name)
    if state.wake_at is not None and state.wake_at > now:
        ports.ledger.commit([LeaseQueue(limit_name, state.wake_at, now)])
    return limit_ref(limit_name)


def _wake(ports: Ports, job: Job, inherited: Inherited | None) -> tuple[Ref, ...]:
    """Set a job's ``wake_at`` to now, and return the refs to hint; none if the job is not due or no longer waits.

    A lost race means that another invocation checked the job on older facts, so try again. Raises RuntimeError after
    ``MAX_RACES`` lost races.
    """
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        if job.due_at is not None and job.due_at > now:
            return ()  # a prepared fire or a retry wakes at its own instant
        refs = _wake_queued(ports, job, job.queued_in, inherited, now) if job.queued_in is not None else None
        if job.queued_in is None and ports.ledger.commit([Replace(_woken(job, now))]) is None:
            refs = (ref_of(job),)
        if refs is not None:
            return refs
        current = _read_again(ports, job)
        if current is None:
            return ()
        job = waiting.regained(ports, current)
    raise RuntimeError(f"waking job {job.job_id} lost {MAX_RACES} races; it will be retried")


def _woken(job: Job, at: Instant | None) -> Job:
    return replace(job, wake_at=at, leases=0, rev=job.rev + 1)


def _wake_queued(
    ports: Ports, job: Job, limit_name: str, inherited: Inherited | None, now: Instant
) -> tuple[Ref, ...] | None:  # fmt: skip
    """Wake a queued job through its queue. Returns the refs to hint; None after a lost race.

    The revision of the job is raised as well, so a concurrent decision on older facts conflicts.
    """
    known = facts.gather(ports, job) if inherited is not None else None
    if known is None or inherited is None or known.schedule is None or known.workflow is None:
        if ports.ledger.commit([Replace(_woken(job, job.wake_at))]) is not None:
            return None
        return (_wake_queue(ports, limit_name, now),)
    if claim.asks_otherwise(job, known.asks(job.schedule.partition(".")[0])):
        later, plan = claim.request_again(job, {held: ports.jobs.limit_state(held) for held in job.held}, now)
        if ports.ledger.commit(plan) is not None:
            return None
        limit_names = dict.fromkeys((limit_name, *job.held))
        return (ref_of(later), *(_wake_queue(ports, name, now) for name in limit_names))
    raised = priority.with_inherited(ports, job, known.schedule, known.workflow, inherited)
    if ports.ledger.commit(claim.rank_again(job, raised, known)) is not None:
        return None
    return (_wake_queue(ports, limit_name, now),)


def _read_again(ports: Ports, job: Job) -> Job | None:
    """The job under its present sort key, or None: a fire that has to wait changes its key, and so does a detached
    match."""
    for sort_key in dict.fromkeys((job.sort_key, GATHERING, gather.detached_key(job))):
        current = ports.jobs.job(job.schedule, job.generation, sort_key)
        if current is not None and current.job_id == job.job_id and not current.closed:
            return current
    return None
