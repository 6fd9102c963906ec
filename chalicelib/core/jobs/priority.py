"""The priority of a job, its own or inherited, and its rank in a queue (W2, W14)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.core.definitions.overrides import priority_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.jobs.deadlines import latest_start
from chalicelib.core.limits import permits
from chalicelib.core.rows.job import Job
from chalicelib.core.why import NONE, Mention, Why


@dataclass(frozen=True, slots=True)
class InheritedPriority:
    """A priority that a job inherits. ``by`` is the schedule that waits for its workflow, or a dataset."""

    priority: int
    by: str
    kind: Literal["schedule", "dataset"] = "schedule"

    @property
    def why(self) -> Why:
        """The text that follows the reason of a waiting job."""
        text = self.by if self.kind == "schedule" else f"dataset {self.by}"
        return Why.of("inherited", f"priority {self.priority}, inherited from ", Mention(text, self.kind, self.by))


def carried(priority: int, before: int, own: int) -> int:
    """The priority of a run whose schedule has priority ``own`` now and had ``before``. An inherited one stays."""
    return max(priority, own) if priority > before else own


def effective(job: Job, schedule: Schedule, workflow: Workflow) -> int:
    """The highest of the job's own and inherited priority."""
    return max(priority_of(schedule, workflow), job.priority if job.priority is not None else 0)


def raised(job: Job, inherited_one: InheritedPriority | None) -> Job:
    """The job with this inherited priority in the place of an earlier one, or with none. A retry keeps the priority of
    its run at least."""
    floor = job.priority if job.traits.retries and not job.inherited else None
    if inherited_one is None or (floor is not None and floor >= inherited_one.priority):
        return replace(job, priority=floor, inherited=NONE)
    return replace(job, priority=inherited_one.priority, inherited=inherited_one.why)


def highest(inherited_ones: list[InheritedPriority], own: int) -> InheritedPriority | None:
    """The highest of these inherited priorities, the first by name of equal ones; None if none exceeds ``own``."""
    more = [inherited_one for inherited_one in inherited_ones if inherited_one.priority > own]
    return min(more, key=lambda inherited_one: (-inherited_one.priority, inherited_one.by), default=None)


def rank_of(job: Job, schedule: Schedule, workflow: Workflow, aging: Millis = 0) -> str:
    """The sort key of a job in a queue, with the aging of its pool or policy."""
    latest, own = latest_start(job, schedule, workflow), effective(job, schedule, workflow)
    return permits.rank(own, latest, job.created_at, job.job_id, aging, waits_since(job))


def waits_since(job: Job) -> Instant:
    """The instant from which a job ages: when its fire was due, or else when its trigger was met."""
    if job.traits.timed and job.due_at is not None:
        return job.due_at
    return job.met_at if job.met_at is not None else job.created_at
