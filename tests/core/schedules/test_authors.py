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


def test_c16_each_property_has_an_author_of_its_own() -> None:
    first = version({"workflow": "w", "properties": {"a": 1}, "timeout": {"after": "1h"}}, "ann")
    second = version({"workflow": "w", "properties": {"a": 2}, "timeout": {"after": "1h"}}, "bob", first)
    third = version({"workflow": "w", "properties": {"a": 2, "b": 1}, "timeout": None}, "cyd", second)
    assert third.authors == {
        "ann": ("workflow",),
        "bob": ("properties.a",),
        "cyd": ("properties.b", "timeout.after"),
    }


def test_c16_authors_of_earlier_code_keep_each_property() -> None:
    first = Version("demo.a.s", 1, {"workflow": "w", "properties": {"a": 1, "b": 1}}, 0, "bob",
                    authors={"ann": ("properties",), "bob": ("workflow",)})  # fmt: skip
    second = version({"workflow": "w", "properties": {"a": 1, "b": 2}}, "cyd", first)
    assert second.authors == {"ann": ("properties.a",), "bob": ("workflow",), "cyd": ("properties.b",)}


def test_c16_who_wrote_another_node_is_no_author_of_a_node() -> None:
    nodes = {"x": {"workflow": "w"}, "xy": {"workflow": "w", "properties": {"a": 1}}}
    first = version({"trigger": {"type": "time"}, "nodes": nodes}, "ann")
    nodes = {"x": {"workflow": "v"}, "xy": {"workflow": "w", "properties": {"a": 2}}}
    second = version({"trigger": {"type": "time"}, "nodes": nodes}, "bob", first)
    nodes = {"x": {"workflow": "u"}, "xy": {"workflow": "w", "properties": {"a": 2, "b": 3}}}
    third = version({"trigger": {"type": "manual"}, "nodes": nodes}, "cyd", second)
    assert (authors.of(third), authors.of(third, "x")) == (("ann", "bob", "cyd"), ("cyd",))
    assert authors.of(third, "xy") == ("ann", "bob", "cyd")
    assert authors.of(first, "x") == ("ann",)


def test_c16_authors_of_very_many_properties_fit_into_a_row() -> None:
    first = version({"properties": {f"p{number}": 1 for number in range(9_000)}}, "ann")
    second = version({"properties": {**first.definition["properties"], "p1": 2}}, "bob", first)
    assert second.authors == {"ann": ("properties",), "bob": ("properties",)}
    third = version({"properties": {**second.definition["properties"], "p1": 3}}, "ann", second)
    assert authors.of(third) == ("ann", "bob"), "it is not known which of them bob wrote"


def test_c16_who_takes_a_document_over_is_one_more_author() -> None:
    first = version({"workflow": "w", "priority": 1}, "ann")
    assert authors.with_author(first, first.definition, "max") == {
        "ann": ("priority", "workflow"),
        "max": ("priority", "workflow"),
    }
