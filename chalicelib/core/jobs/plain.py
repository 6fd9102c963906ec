"""Which jobs need no more than a delivery, as their documents say. A check decides by the facts (`check.py`)."""

from __future__ import annotations

from chalicelib.core.definitions import overrides
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.jobs.permits import is_tracked
from chalicelib.core.limits import blocks
from chalicelib.core.limits.policies import Policy


def needs_policy_alone(schedule: Schedule, workflow: Workflow, counted: bool) -> bool:
    """Whether the jobs of a schedule need a permit of their policy, if it has one, and no other. ``counted``: the
    starts of the workflow are counted."""
    if counted or is_tracked(schedule, workflow) or overrides.deadline_of(schedule, workflow) is not None:
        return False
    return all(constraint.decidable_ahead for constraint in overrides.constraints_of(schedule, workflow))


def is_bundled(schedule: Schedule, workflow: Workflow, counted: bool, policy: Policy | None) -> bool:
    """Whether many events of a fire are one row (`core/fires/bundles.py`): their target has no lifecycle, nothing makes
    them wait but their instants and a ``policy`` of many starts a second, and nobody asked for a record of each."""
    if workflow.delivery.records == "each":
        return False
    if schedule.policy is not None and (policy is None or not blocks.is_fast(policy.pace(schedule.policy))):
        return False
    return not workflow.target.has_lifecycle and needs_policy_alone(schedule, workflow, counted)
