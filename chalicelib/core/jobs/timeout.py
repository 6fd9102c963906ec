"""The end of a job's time: its timeout (C10), or the window in which it must start (E2)."""

from __future__ import annotations

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import spread
from chalicelib.core.instants import Instant, format_duration
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.why import Why


def deadline_of(job: Job, schedule: Schedule, schedule_state: ScheduleState | None = None) -> Instant | None:
    """The earlier of timeout and end of window; None if the job may wait without a bound."""
    ends = (_timeout_of(job, schedule, schedule_state), None if is_repeated(job) else spread.last_chance(job, schedule))
    return min((end for end in ends if end is not None), default=None)


def too_late(job: Job, schedule: Schedule, now: Instant) -> Why | None:
    """Why a job is dropped that was not started within its window; None if it is not. A repeated job never is."""
    return None if is_repeated(job) else spread.overflow(job, schedule, now)


def runs_anyway(schedule: Schedule) -> bool:
    """Whether a job that has timed out is launched (``then: run``), and not aborted."""
    return schedule.timeout != "never" and schedule.timeout.then == "run"


def timed_out(job: Job, schedule: Schedule) -> Why:
    """The reason on the record of a job that its timeout has aborted."""
    span = format_duration(schedule.timeout_millis or 0)
    return Why.of("timed_out", f"not launched within its timeout of {span}: ", job.reason or spread.UNCHECKED)


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

    A pause that stops timeouts (L4) postpones the end; during such a pause there is no end. A fire that an outage
    delayed has its whole timeout from the instant at which it was prepared."""
    span = schedule.timeout_millis
    if span is None or is_repeated(job):
        return None
    created_at = job.created_at if job.prepared_at is None else job.prepared_at
    deadline = created_at + span
    for began, ended in schedule_state.pauses if schedule_state else ():
        start = max(began, created_at)
        if start >= deadline:
            continue
        if ended is None:
            return None
        deadline += max(0, ended - start)
    return deadline
