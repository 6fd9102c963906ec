"""Create and replace namespaces (O14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core import errors
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.definitions import store, uses
from chalicelib.flow.definitions.store import Change
from chalicelib.ports import Ports


def put(
    ports: Ports,
    name: str,
    document: Mapping[str, Any],
    by: str,
    if_match: int | None = None,
    dry_run: bool = False,
) -> Change:
    """Create or replace a namespace (`store.put`). Raises ``conflict`` for the second one of an installation while the
    first uses what would then be refused. A ``dry_run`` returns what a put would do, and writes nothing."""
    present = ports.rows.get(Definition, "namespace", name)
    if present is None:
        uses.require_room(ports, name)
    if not dry_run:
        return store.put(ports, "namespace", name, document, by, if_match)
    version = present.version if present is not None else 0
    if if_match is not None and if_match != version:
        raise errors.changed_meanwhile(f"namespace {name}")
    if present is not None and dict(present.document) == dict(document):
        return Change("unchanged", version)
    return Change("replaced" if present is not None else "created", version + 1)
