"""What a namespace may name by itself where it has no list, once the installation has several namespaces (O14): the
things whose names hold its own.

    sluice-target-<namespace>-<word>      the last hyphen ends the name of the namespace
    sluice-target-<namespace>--<text>     the first two hyphens in a row end it

So each name belongs to one namespace at most, whichever namespaces exist, although their names may have hyphens.
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "sluice-target-"


@dataclass(frozen=True, slots=True)
class Installation:
    """What a check needs to know of an installation. ``account`` is that of the stack; empty if unknown, as in tests.
    ``queue_endpoint`` is the address of an emulator of SQS. With ``is_shared`` a namespace without a list may name only
    what holds its name, the ``application`` of the stack, and code in its folder below ``code``."""

    account: str = ""
    queue_endpoint: str = ""
    is_shared: bool = False
    application: str = ""
    code: str = ""


def owner_of(name: str) -> str:
    """The namespace that the name of a thing holds; empty for none."""
    if not name.startswith(PREFIX):
        return ""
    rest = name.removeprefix(PREFIX)
    return rest.partition("--")[0] if "--" in rest else rest.rpartition("-")[0]


def name_of(kind: str, value: str) -> str:
    """The name of a thing in the form that patterns have, without type, path, version or alias."""
    if kind == "metrics":
        return value.partition("/")[0]  # the metric namespace, or its first part
    resource = value.split(":", 5)[-1] if value.startswith("arn:") else value
    match kind:
        case "functions" | "state_machines":
            return resource.partition(":")[2].partition(":")[0]
        case "buses":
            return resource.removeprefix("event-bus/")
        case "execution_roles":
            return resource.rpartition("/")[2]
    return resource
