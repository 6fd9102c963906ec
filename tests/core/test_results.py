"""The result of a run: what is kept, and what is refused (W18)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.core import results
from chalicelib.core.results import MAX_LEVELS, MAX_READ, MAX_RESULT, NONE, Result, of_text, of_value


@pytest.mark.parametrize("value", [{}, {"mode": "full", "files": ["a", "b"]}, ["a"], "s3://bucket/x", 7, 1.5, False])
def test_w18_any_json_value_is_a_result(value: Any) -> None:
    assert of_value(value) == Result(value)
    assert of_text(json.dumps(value, indent=4)) == Result(value)


@pytest.mark.parametrize("text", ["", " \n", "null", b"null"])
def test_w18_null_and_nothing_are_no_result(text: str | bytes) -> None:
    assert of_text(text) == NONE == of_value(None)


def test_w18_a_result_of_10000_bytes_is_kept_and_one_more_is_not() -> None:
    fits = {"text": "x" * (MAX_RESULT - len('{"text":""}'))}
    assert of_value(fits) == Result(fits)
    refused = of_value({"text": fits["text"] + "x"})
    assert refused.value is None
    assert refused.refused == f"expected a result of at most 10,000 bytes of JSON, got 10,001; {results.HINT}"


def test_w18_spaces_do_not_count_and_letters_beyond_ascii_do() -> None:
    assert of_text(json.dumps(["x"] * 2_000, indent=20)) == Result(["x"] * 2_000)
    assert of_value("é" * 1_666) == Result("é" * 1_666)
    assert "got 10,004" in of_value("é" * 1_667).refused


def test_w18_of_a_very_long_text_the_beginning_is_enough() -> None:
    assert of_text(b'"' + b"x" * MAX_READ).refused.startswith(
        "expected a result of at most 10,000 bytes of JSON, got more than"
    )


@pytest.mark.parametrize("text", ["{mode: full}", '{"rows": NaN}', "[Infinity]", b"\xff\xfe\x00", "[" * 5_000])
def test_w18_what_is_not_json_is_refused(text: str | bytes) -> None:
    found = of_text(text)
    assert found.value is None
    assert found.refused.startswith("expected a result in JSON, got ")


def test_w18_a_value_that_json_cannot_hold_is_refused() -> None:
    assert of_value({"at": object()}).refused.startswith("expected a result in JSON, got dict: ")
    assert of_value(float("nan")).refused.startswith("expected a result in JSON, got float: ")


def test_w18_a_result_has_at_most_fifty_levels() -> None:
    def nested(levels: int) -> Any:
        return [nested(levels - 1)] if levels > 1 else []

    assert of_value(nested(MAX_LEVELS)) == Result(nested(MAX_LEVELS))
    assert "at most 50 levels" in of_value(nested(MAX_LEVELS + 1)).refused
    assert "at most 50 levels" in of_value({"a": {"b": nested(MAX_LEVELS)}}).refused
