"""Check the addresses that documents name when the documents are stored (O6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core.errors import invalid
from chalicelib.flow.definitions import applications
from chalicelib.ports import Ports


def check_target(ports: Ports, target: Mapping[str, Any], field: str) -> None:
    """Raise ``invalid`` for a plain http address, and for an EMR application or role that the stack does not list.

    The IP address of a host name is checked at every call, because it may change.
    """
    applications.check_target(ports, target, field)
    url = target.get("url")
    if url is not None and not str(url).startswith("https:") and not ports.settings.http_allow_private:
        hint = "use https: others can read a message that is sent by plain http"
        raise invalid(f"{field}.url", "an address that begins with https://", url, hint)


def check_workflow(ports: Ports, document: Mapping[str, Any]) -> None:
    """Check the addresses of a workflow: of its target, its resources and its notices (W9)."""
    check_target(ports, document["target"], "target")
    applications.check_resources(ports, document.get("resources"), "resources")
    for number, rule in enumerate(document.get("notify", ())):
        check_target(ports, rule["to"], f"notify.{number}.to")
