"""The times of a job: its timeout (C10), the window in which it must start (E2), and by when its run must start and
end (H5), which also ranks it in a queue (W14).
"""

from __future__ import annotations

from chalicelib.core.definitions import overrides
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Deadline, Workflow
from chalicelib.core.fires import fire
from chalicelib.core.instants import Instant, duration, format_duration
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stops import spans_of
from chalicelib.core.why import Why


def deadline_of(job: Job, schedule: Schedule, schedule_state: ScheduleState | None = None) -> Instant | None:
    """The earlier of timeout and end of window; None if the job may wait without a bound."""
    ends = (_timeout_of(job, schedule, schedule_state), None if is_repeated(job) else fire.last_chance(job, schedule))
    return min((end for end in ends if end is not None), default=None)


def too_late(job: Job, schedule: Schedule, now: Instant) -> Why | None:
    """Why a job is dropped that was not started within its window; None if it is not. A repeated job never is."""
    return None if is_repeated(job) else fire.overflow(job, schedule, now)


def runs_anyway(schedule: Schedule) -> bool:
    """Whether a job that has timed out is launched (``then: run``), and not aborted."""
    return schedule.timeout != "never" and schedule.timeout.then == "run"


def timed_out(job: Job, schedule: Schedule) -> Why:
    """The reason on the record of a job that its timeout has aborted."""
    span = format_duration(schedule.timeout_millis or 0)
    return Why.of("timed_out", f"not launched within its timeout of {span}: ", job.reason or fire.UNCHECKED)


def is_over(job: Job, schedule: Schedule, schedule_state: ScheduleState | None, at: Instant) -> bool:
    """Whether the time of a job is over at ``at``. Events that are accepted from then on belong to the next job."""
    end = deadline_of(job, schedule, schedule_state)
    return end is not None and at >= end


def is_repeated(job: Job) -> bool:
    """Whether the job was started, or its delivery tried, before: its conditions were met then. A job of a backfill
    counts as repeated, since it may wait as long as it takes."""
    return job.traits.met_before or job.tries > 0


def _timeout_of(job: Job, schedule: Schedule, schedule_state: ScheduleState | None) -> Instant | None:
    """When the timeout ends. A repeated job has none, since it was launched in time before.

    A pause or a stop that stops timeouts (L4, L24) postpones the end; while it lasts there is no end. A fire that an
    outage delayed has its whole timeout from the instant at which it was prepared, and the job of a period from its
    end."""
    span = schedule.timeout_millis
    if span is None or is_repeated(job):
        return None
    created_at = job.created_at if job.prepared_at is None else job.prepared_at
    period = schedule.period_of(job.correlation) if job.traits.of_events else None
    created_at = max(created_at, period.end) if period is not None else created_at
    deadline = created_at + span
    for began, ended in spans_of(schedule_state):
        start = max(began, created_at)
        if start >= deadline:
            continue
        if ended is None:
            return None
        deadline += max(0, ended - start)
    return deadline


def latest_start(job: Job, schedule: Schedule, workflow: Workflow) -> Instant | None:
    """The latest start of a run that meets its deadlines: that of its start, and that of its end less the expected
    duration. None without a deadline (W14)."""
    deadline = overrides.deadline_of(schedule, workflow)
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
    deadline = overrides.deadline_of(schedule, workflow)
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
