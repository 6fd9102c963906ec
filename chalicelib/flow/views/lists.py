"""Lists of waiting jobs, runs and records, page by page, and how many jobs wait. A cursor is opaque to callers.

Each waiting job of a namespace is in exactly one of three sparse lists, so that no list goes schedule by schedule. One
with a ``wake_at`` is in the wake index. One in a queue without a deadline is in the queue of its limit, whose row is
in the wake index while jobs wait. All others, which an event, a person or a resume wakes, are in the list `waits` of
their namespace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import Any, TypeVar

from chalicelib.core import errors, ids, states
from chalicelib.core.instants import Instant
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import many
from chalicelib.ports import Page, Ports, Soonest

T = TypeVar("T")
Place = tuple[str, int, str]
ReadOf = Callable[[str, str, int, str | None], Page[T]]  # by scope and name

MAX_DAYS = 14  # that one request reads: each day costs one query per shard
EVER: Instant = 253_402_300_799_000  # the end of the year 9999
MAX_READ = 2_000  # rows that one request reads
MAX_KEYS = 10_000  # entries of a wake index that one request reads: 150 units or so
MAX_LIMITS = 500  # limits with waiting jobs whose queues one request reads
MAX_PASSED = 5_000  # waiters that one request passes because another list has their jobs
AT_ONCE = 1_000  # waiters that one call reads, about 250 kB
PAGE = 5_000  # entries of an index in one read of a count, less than 1 MB
MAX_COUNTED = 100_000  # entries that one count reads: 1,500 units or so


def jobs_of_schedule(ports: Ports, schedule: str, limit: int, cursor: str | None) -> Page[Job]:
    schedule_state = ports.rows.get(ScheduleState, schedule)
    if schedule_state is None:
        return Page(())
    page = ports.jobs.jobs(schedule, schedule_state.generation, limit, cursor)
    return Page(tuple(job for job in page.items if not job.closed), page.cursor)


def of_namespace(
    read: ReadOf[T], namespace: str, days: Sequence[str], limit: int, cursor: str | None
) -> Page[T]:  # fmt: skip
    """Rows of these days, which are sorted, newest first. One request reads a bounded number of days, so a page may
    hold fewer than ``limit``, even none, and still have a next one."""
    begin, inner = parse_cursor(cursor)
    left = [day for day in days if begin is None or day <= begin]
    found: list[T] = []
    for each in left[:MAX_DAYS]:
        page = read("day", f"{namespace}#{each}", limit - len(found), inner if each == begin else None)
        found += page.items
        if page.cursor is not None:
            return Page(tuple(found), json.dumps([each, page.cursor]))
        if len(found) >= limit:
            older = next((other for other in left if other < each), None)
            return Page(tuple(found), json.dumps([older, None]) if older else None)
    return Page(tuple(found), json.dumps([left[MAX_DAYS], None]) if len(left) > MAX_DAYS else None)


def parse_cursor(cursor: str | None) -> tuple[str | None, str | None]:
    """The schedule or day at which a page begins, and the cursor within it. Raises ``bad_cursor``."""
    if cursor is None:
        return None, None
    try:
        match json.loads(cursor):
            case [str(outer), (str() | None) as inner]:
                return outer, inner
    except (ValueError, RecursionError):
        pass
    raise errors.bad_cursor()


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
    return _jobs(ports, ((ref.parts[0], int(ref.parts[1], 36), ref.parts[2]) for ref in refs))


def of_waiters(ports: Ports, waiters: Iterable[Waiter]) -> list[Job]:
    """The jobs that stand in a queue, in its order. Runs that queue to be started again are left out."""
    own = (each for each in waiters if each.run is None)
    return _jobs(ports, ((each.job_schedule, each.job_generation, each.job_sort_key) for each in own))


def limits_among(waking: Soonest, namespace: str) -> tuple[list[str], bool]:
    """The names of the limits at which jobs of a namespace may wait, among the rows that a read of the wake index of
    jobs has found, and whether there may be more."""
    named = {ref.parts[0] for ref, _ in waking.refs if ref.kind == "limit"}
    found = sorted(name for name in named if may_hold(name, namespace))
    return found[:MAX_LIMITS], len(found) > MAX_LIMITS or waking.complete_to is not None


def active_runs(
    ports: Ports, namespace: str, most: int, keys: int = MAX_KEYS, strong: bool = True
) -> tuple[list[Run], bool]:
    """The runs in progress of a namespace, of ``most`` that are read, and whether there may be more. Each has a
    ``wake_at``, at which its target is polled."""
    waking = ports.wakes.soonest("runs", 0, EVER, keys)
    own = [ref for ref, _ in waking.refs if ref.kind == "run" and ref.parts[0].startswith(f"{namespace}.")]
    found = ports.runs.several([(ref.parts[0], int(ref.parts[1])) for ref in own[:most]], strong=strong)
    running = [run for run in found if not states.is_terminal(run.state)]
    return running, len(own) > most or waking.complete_to is not None


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
    waking = ports.wakes.soonest("jobs", 0, EVER, MAX_KEYS)
    listed = {ref.parts for ref, _ in waking.refs if ref.kind == "job"}
    left = _queues_from(cursor, limits_among(waking, namespace)[0])
    found: list[Job] = []
    passed = 0
    while left and len(found) < limit and passed < MAX_PASSED:
        name, start = left[0]
        size, page = _next_waiters(ports, name, limit - len(found), start, listed)
        for job in of_waiters(ports, page.items):
            if job.queued_in == name and job.wake_at is None and is_shown(job.schedule, namespace):
                found.append(job)
        passed += size
        left[:1] = [(name, page.cursor)] if page.cursor is not None else []
    return Page(tuple(found), json.dumps(left[0]) if left else None)


def _queues_from(cursor: str | None, limit_names: Sequence[str]) -> list[tuple[str, str | None]]:
    """The queues from a cursor on, each with the cursor at which it is read on."""
    begin, inner = parse_cursor(cursor)
    return [(name, inner if name == begin else None) for name in limit_names if begin is None or name >= begin]


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


def _jobs(ports: Ports, names: Iterable[tuple[str, int, str]]) -> list[Job]:
    return [job for job in many.rows(ports, Job, names, strong=False) if not job.closed]


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


def count(ports: Ports, namespace: str, most: int) -> int:
    """The number of jobs that wait in a namespace, at most ``most``. Fires that are prepared ahead count, deliveries of
    messages do not. Each event of a large fire counts until its bundle is settled, because only keys are read. A count
    reads `MAX_COUNTED` entries, so it is too low if as many jobs of other namespaces wake sooner."""
    found: set[Place] = set()
    events = 0
    for place in _places(ports, namespace):
        events += sort_keys.events_of(place[2]) if place not in found else 0
        found.add(place)
        if events >= most:
            break
    return min(events, most)


def _places(ports: Ports, namespace: str) -> Iterator[Place]:
    """The schedule, generation and sort key of each waiting job; a job with a ``wake_at`` in a queue comes twice."""
    left, limits = [MAX_COUNTED], set()
    for ref in _each(partial(ports.wakes.listed, "waits", namespace, PAGE), left):
        yield from _of_ref(ref, namespace)
    for ref, _ in _each(partial(ports.wakes.waking, "jobs", EVER, PAGE), left):
        if ref.kind == "limit" and may_hold(ref.parts[0], namespace):
            limits.add(ref.parts[0])
        yield from _of_ref(ref, namespace)
    for name in sorted(limits)[:MAX_LIMITS]:
        for waiter in _each(partial(ports.jobs.queue, name, PAGE), left):
            if waiter.run is None and is_shown(waiter.job_schedule, namespace):
                yield waiter.job_schedule, waiter.job_generation, waiter.job_sort_key


def _of_ref(ref: Ref, namespace: str) -> Iterator[Place]:
    if ref.kind == "job" and is_shown(ref.parts[0], namespace):
        yield ref.parts[0], int(ref.parts[1], 36), ref.parts[2]


def _each(read: Callable[[str | None], Page[T]], left: list[int]) -> Iterator[T]:
    """The items of all pages, while any of the budget is left. A page costs its items, and one."""
    cursor: str | None = None
    while left[0] > 0:
        page = read(cursor)
        left[0] -= len(page.items) + 1
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return
