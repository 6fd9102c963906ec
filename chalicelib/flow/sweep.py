"""sweep: find whatever is overdue because a hint was lost or a Lambda died, and hint it again (O3)."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Literal

from chalicelib.core import sweep
from chalicelib.core.calendar import SECOND, Instant, Millis
from chalicelib.core.lines import LineState
from chalicelib.core.rows import Alert, Backfill, DagRun, Gate, Job, Note, Outbox, Run, Watch
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import Put, Replace
from chalicelib.flow.alone import each_alone
from chalicelib.log import logger
from chalicelib.ports import Ports

Row = Alert | Backfill | DagRun | Job | Note | Run | Watch | Outbox
NEXT_TICK = 75 * SECOND  # and a margin for one that comes late
TABLES: tuple[tuple[Literal["jobs", "runs", "catalog"], Millis], ...] = (
    ("jobs", sweep.GRACE),
    ("runs", 0),  # of a row among them that is hinted besides, the grace is minded when it is read
    ("catalog", sweep.GRACE),
)


def sweep_all(ports: Ports) -> int:
    """Lease and hint every overdue row of a bounded number, oldest first. Returns how many were hinted."""
    now = ports.clock.now()
    hinted: list[Ref] = []
    questions: list[Ref] = []

    def look(ref: Ref) -> None:
        row = _confirm(ports, ref, now)
        if row is not None:
            (questions if sweep.is_question(row, now) else hinted).append(ref)

    rumours = [ref for table, grace in TABLES for ref in ports.wakes.overdue(table, now - grace, sweep.MOST_ROWS)]
    try:
        each_alone(rumours, look)
    finally:
        if told := [*([(now, hinted)] if hinted else []), *sweep.in_turns(questions, now)]:
            ports.hints.send_all(told, now)
    return len(hinted) + len(questions)


def hint_soon(ports: Ports) -> int:
    """Hint the jobs whose instant comes before the next tick: windows that open, delays and timeouts that end. A wait
    that is longer than a message can be delayed needs no message until then."""
    now = ports.clock.now()
    upcoming = ports.wakes.upcoming(now - sweep.GRACE, now + NEXT_TICK, sweep.MOST_ROWS)
    groups = groupby(upcoming, key=lambda found: found[1])
    if told := [(due, [ref for ref, _ in group]) for due, group in groups]:
        ports.hints.send_all(told, now)
    return len(upcoming)


def _confirm(ports: Ports, ref: Ref, now: Instant) -> Row | LineState | Gate | None:
    """Read the row strongly; if it is overdue indeed, lease it. A lost race means that somebody attends to it."""
    if ref.kind == "line":
        line = ports.jobs.line(ref.parts[0])
        return line if sweep.overdue(line.wake_at, now) else None
    if ref.kind == "gate":
        gate = ports.catalog.gate(ref.parts[0])
        return gate if gate is not None and sweep.overdue(gate.wake_at, now) else None
    row = _row(ports, ref)
    if row is None or not sweep.overdue(row.wake_at, now, sweep.grace_of(row)):
        return None
    lease = sweep.lease(row, now)
    if lease.parked:
        logger.error("parked", extra={"ref": ref, "leases": row.leases, "hint": "it keeps failing; see its reason"})
    if isinstance(row, Outbox):
        ports.ledger.put_all([Put(replace(row, wake_at=lease.until, leases=row.leases + 1))])
        return row
    leased = replace(row, wake_at=lease.until, leases=row.leases + 1, rev=row.rev + 1)
    return leased if ports.ledger.commit([Replace(leased)]) is None else None


def _row(ports: Ports, ref: Ref) -> Row | None:
    match ref.kind:
        case "job":
            schedule, generation, place = ref.parts
            return ports.jobs.job(schedule, int(generation, 36), place)
        case "backfill":
            return ports.jobs.backfill(*ref.parts)
        case "run":
            return ports.runs.run(ref.parts[0], int(ref.parts[1]))
        case "note":
            return ports.jobs.note(*ref.parts)
        case "watch":
            return ports.jobs.watch(ref.parts[0])
        case "alert":
            return ports.jobs.alert(*ref.parts)
        case "dag_run":
            return ports.runs.dag_run(ref.parts[0])
        case "partition":
            return ports.catalog.partition(ref.parts[0], ref.parts[1:])
        case "object":
            return ports.catalog.stored_object(*ref.parts)
        case "posted":
            return ports.jobs.posted(ref.parts[0])
        case _:
            return None
