"""Read and replace the access document of a namespace: its members and their roles (O5)."""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.core.access.roles import Access
from chalicelib.core.rows.access import AccessRow
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.definitions import of_namespace
from chalicelib.flow.definitions.of_namespace import DocumentOfNamespace
from chalicelib.flow.definitions.store import Change
from chalicelib.ports import Page, Ports

ACCESS = DocumentOfNamespace(
    AccessRow, "the access", "access document", "give it members: sluice access {} --file members.yaml"
)
get = ACCESS.get


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

    def check_row(old: AccessRow | None) -> None:
        check(Access.model_validate(old.document) if old is not None else None)

    return of_namespace.put(ports, ACCESS, namespace, document, by, if_match, check_row)


def namespaces(ports: Ports, visible: Callable[[Access], bool], limit: int, cursor: str | None) -> Page[Definition]:
    """The namespaces with an access document that ``visible`` accepts. A page may hold fewer than ``limit``."""
    page = ports.catalog.accesses(limit, cursor)
    seen = [row.namespace for row in page.items if visible(Access.model_validate(row.document))]
    rows = [ports.rows.get(Definition, "namespace", name) for name in seen]
    return Page(tuple(row for row in rows if row is not None), page.cursor)
