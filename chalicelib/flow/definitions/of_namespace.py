"""Replace a document that a namespace has once: its members, its allow-list, its grants, or its quotas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from chalicelib.core import errors
from chalicelib.core.instants import Instant
from chalicelib.core.rows.access import AccessRow, AllowedRow, QuotasRow
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.writes import Create, ExpectDefinition, Replace
from chalicelib.flow.definitions.store import Change, check_size
from chalicelib.flow.lookup import require
from chalicelib.ports import MAX_CONFLICTS, Ports

R = TypeVar("R", AccessRow, AllowedRow, GrantsRow, QuotasRow)


@dataclass(frozen=True, slots=True)
class DocumentOfNamespace(Generic[R]):
    """One kind of such documents. ``label`` names it in messages, such as ``the access``, and ``name`` in the error for
    one that is missing, whose ``hint`` takes the namespace."""

    row: type[R]
    label: str
    name: str = ""
    hint: str = ""

    def get(self, ports: Ports, namespace: str) -> R:
        """The document of a namespace. Raises ``not_found`` if the namespace does not exist, or has none."""
        require(ports, "namespace", namespace)
        found = ports.rows.get(self.row, namespace)
        if found is None:
            raise errors.not_found(f"{self.name} of namespace", namespace, self.hint.format(namespace))
        return found

    def after(self, old: R | None, namespace: str, document: Mapping[str, Any], now: Instant, by: str) -> R:
        """The row after the present one, if there is one."""
        new = self.row(namespace, document, old.version + 1 if old else 1, now, by)
        if isinstance(new, GrantsRow):
            new = replace(new, rev=old.rev + 1 if old else 1, wake_at=now)
        return replace(new, unknown=old.unknown) if old else new


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
        old = ports.rows.get(kind.row, namespace)
        if if_match is not None and if_match != (old.version if old else None):
            break
        if space is None:
            continue
        check(old)
        if old is not None and dict(old.document) == document:
            return Change("unchanged", old.version)
        new = kind.after(old, namespace, document, ports.clock.now(), by)
        if ports.ledger.commit([Replace(new, before=old) if old else Create(new), ExpectDefinition(space)]) is None:
            return Change("replaced" if old else "created", new.version)
    raise errors.changed_meanwhile(f"{kind.label} of namespace {namespace}")
