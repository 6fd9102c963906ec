"""Who goes first among those that wait: priority, own or lent, then the latest start for a deadline (W2, W14)."""

from __future__ import annotations

from chalicelib.core.definitions.overrides import deadline_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Deadline, Workflow
from chalicelib.core.instants import Instant, duration
from chalicelib.core.rows.job import Job


def latest_start(job: Job, schedule: Schedule, workflow: Workflow) -> Instant | None:
    """When a run must start at the latest to meet its deadline, both that of its start and, as long as it is expected
    to take, that of its end; None if it has none (W14)."""
    deadline = deadline_of(schedule, workflow)
    if deadline is None:
        return None
    expected = schedule.expected or workflow.expected
    since = counts_from(job, deadline)
    begin, ends = since if since is not None else job.created_at, []
    if deadline.start_within is not None:
        ends.append(begin + duration(deadline.start_within))
    if deadline.end_within is not None:
        ends.append(begin + duration(deadline.end_within) - (duration(expected) if expected is not None else 0))
    return max(0, min(ends))


def due_by(job: Job, schedule: Schedule, workflow: Workflow | None) -> tuple[Instant | None, Instant | None]:
    """By when the run of a job is to start, and to end (H5). The past, which a backfill runs, is never in time; what
    is sent again by hand was late or not the first time."""
    deadline = deadline_of(schedule, workflow)
    if deadline is None or job.backfill is not None or job.kind in ("redrive", "backfill"):
        return None, None
    base = counts_from(job, deadline)
    if base is None:
        return None, None
    start_by = base + duration(deadline.start_within) if deadline.start_within is not None else None
    return start_by, base + duration(deadline.end_within) if deadline.end_within is not None else None


def counts_from(job: Job, deadline: Deadline) -> Instant | None:
    """From when a deadline counts: when its fire, or what somebody asked for, was due by the clock, or when the data
    was there; None while what starts the job is still gathering. Of what is tried again, from when its first attempt
    was due; of what somebody has run again, from when that was asked for."""
    if job.rerun_of is not None:
        return job.accepted_at
    if deadline.since == "nominal":
        due = job.due_at if job.kind != "retry" else None
        event = job.event.instant if job.event is not None and job.event.kind == "time" else None
        nominal = next((each for each in (job.nominal_at, due, event) if each is not None), None)
        if nominal is not None:
            return nominal
    return job.accepted_at
