"""Who goes first among those that wait: priority, own or lent, then the latest start for a deadline (W2, W14)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core import lines
from chalicelib.core.calendar import Instant, duration
from chalicelib.core.model import Deadline, Schedule, Workflow
from chalicelib.core.retries import Retries
from chalicelib.core.rows import Job
from chalicelib.core.workflows import DEFAULT_PRIORITY


@dataclass(frozen=True, slots=True)
class Lift:
    """A priority that a job has from somebody else: ``by`` is a schedule that waits for its workflow, or a dataset."""

    priority: int
    by: str

    @property
    def why(self) -> str:
        return f"priority {self.priority} lent by {self.by}"


def priority_of(schedule: Schedule, workflow: Workflow) -> int:
    """A schedule's own priority, else its workflow's."""
    if schedule.priority is not None:
        return schedule.priority
    return workflow.priority if workflow.priority is not None else DEFAULT_PRIORITY


def carried(priority: int, before: int, own: int) -> int:
    """The priority of a run whose schedule has its ``own`` now and had ``before``. What was lent to it stays."""
    return max(priority, own) if priority > before else own


def effective(job: Job, schedule: Schedule, workflow: Workflow) -> int:
    """With what was lent to it."""
    return max(priority_of(schedule, workflow), job.priority if job.priority is not None else 0)


def lifted(job: Job, lift: Lift | None) -> Job:
    """The job with a priority that is lent to it, or with none: what was lent before may not be so any more. An attempt
    that follows another keeps what that one had."""
    floor = job.priority if job.kind == "retry" and not job.lent else None
    if lift is None or (floor is not None and floor >= lift.priority):
        return replace(job, priority=floor, lent="")
    return replace(job, priority=lift.priority, lent=lift.why)


def highest(lifts: list[Lift], own: int) -> Lift | None:
    """Of what is lent the highest, if it is more than one has; of equals the first by name."""
    more = [lift for lift in lifts if lift.priority > own]
    return min(more, key=lambda lift: (-lift.priority, lift.by), default=None)


def rank_of(job: Job, schedule: Schedule, workflow: Workflow) -> str:
    """The place of a job in any queue."""
    latest = latest_start(job, schedule, workflow)
    return lines.rank(effective(job, schedule, workflow), latest, job.created_at, job.job_id)


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


def deadline_of(schedule: Schedule, workflow: Workflow | None) -> Deadline | None:
    """The schedule's own, else the workflow's."""
    return schedule.deadline or (workflow.deadline if workflow is not None else None)


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


def retries_of(schedule: Schedule, workflow: Workflow) -> Retries:
    """How a run is tried again: as its schedule says, else its workflow (W1)."""
    return schedule.retries or workflow.retries
