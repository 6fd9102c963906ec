"""The documents that users write: namespaces, apps, workflows, datasets, schedules. Stored as they were given.

Short names are those of the same app (workflows) or namespace (datasets); `Schedule.resolved` makes them full, so
that every stored row holds full names.
"""

from __future__ import annotations

from chalicelib.core.instants import Instant
from chalicelib.core.triggers.leaf import Names


def full_name(reference: str, namespace: str, app: str) -> str:
    """``name``, ``app.name`` or ``namespace.app.name`` as the last of these."""
    parts = reference.split(".")
    return ".".join([namespace, app][: 3 - len(parts)] + parts)


def dataset_name(reference: str, namespace: str) -> str:
    """``name`` or ``namespace.name`` as the latter."""
    return reference if "." in reference else f"{namespace}.{reference}"


def names_of(namespace: str, app: str, zone: str, now: Instant | None) -> Names:
    """What makes the references in the trigger of a schedule of this app full."""
    return Names(
        namespace,
        zone,
        now,
        workflow=lambda reference: full_name(reference, namespace, app),
        dataset=lambda reference: dataset_name(reference, namespace),
    )
