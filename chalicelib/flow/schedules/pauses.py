"""Pause and resume a schedule, and skip single occurrences (L4, L19). An acknowledged change is final."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.core import errors
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.fires import fire, walls
from chalicelib.core.fires import upcoming as fire_upcoming
from chalicelib.core.instants import Instant, iso
from chalicelib.core.jobs import check, gather
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.schedules import lifecycle
from chalicelib.core.schedules.lifecycle import PauseMode
from chalicelib.core.states import PAUSED_MODES, Mode
from chalicelib.core.why import NONE
from chalicelib.core.writes import Create, DeleteJob, Put, Replace, Write
from chalicelib.flow import lookup, many, wake
from chalicelib.flow.fires import calendars
from chalicelib.flow.fires.emit import emit_soon
from chalicelib.flow.jobs.drop import drain
from chalicelib.flow.limits import queues
from chalicelib.flow.lookup import existing
from chalicelib.ports import MAX_CONFLICTS, Ports

SHOWN = 3  # upcoming fires that an error hint names


def pause(
    ports: Ports, name: str, mode: PauseMode, by: str, stop_timeouts: bool = False, reason: str = ""
) -> ScheduleState:
    """Pause a schedule and return its state.

    ``hold``: waiting jobs stay, and the gathering job continues to gather. ``backlog``: each match becomes a separate
    job. ``drain``: met jobs may start, and no new events count. Raises ``conflict`` if the schedule is not running.
    """
    for _ in range(MAX_CONFLICTS):
        schedule_state, schedule = existing(ports, name)
        now = ports.clock.now()
        stands_still = any(ended is None for _, ended in schedule_state.pauses)
        if schedule_state.mode == mode and stop_timeouts == stands_still:
            return schedule_state
        if schedule_state.mode not in ("enabled", *PAUSED_MODES):
            raise _not_running(schedule_state, "pause")
        timer = lookup.timer_of(ports, schedule_state, schedule) if mode == "drain" else None
        after, plan = lifecycle.pause(schedule_state, schedule, mode, stop_timeouts, now, by, reason, timer)
        plan += close(ports, schedule_state, schedule, now) if mode == "drain" else _reopened(ports, schedule_state)
        if ports.ledger.commit(plan) is None:
            if mode == "drain":
                drain(ports, name, schedule_state.generation)
            wake.all_of(ports, name)
            return after
    raise errors.changed_meanwhile(f"schedule {name}")


def resume(ports: Ports, name: str, by: str) -> ScheduleState:
    """Resume a paused schedule with the jobs that waited (L4). Returns its state.

    An enabled schedule does not change. Neither does a completed one: a repeated request may find that the schedule was
    completed by its last fire. Raises ``conflict`` in any other mode.
    """
    for _ in range(MAX_CONFLICTS):
        schedule_state, schedule = existing(ports, name)
        if schedule_state.mode in ("enabled", "completed"):
            return schedule_state
        if schedule_state.mode not in PAUSED_MODES:
            raise _not_running(schedule_state, "resume")
        after, plan = lifecycle.resume(schedule_state, schedule, ports.clock.now(), by)
        if ports.ledger.commit([*plan, *_reopened(ports, schedule_state)]) is None:
            calendars.after_change(ports, name, schedule)
            emit_soon(ports, name)
            wake.all_of(ports, name)
            return after
    raise errors.changed_meanwhile(f"schedule {name}")


def pause_dag(ports: Ports, start: str, mode: PauseMode, by: str, stop_timeouts: bool = False) -> ScheduleState:
    """Pause the start of a DAG, and hold the nodes of its runs. Returns the state of the start. A drain leaves the
    nodes as they are: runs that have begun go on to their end. Raises ``conflict`` if the DAG is not running."""
    after = pause(ports, start, mode, by, stop_timeouts)
    for node in _nodes(ports, start, ("enabled", *PAUSED_MODES)) if mode != "drain" else ():
        pause(ports, node, "hold", by, stop_timeouts)
    return after


def resume_dag(ports: Ports, start: str, by: str) -> ScheduleState:
    """Resume the nodes of a paused DAG, and its start. Returns the state of the start."""
    after = resume(ports, start, by)
    for node in _nodes(ports, start, PAUSED_MODES):
        resume(ports, node, by)
    return after


def _nodes(ports: Ports, start: str, modes: Sequence[Mode]) -> list[str]:
    """The nodes of a DAG, those of its former graphs included, that have one of these modes."""
    app, _, short = start.rpartition(".")
    names = [name for name in lookup.schedules_of(ports, app, beginning=short) if name != start]
    return [state.schedule for state in many.states(ports, names)[1] if state.mode in modes]


def skip(ports: Ports, name: str, at: Instant, by: str, wanted: bool = True) -> ScheduleState:
    """Skip one upcoming occurrence of the schedule's times, or restore it (``wanted`` False). Returns the schedule
    state. Raises ``invalid`` for an instant that is no upcoming occurrence, and for too many skips."""
    for _ in range(MAX_CONFLICTS):
        schedule_state, schedule = existing(ports, name)
        now = ports.clock.now()
        if (at in schedule_state.skips) == wanted:
            return schedule_state
        if wanted and schedule_state.mode == "disabled":
            # Enabling starts a new generation, which would silently discard the skip.
            raise _not_running(schedule_state, "skip an occurrence of")
        if wanted:
            _check_occurrence(ports, name, schedule, at, now)
        offset = walls.offset_of(schedule, schedule_state.since, at) if wanted else None
        timer = ports.rows.get(Timer, name)
        after, plan = lifecycle.skip(schedule_state, schedule, at, wanted, now, by, offset, timer)
        if len(after.skips) > lifecycle.MAX_SKIPS:
            hint = "disable or pause the schedule to leave out more"
            raise invalid("at", f"at most {lifecycle.MAX_SKIPS} skipped occurrences", "one more", hint)
        if wanted:
            ports.ledger.count_closing(name.partition(".")[0])
        if ports.ledger.commit(plan) is None:
            return after
    raise errors.changed_meanwhile(f"schedule {name}")


def close(ports: Ports, schedule_state: ScheduleState, schedule: Schedule, now: Instant) -> list[Write]:
    """The writes that put a tombstone over the gathering job, so that no more events count.

    A job whose trigger is met is detached and keeps its position in a queue. An unmet job stays under the tombstone
    until the drain puts it on record.
    """
    job = ports.rows.get(Job, schedule_state.schedule, schedule_state.generation, GATHERING)
    if job is None:
        blank = Job(
            schedule_state.schedule, schedule_state.generation, GATHERING, "", "gathering", "PENDING_TRIGGER", now
        )
        return [Create(replace(blank, closed=True, wake_at=now))]
    if job.closed:
        return []
    job = queues.regained(ports, job)
    under = replace(job, closed=True, wake_at=now, rev=job.rev + 1)
    verdict = check.verdict_of(job, schedule, now)
    if verdict is not None and not verdict.met:
        return [Replace(under, over=job)]
    detached = gather.detach(job)
    empty = replace(under, job_id="", held=(), queued_in=None, rank=None, reason=NONE)
    plan: list[Write] = [Replace(empty, over=job), Create(detached)]
    if job.queued_in is not None and job.rank is not None:
        plan.append(Put(Waiter(job.queued_in, job.rank, job.schedule, job.generation, detached.sort_key, job.job_id)))
    return plan


def _reopened(ports: Ports, schedule_state: ScheduleState) -> list[Write]:
    """The write that deletes the tombstone of a drain, so that events gather again; empty without such a tombstone.

    First drains the generation, so that the job under the tombstone is on record. Raises ``changed_meanwhile`` after
    ``MAX_CONFLICTS`` conflicts in a row.
    """
    if schedule_state.mode != "drain":
        return []
    for _ in range(MAX_CONFLICTS):
        drain(ports, schedule_state.schedule, schedule_state.generation)
        tombstone = ports.rows.get(Job, schedule_state.schedule, schedule_state.generation, GATHERING)
        if tombstone is None or not tombstone.closed:
            return []
        if tombstone.wake_at is None:
            return [DeleteJob(tombstone, exact=True)]
    raise errors.changed_meanwhile(f"schedule {schedule_state.schedule}")


def _check_occurrence(ports: Ports, name: str, schedule: Schedule, at: Instant, now: Instant) -> None:
    """Raise ``invalid`` unless ``at`` is an upcoming fire of the schedule's times."""
    timer = ports.rows.get(Timer, name) or Timer(name, 0, 0, now, {})
    if fire.is_ahead(timer, schedule, at, now):
        return
    upcoming = ", ".join(iso(nominal) for nominal in fire_upcoming.preview(schedule, now, SHOWN, timer))
    hint = f"the next ones are {upcoming}" if upcoming else "it has no time trigger"
    raise invalid("at", "an upcoming fire of this schedule", iso(at), hint)


def _not_running(schedule_state: ScheduleState, action: str) -> SluiceError:
    message = f"expected a schedule that is enabled or paused, got one that is {schedule_state.mode}"
    return SluiceError("conflict", message, None, f"enable the schedule before you {action} it")
