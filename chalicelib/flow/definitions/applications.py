"""Check the EMR Serverless applications and job roles that documents name against the lists of the stack (W13).

IAM lets the Lambdas use only the listed applications and roles. A document that names another one is refused when it is
stored, instead of failing when its first run starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.core.errors import invalid
from chalicelib.ports import Ports


def check_target(ports: Ports, target: Mapping[str, Any], field: str) -> None:
    """Raise ``invalid`` for a target with an EMR application or role that the stack does not list. Targets of other
    types have neither field."""
    settings = ports.settings
    check_application(ports, target.get("application_id"), f"{field}.application_id")
    role = target.get("execution_role_arn")
    _check(f"{field}.execution_role_arn", "execution role", role, settings.all_emr_roles, "EmrRoleArns")


def check_resources(ports: Ports, resources: Mapping[str, Any] | None, field: str) -> None:
    """The same for the ``resources`` of a workflow or schedule, which may name an application."""
    check_application(ports, (resources or {}).get("application"), f"{field}.application")


def check_application(ports: Ports, application: str | None, field: str) -> None:
    """Raise ``invalid`` for an application that the stack does not list. None is the stack's own, which is valid."""
    _check(field, "EMR application", application, ports.settings.all_emr_applications, "EmrApplicationIds")


def _check(field: str, what: str, named: str | None, listed: Sequence[str], parameter: str) -> None:
    if named is None or named in listed:
        return
    expected = f"one of {', '.join(listed)}" if listed else f"no {what}, because the stack lists none"
    raise invalid(field, expected, named, f"add it to the stack parameter {parameter} and deploy, or leave it out")
