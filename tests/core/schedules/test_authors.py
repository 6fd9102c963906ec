"""Who wrote which part of a document that is in force (C16)."""

from __future__ import annotations

from typing import Any

from chalicelib.core.rows import authors
from chalicelib.core.rows.schedule import Version


def version(definition: dict[str, Any], by: str, before: Version | None = None) -> Version:
    written = authors.after(before, before.definition if before else {}, definition, by)
    return Version("demo.a.s", 1, definition, 0, by, authors=written)


def test_c16_who_wrote_a_document_alone_is_its_only_author() -> None:
    first = version({"workflow": "w", "priority": 1}, "ann")
    assert (first.authors, authors.of(first)) == ({}, ("ann",))
    again = version({"workflow": "w", "priority": 2}, "ann", first)
    assert (again.authors, authors.of(again)) == ({}, ("ann",))


def test_c16_a_change_leaves_the_authors_of_the_other_fields() -> None:
    first = version({"workflow": "w", "priority": 1, "description": ""}, "ann")
    second = version({"workflow": "w", "priority": 2, "description": ""}, "bob", first)
    assert second.authors == {"ann": ("workflow",), "bob": ("priority",)}
    third = version({"workflow": "w", "priority": 2, "description": "x"}, "cyd", second)
    assert authors.of(third) == ("ann", "bob"), "a description has no author"
    fourth = version({"workflow": "v", "priority": 2, "description": "x"}, "bob", third)
    assert (fourth.authors, authors.of(fourth)) == ({}, ("bob",))


def test_c16_a_removed_field_keeps_its_author() -> None:
    first = version({"workflow": "w", "timeout": "1h"}, "ann")
    second = version({"workflow": "w"}, "bob", first)
    third = version({"workflow": "w", "tags": {"a": "b"}}, "ann", second)
    assert third.authors == {"ann": ("workflow",), "bob": ("timeout",)}


def test_c16_who_takes_a_document_over_is_one_more_author() -> None:
    first = version({"workflow": "w", "priority": 1}, "ann")
    assert authors.with_author(first, first.definition, "max") == {
        "ann": ("priority", "workflow"),
        "max": ("priority", "workflow"),
    }
