"""Read and replace the allow-list of a namespace (O10)."""

from __future__ import annotations

from chalicelib.core import errors
from chalicelib.core.access.allowed import Allowed
from chalicelib.core.rows.access import AllowedRow
from chalicelib.core.writes import Create, ExpectDefinition, Replace
from chalicelib.flow.definitions.store import Change, check_size
from chalicelib.flow.lookup import require
from chalicelib.ports import MAX_RACES, Ports


def get(ports: Ports, namespace: str) -> AllowedRow:
    """The allow-list of a namespace. Raises ``not_found`` if the namespace does not exist, or has no list."""
    require(ports, "namespace", namespace)
    found = ports.catalog.allowed(namespace)
    if found is None:
        hint = "without one, the namespace may use what the parameters of the stack allow"
        raise errors.not_found("allow-list of namespace", namespace, hint)
    return found


def put(ports: Ports, namespace: str, document: Allowed, by: str, if_match: int | None = None) -> Change:
    """Replace the allow-list of a namespace. An identical one changes nothing. Raises ``not_found`` if the namespace
    does not exist. It expects the namespace in the same transaction: the list of a namespace that is deleted in this
    moment must not return with a new namespace of its name."""
    content = document.model_dump(mode="json", exclude_defaults=True)
    check_size(content)
    for _ in range(MAX_RACES):
        require(ports, "namespace", namespace)
        space = ports.catalog.definition("namespace", namespace)
        old = ports.catalog.allowed(namespace)
        if if_match is not None and if_match != (old.rev if old else None):
            raise errors.changed_meanwhile(f"the allow-list of namespace {namespace}")
        if old is not None and dict(old.document) == content:
            return Change("unchanged", old.rev)
        if space is None:
            continue
        new = AllowedRow(namespace, content, old.rev + 1 if old else 1, ports.clock.now(), by)
        if ports.ledger.commit([Replace(new) if old else Create(new), ExpectDefinition(space)]) is None:
            return Change("replaced" if old else "created", new.rev)
    raise errors.changed_meanwhile(f"the allow-list of namespace {namespace}")
