"""The settings that both a workflow and a schedule may have: those of the schedule override those of the workflow. An
approval is added to those of the schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chalicelib.core import ids
from chalicelib.core.constraints import approval
from chalicelib.core.constraints.constraint import Constraint
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import DEFAULT_PRIORITY, Deadline, Workflow
from chalicelib.core.documents import DESCRIPTIVE
from chalicelib.core.instants import Millis, duration
from chalicelib.core.targets.resources import Resources
from chalicelib.core.targets.retries import Retries


def properties_of(workflow: Workflow, schedule: Schedule, given: Mapping[str, Any]) -> dict[str, Any]:
    """The runtime arguments of a run (L9): ``given`` overrides the schedule's, which override the workflow's."""
    return {**workflow.properties, **schedule.properties, **given}


def pool_of(workflow: Workflow, schedule: Schedule) -> str | None:
    """The full name of the pool of a schedule's jobs; None without one. A short name is in the workflow's namespace."""
    if schedule.pool is not None or workflow.pool is None:
        return schedule.pool
    return workflow.pool if "." in workflow.pool else f"{schedule.workflow.partition('.')[0]}.{workflow.pool}"


def resources_of(workflow: Workflow, schedule: Schedule) -> Resources | None:
    """The resources of a run: each field of the schedule's overrides that of the workflow's (W13). None without any."""
    if workflow.resources is None or schedule.resources is None:
        return schedule.resources or workflow.resources
    own = schedule.resources.model_dump(exclude_none=True)
    return Resources.model_validate({**workflow.resources.model_dump(exclude_none=True), **own})


def priority_of(schedule: Schedule, workflow: Workflow) -> int:
    """The priority of the schedule, else of its workflow, else the default."""
    if schedule.priority is not None:
        return schedule.priority
    return workflow.priority if workflow.priority is not None else DEFAULT_PRIORITY


def deadline_of(schedule: Schedule, workflow: Workflow | None) -> Deadline | None:
    """The deadline of the schedule, else of its workflow; None without one."""
    return schedule.deadline or (workflow.deadline if workflow is not None else None)


def retries_of(schedule: Schedule, workflow: Workflow) -> Retries:
    """The retries of the schedule, else of its workflow (W1)."""
    return schedule.retries or workflow.retries


def run_timeout_of(schedule: Schedule, workflow: Workflow) -> Millis | None:
    """How long in ms a run may be RUNNING, by its schedule, else by its workflow (W12); None without a bound."""
    if schedule.run_timeout is None:
        return workflow.timeout_millis
    return None if schedule.run_timeout == "never" else duration(schedule.run_timeout)


def content_of(schedule: Schedule, workflow: Workflow | None) -> str:
    """A text that stands for what the jobs of a schedule run. It changes with each field but the descriptive ones. A
    field that newer code adds changes nothing until it is set."""
    parts = [part for part in (schedule, workflow) if part is not None]
    # Without warnings: the target of a DAG's start is of a type that no user can name.
    documents = [
        part.model_dump(mode="json", exclude=DESCRIPTIVE, exclude_defaults=True, warnings=False) for part in parts
    ]
    return ids.digest(json.dumps(documents, sort_keys=True))


def constraints_of(schedule: Schedule, workflow: Workflow | None) -> tuple[Constraint, ...]:
    """The constraints of a schedule's jobs, with the approval that their workflow asks for (C16)."""
    wanted = workflow.approval if workflow is not None else None
    return (*schedule.constraints, *approval.of_workflow(wanted, schedule.workflow))
