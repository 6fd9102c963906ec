"""Who wrote what a document says: for each person, the fields that this person changed last.

A field has the names that lead to it, such as ``properties.table`` or ``nodes.clean.priority``. A list is one field. A
document that one person wrote alone has no authors on its row: all of it is of the row's ``by``. A description, tags
and an owner decide nothing about a run, so they have no author. There are at most as many authors as fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from chalicelib.core.documents import DESCRIPTIVE

Authors = Mapping[str, tuple[str, ...]]  # the fields, by the ARN of who changed them last

NODES = "nodes."
# How many names a field has, by the first of them: users choose the keys of properties, which may be long.
_DEPTHS = {"properties": 2, "nodes": 4}
_DEPTH = 3
MAX_NAMES = 100_000  # bytes of all names; above it, who wrote a part of a field is an author of all of it


class Written(Protocol):
    """A row with a document: ``by`` is who made its last version."""

    @property
    def by(self) -> str: ...

    @property
    def authors(self) -> Authors: ...


def after(former: Written | None, before: Mapping[str, Any], document: Mapping[str, Any], by: str) -> Authors:
    """The authors of a document that ``by`` puts in place of ``before``, whose row is ``former``."""
    if former is None:
        return {}
    old, new = _fields(before), _fields(document)
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    own = {person: set(names) - changed for person, names in _of(former, before).items()}
    own[by] = own.get(by, set()) | changed
    found = {person: tuple(sorted(names)) for person, names in own.items() if names}
    if sum(len(name) for names in found.values() for name in names) > MAX_NAMES:
        found = {person: _tops(names) for person, names in found.items()}
    return found if set(found) - {by} else {}


def with_author(row: Written, document: Mapping[str, Any], by: str) -> Authors:
    """The authors of the document of a row, and one who has taken all of it over."""
    tops = _tops(_fields(document))
    return {**(row.authors or {row.by: tops}), by: tops}


def of(row: Written, node: str | None = None) -> tuple[str, ...]:
    """Everybody who wrote a part of the document that is still in force: of a DAG, for a ``node``, without the other
    nodes."""
    written = row.authors or {row.by: ()}
    return tuple(
        sorted(person for person, names in written.items() if not names or any(_counts(each, node) for each in names))
    )


def _counts(field: str, node: str | None) -> bool:
    return node is None or not field.startswith(NODES) or field.startswith(f"{NODES}{node}.")


def _of(row: Written, document: Mapping[str, Any]) -> Authors:
    """The authors by the fields of the document. For some rows the first names of fields are stored alone."""
    names = _fields(document)
    if not row.authors:
        return {row.by: tuple(sorted(names))}
    return {
        person: tuple(field for each in own for field in _below(each, names)) for person, own in row.authors.items()
    }


def _tops(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name.partition(".")[0] for name in names}))


def _below(name: str, fields: Mapping[str, Any]) -> list[str]:
    if "." in name:
        return [name]
    return [field for field in fields if field.startswith(f"{name}.")] or [name]


def _fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each field that is set."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        if name not in DESCRIPTIVE:
            _flatten(name, value, _DEPTHS.get(name, _DEPTH) - 1, found)
    return found


def _flatten(name: str, value: Any, depth: int, found: dict[str, Any]) -> None:
    if isinstance(value, Mapping) and depth > 0:
        for key, inner in value.items():
            _flatten(f"{name}.{key}", inner, depth - 1, found)
    elif value is not None:
        found[name] = value
