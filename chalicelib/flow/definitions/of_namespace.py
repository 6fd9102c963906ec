"""Replace a document that a namespace has once: its members, its allow-list, its grants, or its quotas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chalicelib.core import errors
from chalicelib.core.instants import Instant
from chalicelib.core.rows.access import AccessRow, AllowedRow
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.quotas import QuotasRow
from chalicelib.core.writes import Create, ExpectDefinition, Replace
from chalicelib.flow.definitions.store import Change, check_size
from chalicelib.flow.lookup import require
from chalicelib.ports import MAX_CONFLICTS, Ports

R = TypeVar("R", AccessRow, AllowedRow, GrantsRow, QuotasRow)


@dataclass(frozen=True, slots=True)
class DocumentOfNamespace(Generic[R]):
    """One kind of such documents. ``label`` names it in messages, such as ``the access``. ``make`` returns the row
    after the present one, if there is one. Its arguments are the namespace, that row, the document, the instant and the
    user."""

    label: str
    read: Callable[[Ports, str], R | None]
    make: Callable[[str, R | None, Mapping[str, Any], Instant, str], R]
    version: Callable[[R], int]


def put(
    ports: Ports,
    kind: DocumentOfNamespace[R],
    namespace: str,
    document: Mapping[str, Any],
    by: str,
    if_match: int | None = None,
    check: Callable[[R | None], None] = lambda old: None,
) -> Change:
    """Replace the document of a namespace. An identical one changes nothing. ``if_match`` is the version that the
    caller has read, and ``check`` raises an error if the present document does not let the caller change it.

    The transaction expects the present version and the namespace. A document of a namespace that is deleted in this
    moment must not return with a new namespace of its name. Raises ``not_found`` if the namespace does not exist, and
    ``changed_meanwhile`` if the version is another one, or after ``MAX_CONFLICTS`` conflicts in a row."""
    check_size(document)
    for _ in range(MAX_CONFLICTS):
        require(ports, "namespace", namespace)
        space = ports.rows.get(Definition, "namespace", namespace)
        old = kind.read(ports, namespace)
        if if_match is not None and if_match != (kind.version(old) if old else None):
            break
        if space is None:
            continue
        check(old)
        if old is not None and dict(old.document) == document:
            return Change("unchanged", kind.version(old))
        new = kind.make(namespace, old, document, ports.clock.now(), by)
        if ports.ledger.commit([Replace(new, before=old) if old else Create(new), ExpectDefinition(space)]) is None:
            return Change("replaced" if old else "created", kind.version(new))
    raise errors.changed_meanwhile(f"{kind.label} of namespace {namespace}")
