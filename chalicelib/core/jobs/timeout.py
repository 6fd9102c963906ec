"""When the time of a job is over: its timeout (C10), or the window into which it must fit (E2)."""

from __future__ import annotations

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import spread
from chalicelib.core.instants import Instant, format_duration
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState


def deadline_of(job: Job, schedule: Schedule, schedule_state: ScheduleState | None = None) -> Instant | None:
    """The earlier of the two; None if the job may wait for ever."""
    ends = (_timeout_of(job, schedule, schedule_state), None if is_repeated(job) else spread.last_chance(job, schedule))
    return min((end for end in ends if end is not None), default=None)


def too_late(job: Job, schedule: Schedule, now: Instant) -> str | None:
    """Why an event is dropped that was not started within its window; what was tried there is tried again."""
    return None if is_repeated(job) else spread.overflow(job, schedule, now)


def runs_anyway(schedule: Schedule) -> bool:
    """Whether a job that has timed out is launched all the same."""
    return schedule.timeout != "never" and schedule.timeout.then == "run"


def timed_out(job: Job, schedule: Schedule) -> str:
    """The words for a job whose timeout has ended it."""
    span = format_duration(schedule.timeout_millis or 0)
    return f"not launched within its timeout of {span}: {job.reason or 'it was not looked at in time'}"


def is_over(job: Job, schedule: Schedule, schedule_state: ScheduleState | None, at: Instant) -> bool:
    """Whether the time of a job is over at this instant: what is accepted from then on belongs to the next job."""
    end = deadline_of(job, schedule, schedule_state)
    return end is not None and at >= end


def is_repeated(job: Job) -> bool:
    """Whether it was started, or tried, before: what the schedule asks of a job at first was met then. The past, which
    a backfill runs, waits likewise as long as it takes."""
    return job.kind in ("retry", "redrive", "backfill") or job.tries > 0


def _timeout_of(job: Job, schedule: Schedule, schedule_state: ScheduleState | None) -> Instant | None:
    """When the timeout ends; what is tried again has none, for it was launched in time. Spans in which timeouts stood
    still (L4) move it; while one lasts there is none. What an outage has held up has its whole timeout from when it
    was prepared."""
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
