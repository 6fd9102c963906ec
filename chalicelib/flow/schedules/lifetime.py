"""ending: a schedule whose life is over gathers no more, and is removed when its last job and run have ended (L10)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import lifetime
from chalicelib.core.instants import Instant
from chalicelib.core.limits import names
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import lifecycle
from chalicelib.core.triggers import tree
from chalicelib.core.writes import Replace, Write
from chalicelib.flow.backfills import backfill
from chalicelib.flow.jobs.drop import drain
from chalicelib.flow.lookup import definition_of
from chalicelib.flow.schedules.pauses import close
from chalicelib.ports import Ports

AT_ONCE = 10


def end(ports: Ports, schedule: str) -> str | None:
    """Do what the end of a schedule's life asks for, if it has come. Returns what was done, in a word.

    A lost race is left to the next look: the timer keeps its place in the wake index until its schedule is gone.
    """
    timer, gate, now = ports.catalog.timer(schedule), ports.catalog.gate(schedule), ports.clock.now()
    definition = definition_of(ports, gate)
    if timer is None or gate is None or definition is None or gate.generation != timer.generation:
        return None
    if timer.wake_at is None or timer.wake_at > now:
        return None
    match lifetime.decide(gate, timer, definition, now):
        case "complete":
            return _complete(ports, gate, timer, definition, now)
        case "remove" if not _is_idle(ports, gate, definition):
            return "waits" if ports.ledger.commit([Replace(lifetime.look_again(timer, gate, now))]) is None else None
        case "remove" | "delete":
            return _delete(ports, gate, definition, now)
        case _:
            return None


def _complete(ports: Ports, gate: ScheduleState, timer: Timer, schedule: Schedule, now: Instant) -> str | None:
    """What gathers is let go if its trigger is met, else put on record; the index no longer leads here."""
    _, plan = lifecycle.complete(gate, now, schedule)
    closed: list[Write] = [] if tree.is_single_time(schedule.trigger) else close(ports, gate, schedule, now)
    later = replace(lifetime.completed(timer, schedule, now), rev=timer.rev + 1)
    # The life is over: whatever is left of it now is removed as soon as it has ended.
    later = replace(later, wake_at=now + lifetime.SOONEST_LOOK)
    if ports.ledger.commit([*plan, *closed, Replace(later)]) is not None:
        return None
    if closed:
        drain(ports, gate.schedule, gate.generation)
    if _is_idle(ports, gate, schedule):
        after = ports.catalog.gate(gate.schedule)
        return _delete(ports, after, schedule, now) if after is not None and after.mode == "completed" else None
    return "completed"


def _delete(ports: Ports, gate: ScheduleState, schedule: Schedule, now: Instant) -> str | None:
    _, plan = lifecycle.delete(gate, schedule, now, lifetime.BY)
    if ports.ledger.commit(plan) is not None:
        return None
    drain(ports, gate.schedule, gate.generation)
    backfill.notice(ports, gate.schedule)
    return "deleted"


def _is_idle(ports: Ports, gate: ScheduleState, schedule: Schedule) -> bool:
    """Whether nothing is left of a generation. What could not be delivered is left, too: it can be redriven as long as
    its schedule is there (E6). All reads are strong, for a removal cannot be taken back.

    Jobs are read before and after the runs and the dead letters. A job becomes a run or a dead letter, a run leaves a
    retry, a dead letter becomes a job, each in one transaction. So what moves meanwhile is seen on one side."""
    if any(row.state == "RUNNING" for row in ports.jobs.backfills(gate.schedule)):
        return False
    if _has_jobs(ports, gate) or _has_runs(ports, gate, schedule) or ports.runs.has_dead_letter(gate.schedule):
        return False
    return not _has_jobs(ports, gate)


def _has_jobs(ports: Ports, gate: ScheduleState) -> bool:
    cursor: str | None = None
    while True:
        page = ports.jobs.jobs(gate.schedule, gate.generation, AT_ONCE, cursor)
        if any(not job.closed or job.job_id for job in page.items):
            return True
        if page.cursor is None:
            return False
        cursor = page.cursor


def _has_runs(ports: Ports, gate: ScheduleState, schedule: Schedule) -> bool:
    """Whether a run of this generation lives. Of a crowd that is not remembered one by one, one may be among them."""
    line = ports.jobs.line(names.workflow_limit(schedule.workflow))
    own = f"{gate.schedule}.{ids.base36(gate.generation)}."
    return line.active > len(line.starts) or any(holder.startswith(own) for holder in line.starts)
