"""Who wrote what a document says: for each person, the fields that this person changed last.

A document that one person wrote alone has no authors on its row: all of it is of the row's ``by``. A description, tags
and an owner decide nothing about a run, so they have no author. A document has some forty fields, and so at most as
many authors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from chalicelib.core.documents import DESCRIPTIVE

Authors = Mapping[str, tuple[str, ...]]  # the fields, by the ARN of who changed them last


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
    fields = _fields(before) | _fields(document)
    changed = {name for name in fields if before.get(name) != document.get(name)}
    own = {person: set(names) - changed for person, names in _of(former, before).items()}
    own[by] = own.get(by, set()) | changed
    found = {person: tuple(sorted(names)) for person, names in own.items() if names}
    return found if set(found) - {by} else {}


def with_author(row: Written, document: Mapping[str, Any], by: str) -> Authors:
    """The authors of the document of a row, and one who has taken all of it over."""
    return {**_of(row, document), by: tuple(sorted(_fields(document)))}


def of(row: Written) -> tuple[str, ...]:
    """Everybody who wrote a part of the document that is still in force."""
    return tuple(sorted(row.authors or {row.by: ()}))


def _of(row: Written, document: Mapping[str, Any]) -> Authors:
    return row.authors or {row.by: tuple(sorted(_fields(document)))}


def _fields(document: Mapping[str, Any]) -> set[str]:
    return set(document) - DESCRIPTIVE
