"""The rates of starts: read the policies and the start rate of EMR, and let a changed policy apply at once."""

from __future__ import annotations

from chalicelib.core.instants import Instant
from chalicelib.core.limits.names import policy_limit
from chalicelib.core.limits.permits import LEAD, Pace
from chalicelib.core.limits.policies import Policy, StartRate
from chalicelib.core.limits.writes import AdvancePace
from chalicelib.core.rows.definition import Definition
from chalicelib.ports import Ports


def advance_pace(ports: Ports, row: Definition) -> list[AdvancePace]:
    """The write that applies a faster policy at once, so that no waiter waits for an instant of the old pace. Empty if
    the next permit of the old pace comes soon enough."""
    policy, now = Policy.model_validate(row.document), ports.clock.now()
    state = ports.jobs.limit_state(policy_limit(row.name))
    head = now + LEAD + policy.spacing
    return [AdvancePace(state.limit_name, state, head)] if state.head > head else []


def policy_of(ports: Ports, name: str) -> Policy | None:
    definition = ports.rows.get(Definition, "policy", name)
    return Policy.model_validate(definition.document) if definition else None


def pace_of(ports: Ports, limit_name: str) -> tuple[Pace | None, Instant]:
    """The pace of the policy to which a limit belongs, and when the policy was last changed. None for any other limit,
    and if the policy was deleted."""
    kind, _, name = limit_name.partition(":")
    row = ports.rows.get(Definition, "policy", name) if kind == "policy" else None
    if row is None:
        return None, 0
    return Policy.model_validate(row.document).pace(name), row.updated_at


def start_rate(ports: Ports) -> StartRate:
    settings = ports.settings
    return StartRate(
        settings.emr_application_id,
        settings.start_spacing,
        settings.start_burst,
        settings.emr_job_role_arn,
        dict(settings.emr_run_limits),
    )
