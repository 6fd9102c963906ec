"""Sweep: find rows that are overdue because a hint was lost or a Lambda crashed, and hint them again (O3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Literal, TypeVar

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.event import Outbox
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.notice import DeadlineWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.ref import Ref, is_deployment, is_grants, is_reprocess
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import metrics
from chalicelib.core.system import sweep
from chalicelib.core.writes import Put, Replace
from chalicelib.flow.each import run_each
from chalicelib.log import logger
from chalicelib.ports import Ports

T = TypeVar("T")
Row = NoticeWindow | Backfill | DagRun | Deployment | Job | PendingNotice | Reprocess | Run | DeadlineWatch | Outbox
Found = Row | GrantsRow | LimitState | ScheduleState
NEXT_TICK = 75 * SECOND  # a minute, and a margin for a late tick
TABLES: tuple[tuple[Literal["jobs", "runs", "catalog"], Millis], ...] = (
    ("jobs", sweep.GRACE),
    ("runs", 0),  # rows with a grace are filtered when they are read
    ("catalog", sweep.GRACE),
)


def sweep_all(ports: Ports, tick_began: Instant | None = None) -> int:
    """Hint and lease overdue rows, oldest first, slice by slice, up to a maximum. Returns how many were hinted.

    Rows that a slow or crashing tick does not reach are hinted by the next one. The first slice is handled in any case.
    Raises an ExceptionGroup of all errors at the end.
    """
    now = ports.clock.now()
    ends_at = (now if tick_began is None else tick_began) + sweep.MAX_TICK
    # Refs of an eventually consistent index: each row is read strongly before it counts as overdue.
    refs = [ref for table, grace in TABLES for ref in ports.wakes.overdue(table, now - grace, sweep.MAX_ROWS)]
    failed: list[Exception] = []
    hinted = asked = oldest = 0
    for start in range(0, len(refs), sweep.SLICE):
        if start and ports.clock.now() >= ends_at:
            logger.warning("sweep broken off", extra={"left": len(refs) - start})
            break
        found: list[tuple[Ref, Found]] = []
        failed += _failures(refs[start : start + sweep.SLICE], partial(_examine, ports, now, found))
        oldest = max([oldest, *(now - row.wake_at for _, row in found if row.wake_at is not None)])
        polls = [ref for ref, row in found if sweep.is_question(row, now)]
        plain = [ref for ref, _ in found if ref not in polls]
        hints = [*([(now, plain)] if plain else []), *sweep.in_slices(polls, now, asked)]
        if hints:
            # Hints are sent before the leases, so no row is leased without a hint. They are delayed until after them.
            # While the queue is down this raises and no row is leased, so the first tick after that finds all rows.
            ports.hints.send_all(hints, now, False, True, True)
        failed += _failures(found, partial(_lease, ports, now))
        hinted, asked = hinted + len(found), asked + len(polls)
    ports.metrics.add(metrics.OVERDUE_AGE, oldest)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {hinted} overdue rows failed", failed)
    return hinted


def hint_soon(ports: Ports) -> int:
    """Hint the jobs whose ``wake_at`` comes before the next tick: windows that open, delays and timeouts that end.

    Returns how many jobs were hinted. A wait longer than the maximum delay of a message needs no other hint.
    """
    now = ports.clock.now()
    upcoming = ports.wakes.upcoming(now - sweep.GRACE, now + NEXT_TICK, sweep.MAX_ROWS)
    groups = groupby(upcoming, key=lambda found: found[1])
    if hints := [(due, [ref for ref, _ in group]) for due, group in groups]:
        ports.hints.send_all(hints, now)
    return len(upcoming)


def _examine(ports: Ports, now: Instant, found: list[tuple[Ref, Found]], ref: Ref) -> None:
    """Read the row strongly, and add it to ``found`` if it is overdue."""
    row = _read(ports, ref)
    if row is not None and sweep.overdue(row.wake_at, now, sweep.grace_of(row)):
        found.append((ref, row))


def _lease(ports: Ports, now: Instant, found: tuple[Ref, Found]) -> None:
    """Lease a row that was hinted, so that the next sweep skips it. A lost race means that a step already handles it.

    The receiver of the hint leases a limit itself, and clears the ``wake_at`` of a schedule state and of grants.
    """
    ref, row = found
    if isinstance(row, GrantsRow | LimitState | ScheduleState):
        return
    lease = sweep.lease(row, now)
    if lease.parked:
        hint = "this row keeps failing; see its reason"
        logger.error("parked", extra={"ref": ref, "leases": row.leases, "hint": hint})
        ports.metrics.add(metrics.ROWS_PARKED, 1)
    if isinstance(row, Outbox):
        ports.ledger.put_all([Put(replace(row, wake_at=lease.until, leases=row.leases + 1))])
    else:
        ports.ledger.commit([Replace(replace(row, wake_at=lease.until, leases=row.leases + 1, rev=row.rev + 1))])


def _failures(things: Sequence[T], act: Callable[[T], None]) -> Sequence[Exception]:
    """Act on each thing. Returns the errors."""
    try:
        run_each(things, act)
    except ExceptionGroup as group:
        return group.exceptions
    return ()


def _read(ports: Ports, ref: Ref) -> Found | None:
    if ref.kind == "limit":
        return ports.jobs.limit_state(ref.parts[0])
    if ref.kind == "schedule":
        name = ref.parts[0]
        return ports.catalog.grants(name) if is_grants(ref) else ports.catalog.schedule_state(name)
    return _row(ports, ref)


def _row(ports: Ports, ref: Ref) -> Row | None:
    match ref.kind:
        case "job":
            schedule, generation, sort_key = ref.parts
            return ports.jobs.job(schedule, int(generation, 36), sort_key)
        case "backfill" if is_deployment(ref):
            return ports.jobs.deployment(*ref.parts)
        case "backfill":
            return ports.jobs.reprocess(*ref.parts) if is_reprocess(ref) else ports.jobs.backfill(*ref.parts)
        case "run":
            return ports.runs.run(ref.parts[0], int(ref.parts[1]))
        case "notice":
            return ports.jobs.notice(*ref.parts)
        case "deadline":
            return ports.jobs.deadline(ref.parts[0])
        case "notice_window":
            return ports.jobs.notice_window(*ref.parts)
        case "dag_run":
            return ports.runs.dag_run(ref.parts[0])
        case "partition":
            return ports.catalog.partition(ref.parts[0], ref.parts[1:])
        case "object":
            return ports.catalog.stored_object(*ref.parts)
        case "event":
            return ports.jobs.posted(ref.parts[0])
        case _:
            return None
