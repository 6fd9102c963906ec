"""Read and replace the access document of a namespace: its members and their roles (O5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chalicelib.core import errors
from chalicelib.core.access.roles import Access
from chalicelib.core.instants import Instant
from chalicelib.core.rows.access import AccessRow
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.definitions import of_namespace
from chalicelib.flow.definitions.store import Change
from chalicelib.flow.lookup import require
from chalicelib.ports import Page, Ports


def get(ports: Ports, namespace: str) -> AccessRow:
    """The access document of a namespace. Raises ``not_found`` if the namespace does not exist, or has no members."""
    require(ports, "namespace", namespace)
    found = ports.rows.get(AccessRow, namespace)
    if found is None:
        hint = f"give it members: sluice access {namespace} --file members.yaml"
        raise errors.not_found("access document of namespace", namespace, hint)
    return found


def put(
    ports: Ports,
    namespace: str,
    access: Access,
    by: str,
    if_match: int | None = None,
    check: Callable[[Access | None], None] = lambda old: None,
) -> Change:
    """Replace the members of a namespace (`of_namespace.put`). ``check`` raises an error if the present members do not
    let the caller change them. Their version is expected in the transaction: an admin who loses the role in this moment
    must not take it back."""
    document = access.model_dump(mode="json", exclude_defaults=True)
    return of_namespace.put(
        ports,
        ACCESS,
        namespace,
        document,
        by,
        if_match,
        lambda old: check(Access.model_validate(old.document) if old is not None else None),
    )


def _next(namespace: str, old: AccessRow | None, document: Mapping[str, Any], now: Instant, by: str) -> AccessRow:
    new = AccessRow(namespace, document, 1, now, by)
    return replace(new, rev=old.rev + 1, unknown=old.unknown) if old is not None else new


ACCESS: of_namespace.DocumentOfNamespace[AccessRow] = of_namespace.DocumentOfNamespace(
    "the access", lambda ports, name: ports.rows.get(AccessRow, name), _next, lambda row: row.rev
)


def namespaces(ports: Ports, visible: Callable[[Access], bool], limit: int, cursor: str | None) -> Page[Definition]:
    """The namespaces with an access document that ``visible`` accepts. A page may hold fewer than ``limit``."""
    page = ports.catalog.accesses(limit, cursor)
    seen = [row.namespace for row in page.items if visible(Access.model_validate(row.document))]
    rows = [ports.rows.get(Definition, "namespace", name) for name in seen]
    return Page(tuple(row for row in rows if row is not None), page.cursor)
