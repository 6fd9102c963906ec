"""Addresses that documents name, checked when they are stored against what this installation allows (O6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core.errors import invalid
from chalicelib.flow.definitions import applications
from chalicelib.ports import Ports


def check_target(ports: Ports, target: Mapping[str, Any], field: str) -> None:
    """Refuse a web address by plain http, and an EMR application or role that the stack does not list. Where a name
    leads to is checked at every call: it may change by then."""
    applications.check_target(ports, target, field)
    url = target.get("url")
    if url is not None and not str(url).startswith("https:") and not ports.settings.http_allow_private:
        hint = "what is sent by plain http can be read on its way"
        raise invalid(f"{field}.url", "an address that begins with https://", url, hint)


def check_workflow(ports: Ports, document: Mapping[str, Any]) -> None:
    """The addresses of a workflow: where it runs, and who is told of it (W9)."""
    check_target(ports, document["target"], "target")
    applications.check_resources(ports, document.get("resources"), "resources")
    for number, rule in enumerate(document.get("notify", ())):
        check_target(ports, rule["to"], f"notify.{number}.to")
