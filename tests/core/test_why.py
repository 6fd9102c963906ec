from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from chalicelib.core.constraints.registry import CONSTRAINTS
from chalicelib.core.why import (
    CODES,
    FOUND,
    HIDDEN,
    NONE,
    Mention,
    MentionKind,
    Why,
    joined,
    mention,
    parse,
    plain,
    readers_of,
)

ROOT = Path(__file__).parents[2]
ROOM = Why.of("room_made", "cancelled to make room for job ", mention("run", "other.app.s.1.a"))
FULL = Why.of("limit", "waits for ", Mention("pool demo.p", "limit", "pool:demo.p"), ": 1 of 1 in use")


def test_a_reason_has_a_code_names_and_a_text() -> None:
    assert (ROOM.code, ROOM.text) == ("room_made", "cancelled to make room for job other.app.s.1.a")
    assert ROOM.names == (Mention("other.app.s.1.a", "run", "other.app.s.1.a"),)
    assert FULL.named("limit") == ("pool:demo.p",)
    assert (FULL.named("run"), FULL.text) == ((), "waits for pool demo.p: 1 of 1 in use")


def test_a_reason_within_another_keeps_its_names() -> None:
    outer = Why.of("timed_out", "not launched in time: ", FULL, "; ", ROOM)
    assert outer.code == "timed_out"
    assert outer.text == f"not launched in time: {FULL.text}; {ROOM.text}"
    assert (outer.named("limit"), outer.named("run")) == (("pool:demo.p",), ("other.app.s.1.a",))


@pytest.mark.parametrize("reason", [NONE, ROOM, FULL, Why.of("due", 'a "quoted" text \u00fc'), Why.of("target_failed")])
def test_a_stored_reason_is_read_as_it_was(reason: Why) -> None:
    assert parse(reason.kept()) == reason


def test_joined_reasons_have_the_code_of_the_first() -> None:
    assert joined([NONE, FULL, ROOM]) == Why.of("limit", FULL, "; ", ROOM)
    assert joined([FULL, NONE]) == FULL
    assert joined([]) == NONE


def test_a_reason_that_was_added_to_begins_with_the_former() -> None:
    assert ROOM.then("; more").begins_with(ROOM)
    assert ROOM.begins_with(Why(ROOM.code))
    assert not FULL.begins_with(ROOM)
    assert not Why.of("cancelled", *ROOM.parts).begins_with(ROOM)


def ours(name: str) -> bool:
    return name.startswith("demo.")


@pytest.mark.parametrize("kind", get_args(MentionKind))
def test_a_reader_sees_no_found_name_of_another_namespace(kind: MentionKind) -> None:
    reason = plain("before ", mention(kind, "other.app.s"), " and ", mention(kind, "demo.app.s"))
    shown = HIDDEN if kind in FOUND else "other.app.s"
    assert reason.seen(ours) == f"before {shown} and demo.app.s"
    assert reason.text == "before other.app.s and demo.app.s"


def test_only_names_are_hidden_and_no_text_that_looks_like_one() -> None:
    """The text of a user or of a target may look like a name, or like the sentence of a reason."""
    long = f"demo.{'a' * 60}.{'b' * 60}"
    run = "other.app.s.mf3k0p2q.0a1b2c3d4e5f60718293"
    reason = plain(
        mention("run", long), f": refused by ada: see {run}, inherited from other.raw; ", mention("run", run)
    )
    assert reason.seen(ours) == f"{long}: refused by ada: see {run}, inherited from other.raw; {HIDDEN}"


def test_a_namespace_whose_name_begins_with_another_is_another() -> None:
    sees = readers_of("a")
    reason = plain(mention("run", "a-b.app.s.1.x"), " ", mention("run", "a.app.s.1.x"))
    assert reason.seen(sees) == f"{HIDDEN} a.app.s.1.x"


def test_a_reason_is_no_text_by_accident() -> None:
    with pytest.raises(TypeError, match="part of Why.of"):
        f"{ROOM}"


def test_a_reason_is_cut_to_a_length() -> None:
    assert [FULL.cut(number).text for number in (3, 12, 100)] == ["wai", "waits for po", FULL.text]
    assert FULL.cut(100) == FULL
    assert FULL.cut(10).parts == ("waits for ",)


@pytest.mark.parametrize("length", range(35, 60))
def test_a_name_that_is_cut_is_still_hidden(length: int) -> None:
    short = parse(ROOM.cut(length).kept())
    assert short.text == ROOM.text[:length]
    assert short.seen(ours) == f"cancelled to make room for job {HIDDEN}"


@pytest.mark.parametrize("kind", get_args(MentionKind))
def test_a_cut_leaves_no_part_of_a_name_that_may_be_hidden(kind: MentionKind) -> None:
    reason = plain("before ", mention(kind, "other.app.s"), " after")
    seen = reason.cut(len("before other")).seen(lambda name: False)
    assert seen == (f"before {HIDDEN}" if kind in FOUND else "before other")
    assert reason.cut(len("before other.app.s")) == plain("before ", mention(kind, "other.app.s"))


def test_every_code_in_the_source_is_in_the_table() -> None:
    used = {
        node.args[0].value
        for folder in ("chalicelib", "sluice/operations")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr, getattr(node.func.value, "id", "")) == ("of", "Why")
        and isinstance(node.args[0], ast.Constant)
    }
    assert sorted(used - CODES.keys() - {""}) == []


def test_the_type_of_a_constraint_is_no_other_code() -> None:
    types = [get_args(kind.model_fields["type"].annotation)[0] for kind in CONSTRAINTS]
    assert "approval" in types
    assert [each for each in types if each in CODES] == []
