"""The changes between two versions of a document, in lines (L7)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.definitions.diff import changes
from tests.core.builders import brief, thorough

values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5]) | st.text("ab1.", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), values, max_size=4)


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"a": {"max": 1}}, {"a": {"max": 2}}, ["a.max: 1 -> 2"]),
        ({"a": [{"max": 1}]}, {"a": [{"max": 2}]}, ["a.0.max: 1 -> 2"]),
        ({"tags": {}}, {"tags": {"team": "a"}}, ["tags.team: added 'a'"]),
        ({"tags": {"team": "a"}}, {"tags": {}}, ["tags.team: removed 'a'"]),
        ({"a": [1, {"type": "time", "zone": "UTC"}]}, {"a": [1]}, ["a.1: removed {type: 'time', zone: 'UTC'}"]),
        ({}, {"a": {"b": [], "c": {}}}, ["a: added {b: [], c: {}}"]),
        ({"a": None}, {"a": False}, ["a: null -> false"]),
        ({"a": None}, {}, ["a: removed null"]),
        ({"a": {}}, {"a": []}, ["a: {} -> []"]),
        ({"a": {"b": 1}}, {"a": "b"}, ["a: {b: 1} -> 'b'"]),
        ({"a": "1"}, {"a": 1}, ["a: '1' -> 1"]),
        ({"a": "one\ntwo"}, {"a": "it's"}, ["a: 'one\\ntwo' -> \"it's\""]),
        ({"a": {"b": {"c": {"d": {"e": 1}}}}}, {}, ["a: removed {b: {c: {d: {e: 1}}}}"]),
        ({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, {}, ["a: removed {b: {c: {d: {e: {...}}}}}"]),
        ({"a": [[[[[[1]], []]]]]}, {}, ["a: removed [[[[[...], []]]]]"]),
    ],
)
def test_l7_a_changed_leaf_is_one_diff_line(old: dict[str, Any], new: dict[str, Any], lines: list[str]) -> None:
    assert changes(old, new) == lines


def test_l7_a_changed_token_is_shown_without_its_value() -> None:
    old, new = ({"target": {"arguments": ["--key", f"ghp_{sign * 36}"]}} for sign in "ab")
    [line] = changes(old, new)
    before, after = line.removeprefix("target.arguments.1: ").split(" -> ")
    assert before != after
    assert before.startswith("'***")
    assert "ghp_" not in line


def test_l7_diff_lines_are_sorted_for_any_document_order() -> None:
    old = {"z": 1, "list": list(range(11)), "a": {"y": 1, "x": 1}}
    new = {"a": {"x": 2, "y": 2}, "list": [*range(2), 9, *range(3, 10), 0], "z": 2}
    lines = ["a.x: 1 -> 2", "a.y: 1 -> 2", "list.2: 2 -> 9", "list.10: 10 -> 0", "z: 1 -> 2"]
    assert changes(old, new) == lines


def test_l7_a_list_is_compared_by_position() -> None:
    assert changes({"a": ["x", "y"]}, {"a": ["y"]}) == ["a.0: 'x' -> 'y'", "a.1: removed 'y'"]


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), ([1, {}], (1.0, {})), ((1.0, {}), [1, {}])])
def test_l7_values_with_equal_json_have_not_changed(one: Any, other: Any) -> None:
    assert changes({"a": one}, {"a": other}) == []


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (0, None), ("", None), ("", []), ([], {}), ("1", 1)])
def test_l7_values_that_json_distinguishes_have_changed(one: Any, other: Any) -> None:
    assert len(changes({"a": one}, {"a": other})) == len(changes({"a": other}, {"a": one})) == 1


def test_l7_a_long_value_in_a_diff_is_truncated() -> None:
    (line,) = changes({"a": "x" * 1_000}, {"a": list(range(1_000))})
    before, _, after = line.removeprefix("a: ").partition(" -> ")
    assert (len(before), len(after)) == (80, 80)
    assert before.startswith("'xxx")
    assert after.startswith("[0, 1, 2")
    assert before.endswith("...")
    assert after.endswith("...")


def test_l7_long_values_that_differ_at_the_end_are_shown_unequal() -> None:
    (line,) = changes({"a": "x" * 100 + "old"}, {"a": "x" * 100 + "new"})
    assert line == f"a: changed beyond the part shown, '{'x' * 76}..."


def test_l7_a_document_may_be_deeper_than_the_recursion_limit() -> None:
    old: dict[str, Any] = {"a": 1}
    new: dict[str, Any] = {"a": 2}
    for _ in range(5_000):
        old, new = {"a": old}, {"a": new}

    (line,) = changes(old, new)
    assert line.endswith("a.a: 1 -> 2")
    assert changes({"a": old}, {"a": 1}) == ["a: {a: {a: {a: {a: {...}}}}} -> 1"]


def same_json(one: Any, other: Any) -> bool:
    """Equality as JSON, by comparing texts: all numbers are written as fractions, and names in order."""
    return _text(one) == _text(other)


def _text(value: Any) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, list):
            return [plain(each) for each in value]
        return float(value) if type(value) in (int, float) else value

    return json.dumps(plain(value), sort_keys=True)


@given(documents, documents)
@thorough
def test_l7_a_diff_has_lines_exactly_when_documents_differ(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert (changes(old, new) == []) == same_json(old, new)


@given(documents)
@brief
def test_l7_other_number_types_and_key_order_make_no_difference(old: dict[str, Any]) -> None:
    def again(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: again(value[key]) for key in reversed(value)}
        if isinstance(value, list):
            return tuple(map(again, value))
        return float(value) if type(value) is int else value

    assert changes(old, again(old)) == []


@given(documents, st.data())
@thorough
def test_l7_one_changed_leaf_is_one_diff_line_with_its_path(old: dict[str, Any], data: st.DataObject) -> None:
    new, paths = copy.deepcopy(old), list(leaf_paths(old))
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    holder: Any = new
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = "changed"

    (line,) = changes(old, new)
    assert line.startswith(".".join(map(str, path)) + ": ")
    assert line.endswith(" -> 'changed'")


def leaf_paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for key, each in items for found in leaf_paths(each, (*path, key))]
    return [path]


@given(documents, documents)
@brief
def test_l7_the_reverse_diff_names_the_same_paths(old: dict[str, Any], new: dict[str, Any]) -> None:
    def places(lines: list[str]) -> list[str]:
        return [line.partition(": ")[0] for line in lines]

    assert places(changes(old, new)) == places(changes(new, old))
