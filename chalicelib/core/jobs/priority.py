"""Who goes first among those that wait: priority, own or lent, then the latest start for a deadline (W2, W14)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core.definitions.overrides import priority_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.jobs.deadlines import latest_start
from chalicelib.core.limits import permits
from chalicelib.core.rows.job import Job


@dataclass(frozen=True, slots=True)
class InheritedPriority:
    """A priority that a job has from somebody else: ``by`` is a schedule that waits for its workflow, or a dataset."""

    priority: int
    by: str

    @property
    def why(self) -> str:
        return f"priority {self.priority}, inherited from {self.by}"


def carried(priority: int, before: int, own: int) -> int:
    """The priority of a run whose schedule has its ``own`` now and had ``before``. What was lent to it stays."""
    return max(priority, own) if priority > before else own


def effective(job: Job, schedule: Schedule, workflow: Workflow) -> int:
    """With what was lent to it."""
    return max(priority_of(schedule, workflow), job.priority if job.priority is not None else 0)


def raised(job: Job, inherited_one: InheritedPriority | None) -> Job:
    """The job with a priority that is lent to it, or with none: what was lent before may not be so any more. An attempt
    that follows another keeps what that one had."""
    floor = job.priority if job.kind == "retry" and not job.inherited else None
    if inherited_one is None or (floor is not None and floor >= inherited_one.priority):
        return replace(job, priority=floor, inherited="")
    return replace(job, priority=inherited_one.priority, inherited=inherited_one.why)


def highest(inherited_ones: list[InheritedPriority], own: int) -> InheritedPriority | None:
    """Of what is lent the highest, if it is more than one has; of equals the first by name."""
    more = [inherited_one for inherited_one in inherited_ones if inherited_one.priority > own]
    return min(more, key=lambda inherited_one: (-inherited_one.priority, inherited_one.by), default=None)


def rank_of(job: Job, schedule: Schedule, workflow: Workflow) -> str:
    """The place of a job in any queue."""
    latest = latest_start(job, schedule, workflow)
    return permits.rank(effective(job, schedule, workflow), latest, job.created_at, job.job_id)
