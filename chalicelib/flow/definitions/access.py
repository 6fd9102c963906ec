"""Read and replace the access document of a namespace: its members and their roles (O5)."""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.core import errors
from chalicelib.core.access.document import Access
from chalicelib.core.rows.access import AccessRow
from chalicelib.core.rows.definition import Definition
from chalicelib.core.writes import Create, ExpectDefinition, Replace
from chalicelib.flow.definitions.store import Change, check_size
from chalicelib.flow.lookup import require
from chalicelib.ports import MAX_RACES, Page, Ports


def get(ports: Ports, namespace: str) -> AccessRow:
    """The access document of a namespace. Raises ``not_found`` if the namespace does not exist, or has no members."""
    require(ports, "namespace", namespace)
    found = ports.catalog.access(namespace)
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
    """Replace the members of a namespace. An identical document changes nothing. Raises ``not_found`` if the namespace
    does not exist. It expects the namespace in the same transaction: the members of a namespace that is deleted in this
    moment must not return with a new namespace of its name.

    ``check`` raises an error if the present document does not let the caller change it. Its version is expected in the
    transaction, too: an admin who loses the role in this moment must not take it back."""
    document = access.model_dump(mode="json", exclude_defaults=True)
    check_size(document)
    for _ in range(MAX_RACES):
        require(ports, "namespace", namespace)
        space = ports.catalog.definition("namespace", namespace)
        old = ports.catalog.access(namespace)
        if if_match is not None and if_match != (old.rev if old else None):
            raise errors.changed_meanwhile(f"the access of namespace {namespace}")
        if space is None:
            continue
        check(Access.model_validate(old.document) if old is not None else None)
        if old is not None and dict(old.document) == document:
            return Change("unchanged", old.rev)
        new = AccessRow(namespace, document, old.rev + 1 if old else 1, ports.clock.now(), by)
        if ports.ledger.commit([Replace(new) if old else Create(new), ExpectDefinition(space)]) is None:
            return Change("replaced" if old else "created", new.rev)
    raise errors.changed_meanwhile(f"the access of namespace {namespace}")


def namespaces(ports: Ports, visible: Callable[[Access], bool], limit: int, cursor: str | None) -> Page[Definition]:
    """The namespaces with an access document that ``visible`` accepts. A page may hold fewer than ``limit``."""
    page = ports.catalog.accesses(limit, cursor)
    seen = [row.namespace for row in page.items if visible(Access.model_validate(row.document))]
    rows = [ports.catalog.definition("namespace", name) for name in seen]
    return Page(tuple(row for row in rows if row is not None), page.cursor)
