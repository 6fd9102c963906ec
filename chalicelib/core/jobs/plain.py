"""Which jobs need no more than a delivery, as their documents say. A check decides by the facts (`check.py`)."""

from __future__ import annotations

from chalicelib.core.definitions import overrides
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.jobs.permits import is_tracked


def needs_policy_alone(schedule: Schedule, workflow: Workflow, counted: bool) -> bool:
    """Whether the jobs of a schedule need a permit of their policy, if it has one, and no other. ``counted``: the
    starts of the workflow are counted."""
    if counted or is_tracked(schedule, workflow) or overrides.deadline_of(schedule, workflow) is not None:
        return False
    return all(constraint.decidable_ahead for constraint in overrides.constraints_of(schedule, workflow))


def is_bundled(schedule: Schedule, workflow: Workflow, counted: bool) -> bool:
    """Whether many events of a fire are one row (`core/fires/bundles.py`): their target has no lifecycle, nothing but
    their instants makes them wait, and nobody asked for a record of each."""
    if schedule.policy is not None or workflow.delivery.records == "each":
        return False
    return not workflow.target.has_lifecycle and needs_policy_alone(schedule, workflow, counted)
