"""Fires that are events: those of elapsed and absent leaves, and of triggers with more than one leaf.

They count in the gathering job like any other event. The instant of an elapsed or absent leaf may have moved since its
fire was prepared. So it is decided again when the fire is due; if it moved, the timer is set again (T12, T13, T18).
"""

from __future__ import annotations

from chalicelib.core.access.grants import waiting_for
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import continued, fire
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import Instant, iso
from chalicelib.core.jobs import check, gather
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import names
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.schedule import ScheduleState, Subscription, Timer
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import TimedLeaf, timed
from chalicelib.core.why import Why
from chalicelib.core.writes import DeleteJob, Put, Replace, Write
from chalicelib.flow import lookup
from chalicelib.flow.fires.emit import emit_soon
from chalicelib.flow.ingest import absences
from chalicelib.flow.ingest.apply import apply_event, missing_grants
from chalicelib.ports import Ports


def is_event(job: Job, facts: Facts, now: Instant) -> bool:
    """Whether the job is a due fire of a trigger with more than one leaf: then it is an event for the gathering job."""
    schedule, schedule_state = facts.schedule, facts.schedule_state
    if schedule_state is None or schedule is None or not check.is_prepared(job) or (job.due_at or 0) > now:
        return False
    current = schedule_state.generation == job.generation and schedule_state.mode in GATHERING_MODES
    wanted = fire.nominal_of(job) not in schedule_state.skips and fire_timer.after_end(job, schedule) is None
    return current and wanted and not tree.is_single_time(schedule.trigger)


def apply(ports: Ports, job: Job, facts: Facts, now: Instant) -> str:
    """Count a due fire, or postpone it if its instant has moved. Returns what was done, in words."""
    schedule_state, schedule = facts.schedule_state, facts.schedule
    if schedule_state is None or schedule is None or job.leaf is None or job.due_at is None:
        raise ValueError("expected a fire with its leaf, and a schedule state")
    found = gather.leaf_of(schedule, job.leaf)
    if found is None:
        ports.ledger.commit([DeleteJob(job)])
        return "the leaf of the fire no longer exists"
    leaf = timed(found)
    if _has_run(ports, job, schedule_state, leaf):
        ports.ledger.commit([DeleteJob(job)])
        return "the fire has started a run before the schedule was updated"
    moved = _postponed_to(ports, job, leaf, schedule_state, schedule)
    if moved is not None:
        _postpone(ports, job, schedule, moved)
        return f"the fire is postponed to {iso(moved)}"
    return _count(ports, job, schedule_state, leaf, schedule, now)


def _count(
    ports: Ports, job: Job, schedule_state: ScheduleState, leaf: TimedLeaf, schedule: Schedule, now: Instant
) -> str:
    event, seen = fire.fire_event(job, leaf.type), list[Write]()
    version, detached = schedule_state.version, schedule.own_jobs(schedule_state.mode)
    row = Subscription(event.key, job.schedule, job.generation, version, str(job.leaf), 0, detached=detached)
    while True:
        absence = absences.of_period(ports, leaf, event) if leaf.correlates else (absences.described(leaf, event), [])
        if isinstance(absence, str):
            ports.ledger.commit([DeleteJob(job)])
            return absence
        told, expected = absence
        refs = apply_event(ports, told, [row], now, along=[DeleteJob(job), *expected])
        # The fire is still there if its event was counted before, has no grant, or a partition came at this instant.
        # Then others of its period may be missing.
        if not _is_there(ports, job, schedule_state):
            break
        if expected == seen:
            ports.ledger.commit([DeleteJob(job), *_record(ports, job, event.id, schedule, now)])
            break
        seen = expected
    if refs:
        ports.hints.send(refs, now, now)
    return f"fire of {iso(event.instant)} counted"


def _is_there(ports: Ports, job: Job, schedule_state: ScheduleState) -> bool:
    """Whether a fire has not been counted, in a schedule that is as it was."""
    found = ports.rows.get(Job, job.schedule, job.generation, job.sort_key)
    return found is not None and ports.rows.get(ScheduleState, job.schedule) == schedule_state


def _record(ports: Ports, job: Job, event_id: str, schedule: Schedule, now: Instant) -> list[Put]:
    """The record of a fire that does not count, for lack of a grant; empty for a duplicate, whose event has counted."""
    missing = missing_grants(ports, schedule, job.schedule, str(job.leaf))
    if not missing or ports.jobs.applied([(job.schedule, job.generation, event_id)]):
        return []
    why = Why.of("event_not_counted", "the absence does not count: ", waiting_for(missing))
    return [Put(record_of(job, "DROPPED", why, now))]


def _has_run(ports: Ports, job: Job, schedule_state: ScheduleState, leaf: TimedLeaf) -> bool:
    """Whether the fire was counted for a run in the generation before an update, which was committed after it."""
    before = continued.double_of(job, schedule_state)
    if before is None:
        return False
    event = fire.fire_event(before, leaf.type)
    counted = ports.jobs.applied([(before.schedule, before.generation, event.id)])
    return any(ports.runs.attempts(row.event_job) for row in counted)


def _postponed_to(
    ports: Ports, job: Job, leaf: TimedLeaf, schedule_state: ScheduleState, schedule: Schedule
) -> Instant | None:
    """The instant to which the last start of the workflow, or the last arrival of the feed, moves a due leaf; None if
    it stays due. Its span goes on over updates that keep the trigger: it counts from the anchor of the timer."""
    timer = ports.rows.get(Timer, job.schedule) if leaf.moved_by != "clock" and not leaf.correlates else None
    if job.due_at is None or timer is None:
        return None
    if leaf.moved_by == "last_start":
        happened = ports.jobs.limit_state(names.workflow_limit(schedule.workflow)).last_start
    else:
        happened = lookup.last_arrival(ports, schedule_state, timer, str(job.leaf))
    return leaf.postponed_to(timer.anchor, happened, job.due_at)


def _postpone(ports: Ports, job: Job, schedule: Schedule, at: Instant) -> None:
    """Delete the fire and set the timer to ``at``. After a conflict the fire stays for the next check."""
    timer = ports.rows.get(Timer, job.schedule)
    if timer is None or timer.generation != job.generation:
        ports.ledger.commit([DeleteJob(job)])
        return
    if ports.ledger.commit([DeleteJob(job), Replace(fire_timer.rearm(timer, schedule, str(job.leaf), at))]) is None:
        emit_soon(ports, job.schedule)  # the new instant may lie within the horizon of the last tick
