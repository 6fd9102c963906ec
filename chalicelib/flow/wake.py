"""Wake jobs that wait neither for a limit nor for an instant: after a resume, a carried update, an upstream's success.

The schedule state is the outbox of a resume and of an update. It stays open until all jobs are woken, and has a cursor.
After a death the step goes on with the page that it was at. An event that many jobs of a schedule wait for opens the
same outbox. A repeated page changes nothing but revisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs import claim, gather
from chalicelib.core.limits.writes import LeaseQueue
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, limit_ref, ref_of
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.writes import ClearStateWake, MarkWoken, PutState, Replace
from chalicelib.flow import facts, priority
from chalicelib.flow.each import committed
from chalicelib.flow.limits import queues
from chalicelib.flow.priority import Inherited
from chalicelib.ports import MAX_CONFLICTS, Page, Ports, every_page, too_many_conflicts

BATCH_SIZE = 100
TOGETHER = 25  # jobs that are woken in one transaction
MAX_SINGLE = 4  # so many jobs are woken one by one, for half of the write units
TIME_FOR_PAGE: Millis = 10 * SECOND


def all_of(ports: Ports, schedule: str) -> int:
    """Wake the first jobs of a schedule whose state has a ``wake_at``, and hint the schedule for the others. Returns
    how many refs were hinted. So a request is answered soon, however many jobs wait."""
    return _go_on(ports, schedule, 1)


def rest_of(ports: Ports, schedule: str) -> int:
    """Wake every job of a schedule whose state has a ``wake_at``, page by page, then clear it. Returns how many refs
    were hinted. If the time of the invocation is used up, the schedule is hinted again.

    A queued job gets the rank and the timeout of the present definition. If that has other limits, the job requests its
    permits again from the first.
    """
    return _go_on(ports, schedule, None)


def constrained(ports: Ports, schedule: str, generation: int) -> int:
    """Wake all jobs of a schedule, because an event may have met a constraint (C7). Returns how many refs were hinted.

    A job that does not wait for that constraint is woken too: a concurrent check of it may rely on older facts. Of many
    jobs, the first page is woken at once; the schedule state becomes the outbox for all of them.
    """
    woken = 0
    for number, page in enumerate(every_page(partial(ports.jobs.jobs, schedule, generation), BATCH_SIZE)):
        woken += _wake_page(ports, page, None)
        if number == 0 and page.cursor is not None and _requested(ports, schedule, generation):
            break
    return woken


def _requested(ports: Ports, schedule: str, generation: int) -> bool:
    """Open the outbox of a schedule. Returns False if the generation is not the present one. Another revision makes an
    invocation that is waking these jobs begin again, and refuse to close the outbox."""
    for _ in range(MAX_CONFLICTS):
        state = ports.rows.get(ScheduleState, schedule)
        if state is None or state.generation != generation or not state.exists:
            return False
        now = ports.clock.now()
        if ports.ledger.commit([PutState(replace(state, rev=state.rev + 1, wake_at=now), state)]) is None:
            ports.hints.send([kinds.ref(ScheduleState, schedule)], now, now)
            return True
    raise too_many_conflicts(f"waking the jobs of {schedule}", "it will be retried")


def _go_on(ports: Ports, schedule: str, pages: int | None) -> int:
    state = ports.rows.get(ScheduleState, schedule)
    if state is None or state.wake_at is None:
        return 0
    woken, inherited = 0, Inherited(ports, state.schedule)
    read = partial(ports.jobs.jobs, state.schedule, state.generation)
    for number, page in enumerate(every_page(read, BATCH_SIZE, state.woken_to), start=1):
        woken += _wake_page(ports, page, inherited)
        if page.cursor is None:
            ports.ledger.commit([ClearStateWake(state)])
        elif ports.ledger.commit([MarkWoken(state, page.cursor)]) is not None:
            break  # the state has changed: that change wakes the jobs
        elif number == pages or not ports.has_time(TIME_FOR_PAGE):
            now = ports.clock.now()
            ports.hints.send([kinds.ref(ScheduleState, schedule)], now, now)
            break
    return woken


def _wake_page(ports: Ports, page: Page[Job], inherited: Inherited | None) -> int:
    """Wake the jobs of a page, and hint them. Returns how many refs were hinted."""
    jobs = [job for job in page.items if not job.closed]
    together = _woken_together(ports, [job for job in jobs if job.queued_in is None])
    alone = [job for job in jobs if job.sort_key not in together]
    found = [ref_of(job) for job in jobs if job.sort_key in together]
    found += [ref for job in alone for ref in _wake(ports, job, inherited)]
    refs = list(dict.fromkeys(found))
    if refs:
        now = ports.clock.now()
        ports.hints.send(refs, now, now)
    return len(refs)


def _woken_together(ports: Ports, jobs: Sequence[Job]) -> frozenset[str]:
    """Wake jobs of a schedule that stand in no queue, in transactions. Returns the sort keys of those that were woken;
    the others have changed, are not due, or are few."""
    now = ports.clock.now()
    due = [job for job in jobs if job.due_at is None or job.due_at <= now]
    woken: set[str] = set()
    for start in range(0, len(due) if len(due) > MAX_SINGLE else 0, TOGETHER):
        writes = committed(ports, [Replace(_woken(job, now)) for job in due[start : start + TOGETHER]])
        woken |= {write.row.sort_key for write in writes if isinstance(write, Replace) and isinstance(write.row, Job)}
    return frozenset(woken)


def _wake_queue(ports: Ports, limit_name: str, now: Instant) -> Ref:
    """Wake the queue of a limit, and return the ref to hint. A raised limit may have permits for the head now."""
    state = ports.jobs.limit_state(limit_name)
    if state.wake_at is not None and state.wake_at > now:
        ports.ledger.commit([LeaseQueue(limit_name, state.wake_at, now)])
    return limit_ref(limit_name)


def _wake(ports: Ports, job: Job, inherited: Inherited | None) -> tuple[Ref, ...]:
    """Set a job's ``wake_at`` to now, and return the refs to hint; none if the job is not due or no longer waits.

    A conflict means that another invocation checked the job on older facts, so try again. Raises RuntimeError after
    ``MAX_CONFLICTS`` conflicts in a row.
    """
    for _ in range(MAX_CONFLICTS):
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
        job = queues.regained(ports, current)
    raise too_many_conflicts(f"waking job {job.job_id}", "it will be retried")


def _woken(job: Job, at: Instant | None) -> Job:
    return replace(job, wake_at=at, leases=0, rev=job.rev + 1)


def _wake_queued(
    ports: Ports, job: Job, limit_name: str, inherited: Inherited | None, now: Instant
) -> tuple[Ref, ...] | None:  # fmt: skip
    """Wake a queued job through its queue. Returns the refs to hint; None after a conflict.

    The revision of the job is raised as well, so a concurrent decision on older facts conflicts.
    """
    known = facts.read(ports, job) if inherited is not None else None
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
        current = ports.rows.get(Job, job.schedule, job.generation, sort_key)
        if current is not None and current.job_id == job.job_id and not current.closed:
            return current
    return None
