from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from chalicelib.core.constraints.registry import CONSTRAINTS
from chalicelib.core.why import CODES, NONE, Mention, Why, joined, mention, parse

ROOT = Path(__file__).parents[2]
ROOM = Why.of("room_made", "cancelled to make room for job ", mention("run", "other.app.s.1.a"))
FULL = Why.of("limit", "waits for ", Mention("pool demo.p", "limit", "pool:demo.p"), ": 1 of 1 in use")


def test_a_reason_has_a_code_names_and_a_text() -> None:
    assert (ROOM.code, ROOM.text) == ("room_made", "cancelled to make room for job other.app.s.1.a")
    assert ROOM.names == (Mention("other.app.s.1.a", "run", "other.app.s.1.a"),)
    assert FULL.named("limit") == ("pool:demo.p",)
    assert (FULL.named("run"), str(FULL)) == ((), "waits for pool demo.p: 1 of 1 in use")


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


def test_a_reason_that_repeats_another_is_there_once() -> None:
    said = Why.of("cancelled", "cancelled by ", mention("person", "ada"))
    again = said.before(Why.of("target_cancelled", "Stopped: cancelled by ada"))
    assert again == Why.of("cancelled", "Stopped: ", said), "with the code and the names of the cancel"
    assert again.text == "Stopped: cancelled by ada"
    stopped = Why.of("target_cancelled", "exit code -15")
    assert said.before(stopped) == Why.of("cancelled", said, "; ", stopped)
    assert (said.before(NONE), NONE.before(stopped)) == (said, stopped)


def test_a_reason_is_cut_to_a_length() -> None:
    assert [FULL.cut(number).text for number in (3, 12, 100)] == ["wai", "waits for po", FULL.text]
    assert FULL.cut(100) == FULL


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
    assert sorted(used - CODES.keys()) == []


def test_the_type_of_a_constraint_is_no_other_code() -> None:
    types = [get_args(kind.model_fields["type"].annotation)[0] for kind in CONSTRAINTS]
    assert "approval" in types
    assert [each for each in types if each in CODES] == []
