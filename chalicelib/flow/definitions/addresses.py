"""Check the addresses that documents name when the documents are stored (O6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core.access.allowed import Named
from chalicelib.core.errors import invalid
from chalicelib.core.targets.urls import check_credentials
from chalicelib.flow.definitions import allowed, applications
from chalicelib.ports import Ports


def check_target(ports: Ports, namespace: str, target: Mapping[str, Any], field: str, lately: bool = False) -> None:
    """Raise ``invalid`` for a plain http address, and for an EMR application or role that the stack does not list.
    Raise it also for what the namespace may not use (``lately``: see `allowed.check`).

    The IP address of a host name is checked at every call, because it may change.
    """
    applications.check_target(ports, target, field)
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
    applications.check_resources(ports, resources, field)
    check_application(ports, namespace, (resources or {}).get("application"), f"{field}.application")


def check_application(ports: Ports, namespace: str, application: str | None, field: str) -> None:
    """Raise ``invalid`` for an EMR application that the stack does not list, or that the namespace may not use."""
    applications.check_application(ports, application, field)
    if application is not None:
        allowed.check(ports, namespace, [Named("applications", application, field)])
