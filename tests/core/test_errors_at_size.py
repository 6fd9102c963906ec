"""The error for a document with thousands of faults takes time in proportion to them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.app import App
from chalicelib.core.errors import from_validation
from tests.fuzz.values import no_hang

MANY = 6_000

FAULTY: dict[str, dict[str, Any]] = {
    "wrong values": {"schedules": {f"s{number}": 7 for number in range(MANY)}},
    "wrong fields": {"workflows": {f"w{number}": {"target": {"type": "sqs"}, "x": 1} for number in range(MANY)}},
    "unknown fields": {f"x{number}": 1 for number in range(MANY)},
}


@pytest.mark.parametrize("kind", FAULTY)
def test_many_faults_are_reported_within_a_bound(kind: str) -> None:
    with pytest.raises(ValidationError) as raised:
        App.model_validate(FAULTY[kind])
    with no_hang():
        error = from_validation(raised.value, App)
    assert error.each
