"""Short and full names. In a document, a workflow without dots belongs to the same app. A dataset, a policy, a pool or
a calendar without dots belongs to the same namespace. Stored rows hold full names, which `Names` makes."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import Instant

SYSTEM = "system"  # the namespace of Sluice's own app, which every installation has


def full_name(reference: str, namespace: str, app: str) -> str:
    """``name``, ``app.name`` or ``namespace.app.name`` as the last of these."""
    parts = reference.split(".")
    return ".".join([namespace, app][: 3 - len(parts)] + parts)


def name_in(namespace: str, reference: str) -> str | None:
    """The full name of a schedule or workflow of a namespace, from ``app.name`` or the full name; None for any other
    text."""
    full = reference if reference.count(".") == 2 else f"{namespace}.{reference}"
    return full if full.count(".") == 2 and full.startswith(f"{namespace}.") else None


def dataset_name(reference: str, namespace: str) -> str:
    """``name`` or ``namespace.name`` as the latter."""
    return reference if "." in reference else f"{namespace}.{reference}"


@dataclass(frozen=True, slots=True)
class Names:
    """Makes the names in a schedule's document full. ``zone`` is the schedule's time zone. ``now`` is the instant from
    which time spans count; with None, spans stay as they are."""

    namespace: str
    app: str
    zone: str
    now: Instant | None

    def in_app(self, reference: str) -> str:
        """The full name of a workflow."""
        return full_name(reference, self.namespace, self.app)

    def in_namespace(self, reference: str) -> str:
        """The full name of a dataset, a policy, a pool or a calendar."""
        return dataset_name(reference, self.namespace)
