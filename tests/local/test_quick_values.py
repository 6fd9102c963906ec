"""The quick checks of values in the local cloud give ministack's own answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ministack.services import dynamodb

from infra.local import quick_values

VALUES: dict[str, Any] = {
    "text": {"S": "a"},
    "no text": {"S": 1},
    "two types": {"S": "a", "N": "x"},
    "number": {"N": "-1.5E+3"},
    "no number": {"N": "x"},
    "number that is none": {"N": 5},
    "too large": {"N": "1E+126"},
    "too exact": {"N": "1" * 39},
    "set": {"SS": ["a", "b"]},
    "duplicates": {"SS": ["a", "a"]},
    "numbers": {"NS": ["1", "x"]},
    "deep": {"M": {"a": {"L": [{"S": "a"}, {"N": "x"}]}}},
    "no value": "a",
    "empty": {},
}


def changed() -> Any:
    module = SimpleNamespace(
        _number_error=dynamodb._number_error, _values_error_response=dynamodb._values_error_response
    )
    quick_values.install(module)
    return module


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_refused_as_by_ministack(name: str) -> None:
    text = VALUES["text"]
    for values in ([VALUES[name]], [text, VALUES[name], text], [VALUES[name], VALUES["no number"]]):
        for envelope in (True, False):
            assert changed()._values_error_response(values, envelope) == dynamodb._values_error_response(
                values, envelope
            )


def test_the_first_wrong_value_is_named() -> None:
    refused = changed()._values_error_response([{"S": "a"}, {"N": "x"}, {"N": "y"}], envelope=False)
    assert b"numeric value: x" in refused[2]


@pytest.mark.parametrize("number", ["1", "x", "1E+126", "-0", 5, None, ["1"]])
def test_a_number_is_refused_as_by_ministack(number: Any) -> None:
    module = changed()
    assert [module._number_error(number) for _ in range(2)] == [dynamodb._number_error(number)] * 2


def test_texts_are_not_looked_at() -> None:
    seen: list[Any] = []
    module = SimpleNamespace(
        _number_error=dynamodb._number_error, _values_error_response=lambda values, envelope: seen.extend(values)
    )
    quick_values.install(module)
    module._values_error_response([{"S": "a"}, {"N": "1"}], False)
    assert seen == [{"N": "1"}]
