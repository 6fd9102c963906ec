"""Patterns that select custom events by their payload (T11): what they match, what is refused, and their texts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import SluiceError
from chalicelib.core.steps import OverBudget, Steps
from chalicelib.core.triggers import patterns as patterns_module
from chalicelib.core.triggers.patterns import Flattened, Matcher, check_pattern, describe
from tests.core.builders import brief, thorough


def matches(pattern: Mapping[str, Any], payload: Any) -> bool:
    return Matcher(pattern).matches(Flattened(payload))


def holds(leaf: list[Any], value: Any) -> bool:
    """Whether a leaf holds for a value; every pattern that a test matches with is one that can be stored."""
    pattern = {"x": leaf}
    check_pattern(pattern, "pattern")
    return matches(pattern, {"x": value})


def refusal(pattern: Any) -> SluiceError:
    with pytest.raises(SluiceError) as caught:
        check_pattern(pattern, "trigger.pattern")
    assert caught.value.code == "invalid"
    return caught.value


@pytest.mark.parametrize(
    ("leaf", "yes", "no"),
    [
        (["a", "b"], ["a", "b"], ["c", "A", "", None, 1]),
        ([1], [1, 1.0], [True, "1", 2, None]),
        ([0], [0, 0.0], [False, "", None, []]),
        ([True], [True], [1, 1.0, "true", False]),
        ([None], [None], [0, False, "", "null", {}, []]),
        ([{"prefix": "eu-"}], ["eu-", "eu-west-1"], ["EU-west-1", "us-eu-", "", 1, None]),
        ([{"suffix": ".csv"}], [".csv", "a.csv"], [".csv.gz", "a.CSV", 1, None]),
        ([{"equals-ignore-case": "Ärger"}], ["ärger", "ÄRGER"], ["arger", "Ärger ", 1]),
        ([{"anything-but": "a"}], ["b", "", 1, None, True], ["a"]),
        ([{"anything-but": 1}], ["1", 2, True], [1, 1.0]),
        ([{"anything-but": ["a", 1, None]}], ["b", 2, False], ["a", 1.0, None]),
        ([{"anything-but": {"prefix": "tmp"}}], ["a", "", 1, None], ["tmp", "tmp/a"]),
        ([{"anything-but": {"suffix": "~"}}], ["~a", 1], ["a~", "~"]),
        ([{"exists": True}], ["", 0, False, None, {}, [], {"a": 1}], []),
        ([{"exists": False}], [], ["", 0, False, None, {}, []]),
        ([{"numeric": ["=", 5]}], [5, 5.0], [4, "5", True, None]),
        ([{"numeric": [">", 5]}], [6, 5.1, 10**400], [5, 4, "6", float("nan")]),
        ([{"numeric": [">=", 5]}], [5, 6], [4.9]),
        ([{"numeric": ["<=", 0]}], [0, -0.5, -(10**400)], [0.1, None, True]),
        ([{"numeric": [">", 0, "<=", 10]}], [1, 10], [0, 11]),
        ([{"numeric": ["<", 10, ">=", 0]}], [0, 9.9], [10, -1]),
        ([{"numeric": [">=", 1, "<=", 1]}], [1], [0, 2]),
        ([{"wildcard": "a*b"}], ["ab", "axb", "aab", "a*b"], ["a", "abc", "b", "xab", 1]),
        ([{"wildcard": "*.gz"}], [".gz", "a.gz"], ["gz", "a.gz "]),
        ([{"wildcard": "a*b*c"}], ["abc", "a b b c c"], ["acb", "ab", "ac"]),
        ([{"wildcard": "aba*aba"}], ["abaaba", "aba-aba"], ["aba", "ababa"]),
        ([{"wildcard": "a\n**b"}], ["a\nb", "a\n1b"], ["ab", "a\n"]),
        ([{"wildcard": "*"}], ["", "a\nb"], [1, None]),
        ([{"wildcard": "a"}], ["a"], ["", "aa", "A"]),
        ([{"wildcard": r"a\*b\\*"}], ["a*b\\", "a*b\\c"], ["axb\\", "a*b", r"a\*b\\"]),
        (["a", {"prefix": "b"}, {"numeric": [">", 5]}], ["a", "bc", 6], ["ab", 5]),
        # a list holds if one element does
        (["a"], [["a"], ["b", "a"], [["b"], [["a"]]]], [[], ["b"], [["b"]]]),
        ([{"anything-but": "a"}], [["a", "b"]], [["a"], ["a", "a"], []]),
        ([{"numeric": [">", 1, "<", 3]}], [[0, 2, 4]], [[0, 4]]),
        # an object in the place of a value only exists; it matches none of these
        (["a", None, {"anything-but": "a"}, {"anything-but": {"prefix": "a"}}], [], [{}, {"a": "a"}, [{"a": "a"}]]),
    ],
)
def test_t11_a_leaf_holds_if_one_of_its_alternatives_does(leaf: list[Any], yes: list[Any], no: list[Any]) -> None:
    assert [value for value in yes if not holds(leaf, value)] == []
    assert [value for value in no if holds(leaf, value)] == []


def test_t11_all_fields_must_hold_and_further_ones_do_not_matter() -> None:
    pattern = {"region": ["eu"], "order": {"total": [{"numeric": [">", 100]}], "lines": {"count": [1]}}}
    payload = {"region": "eu", "order": {"total": 101, "lines": {"count": 1, "more": {}}}, "more": 1}
    assert matches(pattern, payload)
    assert matches({}, payload)
    assert not matches(pattern, {**payload, "region": "us"})
    assert not matches(pattern, {**payload, "order": {"total": 101, "lines": {"count": 2}}})


@pytest.mark.parametrize("payload", [{}, {"other": "a"}, None, "a", [], 1])
@pytest.mark.parametrize("alternative", [None, {"prefix": ""}, {"anything-but": {"prefix": "a"}}, {"exists": True}])
def test_t11_a_missing_field_matches_nothing(payload: Any, alternative: Any) -> None:
    assert not matches({"x": [alternative]}, payload)
    assert not matches({"x": {"y": [alternative]}}, payload)


@pytest.mark.parametrize("payload", [{}, {"a": None}, {"a": {}}, {"a": {"b": 1}}, {"a": []}, {"a": 1}])
def test_t11_exists_false_matches_at_any_missing_part_of_a_path(payload: Any) -> None:
    assert matches({"a": {"b": {"c": [{"exists": False}]}}}, payload)


def test_t11_among_objects_in_a_list_one_must_match_by_itself() -> None:
    pattern = {"lines": {"sku": ["a"], "count": [{"numeric": [">", 1]}]}}
    assert matches(pattern, {"lines": [{"sku": "b", "count": 1}, {"sku": "a", "count": 2}]})
    assert not matches(pattern, {"lines": [{"sku": "b", "count": 2}, {"sku": "a", "count": 1}]})
    assert matches({"lines": {"sku": ["a"]}}, {"lines": ["none", [{"sku": "a"}]]})


def test_t11_or_needs_one_of_its_patterns_and_all_beside_it() -> None:
    pattern = {"kind": ["order"], "$or": [{"total": [{"numeric": [">", 100]}]}, {"customer": {"vip": [True]}}]}
    check_pattern(pattern, "pattern")
    assert matches(pattern, {"kind": "order", "total": 101})
    assert matches(pattern, {"kind": "order", "total": 1, "customer": {"vip": True}})
    assert not matches(pattern, {"kind": "order", "total": 1, "customer": {"vip": False}})
    assert not matches(pattern, {"kind": "offer", "total": 101})


def test_t11_patterns_under_or_may_be_deeper_and_nested() -> None:
    pattern = {"a": {"$or": [{"b": [1]}, {"$or": [{"c": [2]}, {"d": [{"exists": False}]}]}]}}
    check_pattern(pattern, "pattern")
    assert matches(pattern, {"a": {"b": 1, "d": 0}})
    assert matches(pattern, {"a": {"c": 2, "d": 0}})
    assert matches(pattern, {})
    assert not matches(pattern, {"a": {"b": 2, "c": 1, "d": 0}})


def test_t11_lists_within_lists_in_a_payload_are_searched() -> None:
    value = reduce(lambda inner, _: [inner], range(5_000), ["a"])
    assert holds(["a"], value)
    assert not holds(["b"], value)


def test_t11_no_wildcard_takes_long_on_a_hostile_text() -> None:
    """A regular expression would try each way to cut the text into forty pieces, and never end."""
    assert not holds([{"wildcard": "a*" * 40 + "b"}], "a" * 10_000)


words = st.text("ab*\\", max_size=6)
numbers = st.integers(-5, 5) | st.sampled_from([-1.0, 0.0, 0.5, 1.0])
plain = st.none() | st.booleans() | numbers | words
keys = st.sampled_from("abc")
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))
payloads = st.dictionaries(keys, values)
literals = words.map(lambda text: re.sub(r"([*\\])", r"\\\1", text))
wildcards = st.lists(st.just("*") | literals, max_size=5).map("".join)
alternatives = plain | st.one_of(
    st.dictionaries(st.sampled_from(["prefix", "suffix", "equals-ignore-case"]), words, min_size=1, max_size=1),
    st.fixed_dictionaries({"wildcard": wildcards}),
    st.fixed_dictionaries({"exists": st.booleans()}),
    st.fixed_dictionaries({"anything-but": plain | st.lists(plain, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"anything-but": st.fixed_dictionaries({"prefix": words})}),
    st.fixed_dictionaries({"numeric": st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), numbers).map(list)}),
)
leaves = st.lists(alternatives, min_size=1, max_size=3)
patterns = st.recursive(
    st.dictionaries(keys, leaves, min_size=1, max_size=2),
    lambda inner: (
        st.dictionaries(keys, inner | leaves, min_size=1, max_size=2)
        | st.fixed_dictionaries({"$or": st.lists(inner, min_size=1, max_size=2)})
    ),
    max_leaves=5,
)


@given(patterns, payloads)
@thorough
def test_t11_every_valid_pattern_can_be_matched_and_described(pattern: dict[str, Any], payload: dict[str, Any]) -> None:
    check_pattern(pattern, "pattern")
    assert matches(pattern, payload) in (True, False)
    assert 0 < len(describe(pattern)) <= 200


@given(patterns, patterns, payloads)
@brief
def test_t11_or_means_any_and_fields_mean_all(
    one: dict[str, Any], other: dict[str, Any], payload: dict[str, Any]
) -> None:
    first, second = matches(one, payload), matches(other, payload)
    assert matches({"$or": [one, other]}, payload) == (first or second)
    assert matches({"a": one, "b": other}, {"a": payload, "b": payload}) == (first and second)


@given(wildcards, st.text("ab*\\", max_size=8))
@thorough
def test_t11_a_wildcard_equals_its_regular_expression(wildcard: str, text: str) -> None:
    expression = re.sub(r"\\(.)|\*", lambda found: re.escape(found[1]) if found[1] else ".*", wildcard)
    assert holds([{"wildcard": wildcard}], text) == bool(re.fullmatch(expression, text, re.DOTALL))


@pytest.mark.parametrize(
    ("pattern", "field", "message"),
    [
        (["a"], "", "expected an object with the fields to match, got ['a']"),
        ({"a": "b"}, ".a", "expected a list of alternatives such as"),
        ({"a": []}, ".a", "expected a list of alternatives such as"),
        ({"a": {}}, ".a", "expected an object with the fields to match, got {}"),
        ({"a": {"b": [["c"]]}}, ".a.b.0", "expected a text, a number, true, false, null, or an object with one"),
        ({"a": [float("nan")]}, ".a.0", "expected a text, a number, true, false, null, or an object with one"),
        ({"a": ["b", {}]}, ".a.1", "expected a text, a number, true, false, null, or an object with one operator"),
        ({"a": [{"cidr": "10.0.0.0/8"}]}, ".a.0.cidr", "expected an operator, one of prefix, suffix, equals-ignore"),
        ({"a": [{"prefix": 1}]}, ".a.0.prefix", "expected text, got 1"),
        ({"a": [{"wildcard": r"a\b"}]}, ".a.0.wildcard", "expected a backslash only before '*' or another backslash"),
        ({"a": [{"exists": "true"}]}, ".a.0.exists", "expected true or false, got 'true'"),
        ({"a": [{"anything-but": []}]}, ".a.0.anything-but", "expected a value, a list of values, or an object with"),
        ({"a": [{"anything-but": {"exists": True}}]}, ".a.0.anything-but", "expected a value, a list of values, or"),
        ({"a": [{"anything-but": {"prefix": 1}}]}, ".a.0.anything-but.prefix", "expected text, got 1"),
        ({"a": [{"anything-but": ["b", ["c"]]}]}, ".a.0.anything-but.1", "expected a text, a number, true, false"),
        ({"$or": []}, ".$or", "expected a list of patterns, one of which must match, got []"),
        ({"$or": ["a"]}, ".$or.0", "expected an object with the fields to match, got 'a'"),
        ({"$or": [{"a": ["b"]}, {}]}, ".$or.1", "expected an object with the fields to match, got {}"),
    ],
)
def test_t11_an_invalid_pattern_is_refused_at_its_error(pattern: Any, field: str, message: str) -> None:
    error = refusal(pattern)
    assert error.field == f"trigger.pattern{field}"
    assert error.message.startswith(message)


@pytest.mark.parametrize(
    "operand",
    [
        *[5, [], [5], [">"], [5, ">"], ["!=", 5], [">", "5"], [">", True], [">", float("inf")], [["<"], 5]],
        *[[">", 1, "<"], [">", 1, ">=", 2], ["<", 1, "<", 2], ["=", 1, "<", 2], [">", 1, "<", 2, "<", 3]],
        *[[">", 2, "<", 1], [">", 1, "<=", 1], ["<", 1, ">=", 1]],
    ],
)
def test_t11_an_empty_or_impossible_comparison_is_refused(operand: Any) -> None:
    error = refusal({"a": [{"numeric": operand}]})
    assert error.field == "trigger.pattern.a.0.numeric"
    assert error.message.endswith(f"got {operand!r}")


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ({"a": "b"}, 'write ["b"]'),
        ({"a": []}, "nothing matches an empty list"),
        ({"a": {}}, 'to match any value, write [{"exists": true}]'),
        ({"a": [{"prefxi": "b"}]}, "did you mean 'prefix'?"),
        ({"a": [{"prefix": "b", "suffix": "c"}]}, "write each operator as an alternative of its own"),
    ],
)
def test_t11_a_refusal_says_what_to_do(pattern: Any, hint: str) -> None:
    assert refusal(pattern).hint == hint


@pytest.mark.parametrize(
    ("operator", "operand"),
    [("numeric", [">", 5]), ("anything-but", ["a"]), ("equals-ignore-case", ["a"]), ("prefix", "a"), ("exists", True)],
)
def test_t11_an_operator_outside_a_list_is_refused_not_a_field(operator: str, operand: Any) -> None:
    error = refusal({"total": {operator: operand}})
    assert error.field == f"trigger.pattern.total.{operator}"
    assert error.hint == f'write the operator as an alternative, in a list: [{{"{operator}": ...}}]'


def test_t11_a_field_may_have_the_name_of_an_operator() -> None:
    check_pattern({"phone": {"prefix": ["+49"], "numeric": [5], "exists": [True]}}, "pattern")
    assert matches({"phone": {"prefix": ["+49"]}}, {"phone": {"prefix": "+49"}})


def nested(levels: int) -> Any:
    leaf: Any = {"a": ["b"]}
    return reduce(lambda inner, level: {"a": inner} if level % 2 else {"$or": [inner]}, range(levels - 1), leaf)


@pytest.mark.parametrize("levels", [11, 12, 400])
def test_t11_a_pattern_has_at_most_ten_levels(levels: int) -> None:
    check_pattern(nested(10), "pattern")
    assert refusal(nested(levels)).message == "expected at most 10 levels in one pattern, got 11"


def test_t11_pattern_has_at_most_100_leaves_of_100_alternatives() -> None:
    fields: dict[str, Any] = {f"f{number}": ["a"] for number in range(99)}
    check_pattern({"a": list(range(100)), "$or": [fields]}, "pattern")
    assert refusal({"$or": [fields, {"a": ["b"]}, {"a": ["b"]}]}).message.endswith("leaves in one pattern, got 101")
    assert refusal({"a": list(range(101))}).message == "expected at most 100 alternatives, got 101"
    assert refusal({"a": [{"anything-but": list(range(101))}]}).field == "trigger.pattern.a.0.anything-but"


def test_t11_a_pattern_has_at_most_100_operators() -> None:
    """Equal values cost nothing, however many; each operator is tried with each value of an event."""
    leaves: dict[str, Any] = {f"f{number}": [{"prefix": "a"}, {"wildcard": "*b"}, "c"] for number in range(50)}
    check_pattern(leaves, "pattern")
    assert (
        refusal({**leaves, "g": [{"exists": True}]}).message == "expected at most 100 operators in one pattern, got 101"
    )
    assert refusal({"$or": [leaves, {"g": [{"suffix": "a"}]}]}).hint is not None


def steps(pattern: dict[str, Any], payload: Any) -> int:
    check_pattern(pattern, "pattern")
    flat = Flattened(payload)
    assert not Matcher(pattern).matches(flat)
    return flat.steps.spent


def test_o14_a_pattern_costs_its_size_once_for_an_event() -> None:
    numbers = {"a": list(range(10, 3_310))}
    assert steps({"$or": [{"a": [7] * 100}] * 100}, numbers) < 3 * 100 * 100
    assert steps({"$or": [{"a": list(range(-100, 0))}] * 100}, numbers) < 3 * 100 * 100


def test_o14_a_payload_is_flattened_once_for_all_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    flattened: list[Any] = []

    class Seen(patterns_module._Values):
        def __init__(self, value: Any) -> None:
            flattened.append(value)
            super().__init__(value)

    made = [Matcher({"$or": [{"a": [each]} for each in range(50)]}) for _ in range(3)]
    monkeypatch.setattr(patterns_module, "_Values", Seen)
    flat = Flattened({"a": list(range(100, 200))})
    for matcher in made:
        assert not matcher.matches(flat.within(Steps(10_000)))
    assert flattened == [list(range(100, 200))]


def test_o14_the_costliest_pattern_has_a_bounded_number_of_steps() -> None:
    values: list[Any] = [*(f"{number:x}" for number in range(500)), *range(1_000)]
    assert len(json.dumps(values)) < 10_000
    operators = [{"wildcard": f"*{number}*x"} for number in range(50)] + [{"numeric": ["=", -1]}] * 50
    fields = [{"a": [f"v{number}" for number in range(99)]} for _ in range(98)]
    assert steps({"$or": [{"a": operators}, *fields]}, {"a": values}) < 200_000


def test_o14_a_match_over_its_budget_stops() -> None:
    flat = Flattened({"a": list(range(1_000))}, Steps(500))
    with pytest.raises(OverBudget, match="more than 500 steps"):
        Matcher({"a": [{"prefix": "b"}]}).matches(flat)
    assert Matcher({"a": [7]}).matches(flat.within(Steps(500)))


def test_o14_many_empty_objects_cost_what_one_does() -> None:
    pattern = {"a": {"$or": [{f"b{number}": ["x"]} for number in range(100)]}}
    assert steps(pattern, {"a": [{}] * 3_300}) == steps(pattern, {"a": [{}]})
    assert matches({"a": {"b": [{"exists": False}]}}, {"a": [{}, {"b": 1}]})


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ({}, "any payload"),
        ({"region": ["eu"]}, "region is 'eu'"),
        ({"region": ["eu", 1, True, None]}, "region is 'eu' or 1 or true or null"),
        ({"order": {"total": [{"numeric": [">", 0, "<=", 5]}]}}, "order.total is > 0 and <= 5"),
        ({"a": [{"prefix": "b"}], "c": [{"suffix": "d"}]}, "a begins with 'b' and c ends with 'd'"),
        ({"a": [{"prefix": "b"}, "c"]}, "(a is 'c' or a begins with 'b')"),
        ({"a": [{"equals-ignore-case": "b"}, {"wildcard": "b*"}]}, "(a is 'b' in any case or a is like 'b*')"),
        ({"a": [{"exists": True}], "b": [{"exists": False}]}, "a is there and b is absent"),
        ({"a": [{"anything-but": 1}], "b": [{"anything-but": [1, "c"]}]}, "a is not 1 and b is none of 1, 'c'"),
        ({"a": [{"anything-but": {"prefix": "tmp"}}]}, "a never begins with 'tmp'"),
        ({"a": {"$or": [{"b": [1]}, {"c": [2], "d": [3]}]}}, "(a.b is 1 or a.c is 2 and a.d is 3)"),
    ],
)
def test_t11_a_pattern_is_described_in_words(pattern: dict[str, Any], words: str) -> None:
    check_pattern(pattern, "pattern")
    assert describe(pattern) == words


def test_t11_the_description_of_a_large_pattern_is_truncated() -> None:
    words = describe({f"field{number}": ["a"] for number in range(50)})
    assert (len(words), words[-3:]) == (200, "...")
