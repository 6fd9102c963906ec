"""End schedules: an ended schedule gathers no more, and is removed when its last job and run have ended (L10)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import lifetime
from chalicelib.core.instants import Instant
from chalicelib.core.limits import names
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import lifecycle
from chalicelib.core.triggers import tree
from chalicelib.core.writes import Replace, Write
from chalicelib.flow import lookup
from chalicelib.flow.backfills import backfill
from chalicelib.flow.jobs.drop import drain
from chalicelib.flow.lookup import definition_of
from chalicelib.flow.schedules.pauses import close
from chalicelib.ports import Ports

BATCH_SIZE = 10


def end(ports: Ports, schedule: str) -> str | None:
    """Complete, remove or delete a schedule that has reached its end. Returns what was done, in a word, or None.

    A conflict is left to the next check: the timer stays in the wake index until its schedule is deleted.
    """
    timer, schedule_state, now = (
        ports.rows.get(Timer, schedule),
        ports.rows.get(ScheduleState, schedule),
        ports.clock.now(),
    )
    definition = definition_of(ports, schedule_state)
    if timer is None or schedule_state is None or definition is None or schedule_state.generation != timer.generation:
        return None
    if timer.wake_at is None or timer.wake_at > now:
        return None
    match lifetime.decide(schedule_state, timer, definition, now):
        case "complete":
            return _complete(ports, schedule_state, timer, definition, now)
        case "remove" if not _is_idle(ports, schedule_state, definition):
            return (
                "waits"
                if ports.ledger.commit([Replace(lifetime.check_again(timer, schedule_state, now))]) is None
                else None
            )
        case "remove" | "delete":
            return _delete(ports, schedule_state, definition, now)
        case _:
            return None


def _complete(
    ports: Ports, schedule_state: ScheduleState, timer: Timer, schedule: Schedule, now: Instant
) -> str | None:
    """Complete the schedule: its gathering job may start if its trigger is met, else it goes on record.

    The schedule's subscriptions are deleted, so no event reaches it any more.
    """
    _, plan = lifecycle.complete(schedule_state, now, schedule)
    closed: list[Write] = [] if tree.is_single_time(schedule.trigger) else close(ports, schedule_state, schedule, now)
    later = replace(lifetime.completed(timer, schedule, now), rev=timer.rev + 1)
    # The schedule has ended. It is removed soon after its last job and run have ended.
    later = replace(later, wake_at=now + lifetime.MIN_CHECK_PAUSE)
    if ports.ledger.commit([*plan, *closed, Replace(later)]) is not None:
        return None
    if closed:
        drain(ports, schedule_state.schedule, schedule_state.generation)
    if _is_idle(ports, schedule_state, schedule):
        after = ports.rows.get(ScheduleState, schedule_state.schedule)
        return _delete(ports, after, schedule, now) if after is not None and after.mode == "completed" else None
    return "completed"


def _delete(ports: Ports, schedule_state: ScheduleState, schedule: Schedule, now: Instant) -> str | None:
    _, plan = lifecycle.delete(schedule_state, schedule, now, lifetime.BY)
    if ports.ledger.commit(plan) is not None:
        return None
    drain(ports, schedule_state.schedule, schedule_state.generation)
    backfill.notice(ports, schedule_state.schedule)
    return "deleted"


def _is_idle(ports: Ports, schedule_state: ScheduleState, schedule: Schedule) -> bool:
    """Whether the generation has no job, no unfinished run, no backfill and no dead letter.

    A dead letter counts because it can be redriven as long as its schedule exists (E6). All reads are strong, because a
    removal is final. Jobs are read before and after the runs and the dead letters. A job becomes a run or a dead
    letter, a run leaves a retry, a dead letter becomes a job, each in one transaction. So one of the reads finds work
    that moves between them.
    """
    if any(row.state == "RUNNING" for row in ports.jobs.backfills(schedule_state.schedule)):
        return False
    if (
        _has_jobs(ports, schedule_state)
        or _has_runs(ports, schedule_state, schedule)
        or ports.runs.has_dead_letter(schedule_state.schedule)
    ):
        return False
    return not _has_jobs(ports, schedule_state)


def _has_jobs(ports: Ports, schedule_state: ScheduleState) -> bool:
    jobs = partial(ports.jobs.jobs, schedule_state.schedule, schedule_state.generation)
    return any(not job.closed or job.job_id for job in lookup.every(jobs, BATCH_SIZE))


def _has_runs(ports: Ports, schedule_state: ScheduleState, schedule: Schedule) -> bool:
    """Whether a run of this generation may be unfinished. True if the limit has more runs than it names."""
    state = ports.jobs.limit_state(names.workflow_limit(schedule.workflow))
    own = f"{schedule_state.schedule}.{ids.base36(schedule_state.generation)}."
    return state.active > len(state.starts) or any(holder.startswith(own) for holder in state.starts)
