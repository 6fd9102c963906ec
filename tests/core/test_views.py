"""Views of rows: which fields are copied, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NotRequired

import pytest

from chalicelib.core.views import At, View, shown, stored


@dataclass(frozen=True)
class Row:
    name: str = "demo.a"
    reason: str = ""
    began_at: int = 0
    ended_at: int | None = None
    kinds: tuple[str, ...] = ("a", "b")
    counts: dict[str, int] = field(default_factory=dict)
    late: int = 0


class Seen(View):
    name: str
    reason: str | None
    began_at: At
    ended_at: At | None
    kinds: list[str]
    counts: dict[str, int]
    late: int | None
    note: NotRequired[str | None]


def test_a_view_copies_the_fields_of_a_row() -> None:
    assert shown(Seen, Row()) == {
        "name": "demo.a",
        "reason": None,
        "began_at": "1970-01-01T00:00:00.000Z",
        "ended_at": None,
        "kinds": ["a", "b"],
        "counts": {},
        "late": 0,
    }


def test_a_given_field_is_shown_as_it_is() -> None:
    view = shown(Seen, Row(), reason="", late=None, note="x")
    assert (view["reason"], view["late"], view["note"]) == ("", None, "x")


def test_what_is_no_text_is_shown_as_its_text() -> None:
    class Sentence:
        def __str__(self) -> str:
            return "it waits"

    assert shown(Seen, Row(reason=Sentence()))["reason"] == "it waits"


def test_a_field_that_no_row_has_must_be_given() -> None:
    with pytest.raises(AttributeError, match="name"):
        shown(Seen, object())


def test_a_stored_document_says_who_changed_it_last() -> None:
    @dataclass
    class Changed:
        updated_at: int = 0
        by: str = "ada"

    assert stored("demo", "pool", {"slots": 2}, 3, Changed()) == {
        "name": "demo",
        "kind": "pool",
        "slots": 2,
        "version": 3,
        "updated_at": "1970-01-01T00:00:00.000Z",
        "updated_by": "ada",
    }
