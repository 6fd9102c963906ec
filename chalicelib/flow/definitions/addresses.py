"""Check the addresses, EMR applications and job roles that documents name when the documents are stored (O6, W13).

IAM lets the Lambdas use only the applications and roles that the stack lists. A document that names another one is
refused when it is stored, instead of failing when its first run starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.core.access.allowed import Named
from chalicelib.core.errors import invalid
from chalicelib.core.targets import registry
from chalicelib.core.targets.urls import check_credentials
from chalicelib.flow.definitions import allowed
from chalicelib.ports import Ports


def check_target(ports: Ports, namespace: str, target: Mapping[str, Any], field: str, lately: bool = False) -> None:
    """Raise ``invalid`` for a plain http address, and for an EMR application or role that the stack does not list.
    Raise it also for what the namespace may not use (``lately``: see `allowed.check`).

    The IP address of a host name is checked at every call, because it may change.
    """
    _check_listed_application(ports, target.get("application_id"), f"{field}.application_id")
    role, roles = target.get("execution_role_arn"), ports.settings.all_emr_roles
    if not registry.of_type(str(target["type"])).needs_role:  # others start with the roles that the target role allows
        _check_listed(f"{field}.execution_role_arn", "execution role", role, roles, "EmrRoleArns")
    url = target.get("url")
    if isinstance(url, str) and not url.startswith("https:") and not ports.settings.http_allow_private:
        hint = "use https: others can read a message that is sent by plain http"
        raise invalid(f"{field}.url", "an address that begins with https://", url, hint)
    check_credentials(target.get("headers") or {}, f"{field}.headers")
    allowed.check_target(ports, namespace, target, field, lately)


def check_workflow(ports: Ports, namespace: str, document: Mapping[str, Any]) -> None:
    """Check the addresses of a workflow: of its target, its resources and its notices (W9)."""
    check_target(ports, namespace, document["target"], "target")
    check_resources(ports, namespace, document.get("resources"), "resources")
    for number, rule in enumerate(document.get("notify", ())):
        check_target(ports, namespace, rule["to"], f"notify.{number}.to")


def check_resources(ports: Ports, namespace: str, resources: Mapping[str, Any] | None, field: str) -> None:
    """Check the EMR application of the ``resources`` of a workflow or schedule."""
    check_application(ports, namespace, (resources or {}).get("application"), f"{field}.application")


def check_application(ports: Ports, namespace: str, application: str | None, field: str) -> None:
    """Raise ``invalid`` for an EMR application that the stack does not list, or that the namespace may not use."""
    _check_listed_application(ports, application, field)
    if application is not None:
        allowed.check(ports, namespace, [Named("applications", application, field)])


def _check_listed_application(ports: Ports, application: str | None, field: str) -> None:
    """None is the stack's own application, which is valid."""
    _check_listed(field, "EMR application", application, ports.settings.all_emr_applications, "EmrApplicationIds")


def _check_listed(field: str, what: str, named: str | None, listed: Sequence[str], parameter: str) -> None:
    if named is None or named in listed:
        return
    expected = f"one of {', '.join(listed)}" if listed else f"no {what}, because the stack lists none"
    raise invalid(field, expected, named, f"add it to the stack parameter {parameter} and deploy, or leave it out")
