"""Read and replace the quotas of a namespace, and count what it has (O9)."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalicelib.core.quotas.document import Quotas, Usage
from chalicelib.core.rows.access import QuotasRow
from chalicelib.flow.definitions import of_namespace
from chalicelib.flow.definitions.of_namespace import DocumentOfNamespace
from chalicelib.flow.definitions.store import Change
from chalicelib.flow.lookup import definitions_in, every, require
from chalicelib.ports import Kind, Ports

OF_NAMESPACE: tuple[Kind, ...] = ("dataset", "policy", "pool", "calendar")
QUOTAS = DocumentOfNamespace(QuotasRow, "the quotas")
OF_APP: tuple[Kind, ...] = ("workflow", "dag")


def quotas_of(ports: Ports, namespace: str) -> Quotas:
    """The quotas that hold for a namespace: its own, else those of the installation."""
    row, settings = ports.rows.get(QuotasRow, namespace), ports.settings
    own = Quotas.model_validate(row.document) if row is not None else Quotas()
    return own.over(Quotas(**{name: getattr(settings, f"quota_{name}") for name in Quotas.model_fields}))


def put(ports: Ports, namespace: str, quotas: Quotas, by: str, if_match: int | None = None) -> Change:
    """Replace the quotas of a namespace (`of_namespace.put`)."""
    document = quotas.model_dump(mode="json", exclude_none=True)
    return of_namespace.put(ports, QUOTAS, namespace, document, by, if_match)


def usage_of(ports: Ports, namespace: str) -> Usage:
    """What a namespace has now. This reads the keys of all its documents."""
    apps = [row.name for row in definitions_in(ports, "app", namespace)]
    documents = sum(ports.catalog.count(kind, namespace) for kind in OF_NAMESPACE)
    schedules, fires = 0, {}
    for app in apps:
        documents += sum(ports.catalog.count(kind, app) for kind in OF_APP)
        for listing in every(partial(ports.catalog.listings, app)):
            schedules += 1
            if listing.fires is not None:
                fires[listing.schedule] = listing.fires
    return Usage(schedules, documents + schedules, fires)


def view(ports: Ports, namespace: str) -> dict[str, Any]:
    """The quotas of a namespace as the API returns them: its own fields, what holds, and what is used, without its
    waiting jobs."""
    require(ports, "namespace", namespace)
    row, used = ports.rows.get(QuotasRow, namespace), usage_of(ports, namespace)
    return {
        "name": namespace,
        "kind": "quotas",
        **(row.document if row is not None else {}),
        "version": row.rev if row is not None else 0,
        "effective": quotas_of(ports, namespace).model_dump(mode="json"),
        "used": {
            "schedules": used.schedules,
            "fires_per_second": round(used.fires_per_second, 3),
            "documents": used.documents,
        },
    }
