"""The deadlines of a job: by when its run must start and end (H5), and the latest start that ranks it in a queue
(W14)."""

from __future__ import annotations

from chalicelib.core.definitions.overrides import deadline_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Deadline, Workflow
from chalicelib.core.instants import Instant, duration
from chalicelib.core.rows.job import Job


def latest_start(job: Job, schedule: Schedule, workflow: Workflow) -> Instant | None:
    """The latest start of a run that meets its deadlines: that of its start, and that of its end less the expected
    duration. None without a deadline (W14)."""
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
    """By when the run of a job must start, and must end; None each without a deadline (H5). Jobs of a backfill have
    none, since their instants are past. Redrives have none, since the first delivery decided whether the event was
    late."""
    deadline = deadline_of(schedule, workflow)
    if deadline is None or job.backfill is not None or not job.traits.has_deadline:
        return None, None
    base = counts_from(job, deadline)
    if base is None:
        return None, None
    start_by = base + duration(deadline.start_within) if deadline.start_within is not None else None
    return start_by, base + duration(deadline.end_within) if deadline.end_within is not None else None


def counts_from(job: Job, deadline: Deadline) -> Instant | None:
    """The instant from which a deadline counts; None while the job gathers.

    It is the nominal instant of the job's fire or request, or else the instant at which its data was complete. For a
    retry it is that of the first attempt, for a re-run the instant of the request."""
    if job.rerun_of is not None:
        return job.accepted_at
    if deadline.since == "nominal":
        due = job.due_at if not job.traits.retries else None
        event = job.event.instant if job.event is not None and job.event.kind == "time" else None
        nominal = next((instant for instant in (job.nominal_at, due, event) if instant is not None), None)
        if nominal is not None:
            return nominal
    return job.accepted_at
