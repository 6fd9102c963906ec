"""The documents that users write: namespaces, apps, workflows, datasets, schedules. Stored as they were given.

Short names are those of the same app (workflows) or namespace (datasets); `Schedule.resolved` makes them full, so
that every stored row holds full names.
"""

from __future__ import annotations


def full_name(reference: str, namespace: str, app: str) -> str:
    """``name``, ``app.name`` or ``namespace.app.name`` as the last of these."""
    parts = reference.split(".")
    return ".".join([namespace, app][: 3 - len(parts)] + parts)


def dataset_name(reference: str, namespace: str) -> str:
    """``name`` or ``namespace.name`` as the latter."""
    return reference if "." in reference else f"{namespace}.{reference}"
