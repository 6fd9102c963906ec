"""sweep: find what is overdue because a hint was lost or a Lambda died, and hint it again (O3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Literal, TypeVar

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.event import Outbox
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.notice import DeadlineWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import metrics
from chalicelib.core.system import sweep
from chalicelib.core.writes import Put, Replace
from chalicelib.flow.each import run_each
from chalicelib.log import logger
from chalicelib.ports import Ports

T = TypeVar("T")
Row = NoticeWindow | Backfill | DagRun | Job | PendingNotice | Run | DeadlineWatch | Outbox
Found = Row | LimitState | ScheduleState
NEXT_TICK = 75 * SECOND  # and a margin for one that comes late
TABLES: tuple[tuple[Literal["jobs", "runs", "catalog"], Millis], ...] = (
    ("jobs", sweep.GRACE),
    ("runs", 0),  # of a row among them that is hinted besides, the grace is minded when it is read
    ("catalog", sweep.GRACE),
)


def sweep_all(ports: Ports, tick_began: Instant | None = None) -> int:
    """Hint and lease every overdue row of a bounded number, oldest first, a slice at a time. Returns how many were
    hinted. What a dying or a slow tick does not reach is hinted by the next one; one slice is done in any case."""
    now = ports.clock.now()
    ends_at = (now if tick_began is None else tick_began) + sweep.MAX_TICK
    rumours = [ref for table, grace in TABLES for ref in ports.wakes.overdue(table, now - grace, sweep.MAX_ROWS)]
    failed: list[Exception] = []
    hinted = asked = oldest = 0
    for start in range(0, len(rumours), sweep.SLICE):
        if start and ports.clock.now() >= ends_at:
            logger.warning("sweep broken off", extra={"left": len(rumours) - start})
            break
        found: list[tuple[Ref, Found]] = []
        failed += _failures(rumours[start : start + sweep.SLICE], partial(_examine, ports, now, found))
        oldest = max([oldest, *(now - row.wake_at for _, row in found if row.wake_at is not None)])
        questions = [ref for ref, row in found if sweep.is_question(row, now)]
        plain = [ref for ref, _ in found if ref not in questions]
        told = [*([(now, plain)] if plain else []), *sweep.in_slices(questions, now, asked)]
        if told:
            # The hints come before the leases, so that no row is leased without a hint. Their receivers come later.
            # While the queue is down no row is leased: the first tick after that finds all of them.
            ports.hints.send_all(told, now, False, True, True)
        failed += _failures(found, partial(_lease, ports, now))
        hinted, asked = hinted + len(found), asked + len(questions)
    ports.metrics.add(metrics.OVERDUE_AGE, oldest)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {hinted} overdue rows failed", failed)
    return hinted


def hint_soon(ports: Ports) -> int:
    """Hint the jobs whose instant comes before the next tick: windows that open, delays and timeouts that end. A wait
    that is longer than a message can be delayed needs no message until then."""
    now = ports.clock.now()
    upcoming = ports.wakes.upcoming(now - sweep.GRACE, now + NEXT_TICK, sweep.MAX_ROWS)
    groups = groupby(upcoming, key=lambda found: found[1])
    if told := [(due, [ref for ref, _ in group]) for due, group in groups]:
        ports.hints.send_all(told, now)
    return len(upcoming)


def _examine(ports: Ports, now: Instant, found: list[tuple[Ref, Found]], ref: Ref) -> None:
    """Read the row strongly, and keep it if it is overdue indeed."""
    row = _read(ports, ref)
    if row is not None and sweep.overdue(row.wake_at, now, sweep.grace_of(row)):
        found.append((ref, row))


def _lease(ports: Ports, now: Instant, found: tuple[Ref, Found]) -> None:
    """Leave the row alone for a while: it has been hinted. A lost race means that somebody attends to it already. A
    line and a gate are leased by their receivers."""
    ref, row = found
    if isinstance(row, LimitState | ScheduleState):
        return
    lease = sweep.lease(row, now)
    if lease.parked:
        hint = "it keeps failing; see its reason"
        logger.error("parked", extra={"ref": ref, "leases": row.leases, "hint": hint})
        ports.metrics.add(metrics.ROWS_PARKED, 1)
    if isinstance(row, Outbox):
        ports.ledger.put_all([Put(replace(row, wake_at=lease.until, leases=row.leases + 1))])
    else:
        ports.ledger.commit([Replace(replace(row, wake_at=lease.until, leases=row.leases + 1, rev=row.rev + 1))])


def _failures(things: Sequence[T], act: Callable[[T], None]) -> Sequence[Exception]:
    """Act on each; what some raised, after all had their turn."""
    try:
        run_each(things, act)
    except ExceptionGroup as group:
        return group.exceptions
    return ()


def _read(ports: Ports, ref: Ref) -> Found | None:
    if ref.kind == "limit":
        return ports.jobs.limit_state(ref.parts[0])
    if ref.kind == "schedule":
        return ports.catalog.schedule_state(ref.parts[0])
    return _row(ports, ref)


def _row(ports: Ports, ref: Ref) -> Row | None:
    match ref.kind:
        case "job":
            schedule, generation, sort_key = ref.parts
            return ports.jobs.job(schedule, int(generation, 36), sort_key)
        case "backfill":
            return ports.jobs.backfill(*ref.parts)
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
