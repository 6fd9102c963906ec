"""Definitions but schedules: put, get, delete. What is referenced is not deleted (L17).

Read the facts that the decision about a job depends on. Strong reads; the definition of a version is cached.
"""

from __future__ import annotations

from chalicelib.core.limits.names import policy_limit
from chalicelib.core.limits.pace import LEAD
from chalicelib.core.limits.policies import Policy, StartRate
from chalicelib.core.limits.writes import AdvancePace
from chalicelib.core.rows.definition import Definition
from chalicelib.ports import Ports


def advance_pace(ports: Ports, row: Definition) -> list[AdvancePace]:
    """A policy that allows more than before does so at once: nobody waits out the pace that was. Its last permit may be
    one for an instant to come."""
    policy, now = Policy.model_validate(row.document), ports.clock.now()
    limit_name = ports.jobs.limit_state(policy_limit(row.name))
    head = now + LEAD + policy.spacing
    return [AdvancePace(limit_name.limit_name, limit_name, head)] if limit_name.head > head else []


def policy_of(ports: Ports, name: str) -> Policy | None:
    definition = ports.catalog.definition("policy", name)
    return Policy.model_validate(definition.document) if definition else None


def start_rate(ports: Ports) -> StartRate:
    settings = ports.settings
    return StartRate(
        settings.emr_application_id,
        settings.start_spacing,
        settings.start_burst,
        settings.emr_job_role_arn,
        dict(settings.emr_run_limits),
    )
