"""The jobs that wait in a namespace, found by three sparse lists instead of schedule by schedule.

Each waiting job is in exactly one of them. One with a ``wake_at`` is in the wake index. One in a queue without a
deadline is in the queue of its limit, whose row is in the wake index while jobs wait. All others, which an event, a
person or a resume wakes, are in the list `waits` of their namespace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence, Set
from typing import Any

from chalicelib.core import errors, ids
from chalicelib.core.instants import Instant
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.ref import Ref
from chalicelib.flow.views.lists import parse_cursor
from chalicelib.ports import Page, Ports, Soonest

EVER: Instant = 253_402_300_799_000  # the end of the year 9999
MAX_READ = 2_000  # rows that one request reads
MAX_KEYS = 10_000  # entries of a wake index that one request reads: 150 units or so
MAX_LIMITS = 500  # limits with waiting jobs whose queues one request reads
MAX_PASSED = 5_000  # waiters that one request passes because another list has their jobs
AT_ONCE = 1_000  # waiters that one call reads, about 250 kB


def jobs_of_namespace(ports: Ports, namespace: str, limit: int, cursor: str | None) -> Page[Job]:
    """One page of waiting jobs: those that no instant wakes, those with a ``wake_at``, then those in queues. Each list
    is about by age. A request reads a bounded number of rows, so a page may hold fewer than ``limit``, even none, and
    still have a next one. Raises ``bad_cursor``."""
    source, inner = _opened(cursor)
    read = (_listed, _waking)
    found: list[Job] = []
    left = MAX_READ
    while source < len(read):
        size = min(limit - len(found), left)
        page = read[source](ports, namespace, size, inner)
        found, left, inner = [*found, *page.items], left - size, page.cursor
        source = source if inner is not None else source + 1
        if len(found) >= limit or left <= 0:
            return Page(tuple(found), json.dumps([source, inner]))
    page = _queued(ports, namespace, limit - len(found), inner)
    return Page((*found, *page.items), json.dumps([source, page.cursor]) if page.cursor is not None else None)


def jobs_of_queue(ports: Ports, namespace: str, limit_name: str, limit: int, cursor: str | None) -> Page[Job]:
    """The jobs of a namespace in the queue of a limit, in the order in which it is served."""
    page = ports.jobs.queue(limit_name, limit, cursor)
    jobs = [job for job in of_waiters(ports, page.items) if job.queued_in == limit_name]
    return Page(tuple(job for job in jobs if is_shown(job.schedule, namespace)), page.cursor)


def is_shown(schedule: str, namespace: str) -> bool:
    """Whether a list of a namespace has the jobs of a schedule. Those of messages are no jobs to users."""
    return schedule.startswith(f"{namespace}.") and not ids.is_of_message(schedule)


def of_refs(ports: Ports, refs: Iterable[Ref]) -> list[Job]:
    """The jobs of these refs that still wait."""
    names = [(ref.parts[0], int(ref.parts[1], 36), ref.parts[2]) for ref in refs]
    return _jobs(ports, names)


def of_waiters(ports: Ports, waiters: Iterable[Waiter]) -> list[Job]:
    """The jobs that stand in a queue, in its order. Runs that queue to be started again are left out."""
    names = [(each.job_schedule, each.job_generation, each.job_sort_key) for each in waiters if each.run is None]
    return _jobs(ports, names)


def limits_with_waiters(ports: Ports, namespace: str) -> tuple[list[str], bool]:
    """The names of the limits at which jobs of a namespace may wait, and whether there may be more."""
    return limits_among(ports.wakes.soonest("jobs", 0, EVER, MAX_KEYS), namespace)


def limits_among(waking: Soonest, namespace: str) -> tuple[list[str], bool]:
    """The same, among the rows that a read of the wake index has found."""
    names = _limits_in(waking.refs, namespace)
    return names[:MAX_LIMITS], len(names) > MAX_LIMITS or waking.complete_to is not None


def _limits_in(waking: Iterable[tuple[Ref, Instant]], namespace: str) -> list[str]:
    """The limits with waiters that an index names, and at which jobs of a namespace may wait."""
    named = {ref.parts[0] for ref, _ in waking if ref.kind == "limit"}
    return sorted(name for name in named if may_hold(name, namespace))


def may_hold(limit_name: str, namespace: str) -> bool:
    """Whether jobs of a namespace may wait at a limit: at its own, or at those of all namespaces."""
    kind, _, name = limit_name.partition(":")
    return kind in ("emr", "application") or name.startswith(f"{namespace}.")


def _listed(ports: Ports, namespace: str, limit: int, cursor: str | None) -> Page[Job]:
    page = ports.wakes.listed("waits", namespace, limit, cursor)
    refs = [ref for ref in page.items if ref.kind == "job" and is_shown(ref.parts[0], namespace)]
    jobs = of_refs(ports, refs)
    return Page(tuple(job for job in jobs if job.wake_at is None and job.queued_in is None), page.cursor)


def _waking(ports: Ports, namespace: str, limit: int, cursor: str | None) -> Page[Job]:
    page = ports.wakes.waking("jobs", EVER, limit, cursor)
    refs = [ref for ref, _ in page.items if ref.kind == "job" and is_shown(ref.parts[0], namespace)]
    return Page(tuple(job for job in of_refs(ports, refs) if job.wake_at is not None), page.cursor)


def _queued(ports: Ports, namespace: str, limit: int, cursor: str | None) -> Page[Job]:
    """The queued jobs without a ``wake_at``, queue by queue. The wake index names the others: they are passed without a
    read of their rows."""
    begin, inner = parse_cursor(cursor)
    waking = ports.wakes.soonest("jobs", 0, EVER, MAX_KEYS).refs
    listed = {ref.parts for ref, _ in waking if ref.kind == "job"}
    names = [name for name in _limits_in(waking, namespace)[:MAX_LIMITS] if begin is None or name >= begin]
    found: list[Job] = []
    passed = 0
    for number, name in enumerate(names):
        start, going = inner if name == begin else None, True
        while going:
            size, page = _next_waiters(ports, name, limit - len(found), start, listed)
            jobs = of_waiters(ports, page.items)
            jobs = [job for job in jobs if job.queued_in == name and job.wake_at is None]
            found += [job for job in jobs if is_shown(job.schedule, namespace)]
            passed, start, going = passed + size, page.cursor, page.cursor is not None
            if going and (len(found) >= limit or passed >= MAX_PASSED):
                return Page(tuple(found), json.dumps([name, start]))
        if number + 1 < len(names) and (len(found) >= limit or passed >= MAX_PASSED):
            return Page(tuple(found), json.dumps([names[number + 1], None]))
    return Page(tuple(found))


def _next_waiters(
    ports: Ports, limit_name: str, limit: int, cursor: str | None, listed: Set[tuple[str, ...]]
) -> tuple[int, Page[Waiter]]:  # fmt: skip
    """How many waiters of a queue follow, and those of them whose jobs are not in ``listed``, at most ``limit``."""
    page = ports.jobs.queue(limit_name, max(limit, AT_ONCE), cursor)
    others = [number for number, waiter in enumerate(page.items) if _parts_of(waiter) not in listed]
    if len(others) > limit:  # the page ends behind the last one that fits
        page = ports.jobs.queue(limit_name, others[limit - 1] + 1, cursor)
    kept = tuple(waiter for waiter in page.items if _parts_of(waiter) not in listed)
    return len(page.items), Page(kept, page.cursor)


def _parts_of(waiter: Waiter) -> tuple[str, ...]:
    """The parts of the ref of a waiter's job."""
    return waiter.job_schedule, ids.base36(waiter.job_generation), waiter.job_sort_key


def _jobs(ports: Ports, names: Sequence[tuple[str, int, str]]) -> list[Job]:
    wanted: list[Key] = [kinds.key(Job, *name) for name in names]
    known = ports.prefetch.read(ports, wanted, strong=False)
    found = (known.rows.get(Job, *name) for name in names)
    return [job for job in found if job is not None and not job.closed]


def _opened(cursor: str | None) -> tuple[int, Any]:
    if cursor is None:
        return 0, None
    try:
        match json.loads(cursor):
            case [0 | 1 | 2 as source, (str() | None) as inner]:
                return int(source), inner
    except (ValueError, RecursionError):
        pass
    raise errors.bad_cursor()
