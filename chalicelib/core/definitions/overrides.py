"""The plans that claim a job, queue it, set it aside or take it out: each one transaction (C9, C13, W10).

What a job asks of its pool (W3), and what its run is to have (W13): its schedule's word before its workflow's.

Who goes first among those that wait: priority, own or lent, then the latest start for a deadline (W2, W14).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import DEFAULT_PRIORITY, Deadline, Workflow
from chalicelib.core.targets.resources import Resources
from chalicelib.core.targets.retries import Retries


def properties_of(workflow: Workflow, schedule: Schedule, given: Mapping[str, Any]) -> dict[str, Any]:
    """The runtime arguments of a run: the workflow's, over them the schedule's, over them those of a run-now (L9)."""
    return {**workflow.properties, **schedule.properties, **given}


def pool_of(workflow: Workflow, schedule: Schedule) -> str | None:
    """The full name of the pool that a schedule's jobs take from. A short one is of the namespace of the workflow."""
    if schedule.pool is not None or workflow.pool is None:
        return schedule.pool
    return workflow.pool if "." in workflow.pool else f"{schedule.workflow.partition('.')[0]}.{workflow.pool}"


def resources_of(workflow: Workflow, schedule: Schedule) -> Resources | None:
    """What a run of this schedule is to have: the workflow's, and over them, one by one, the schedule's (W13)."""
    if workflow.resources is None or schedule.resources is None:
        return schedule.resources or workflow.resources
    own = schedule.resources.model_dump(exclude_none=True)
    return Resources.model_validate({**workflow.resources.model_dump(exclude_none=True), **own})


def priority_of(schedule: Schedule, workflow: Workflow) -> int:
    """A schedule's own priority, else its workflow's."""
    if schedule.priority is not None:
        return schedule.priority
    return workflow.priority if workflow.priority is not None else DEFAULT_PRIORITY


def deadline_of(schedule: Schedule, workflow: Workflow | None) -> Deadline | None:
    """The schedule's own, else the workflow's."""
    return schedule.deadline or (workflow.deadline if workflow is not None else None)


def retries_of(schedule: Schedule, workflow: Workflow) -> Retries:
    """How a run is tried again: as its schedule says, else its workflow (W1)."""
    return schedule.retries or workflow.retries
