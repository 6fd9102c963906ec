"""Reads of the parts of a view are made at the same time, and their answers keep the order of the parts."""

from __future__ import annotations

import threading

import pytest

from chalicelib.aws.tables import dynamo


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_answers_keep_the_order_of_the_parts(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(dynamo, "AT_ONCE", at_once)
    assert dynamo.together(str, range(9)) == [str(part) for part in range(9)]


def test_calls_are_made_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call waits until the others have begun."""
    monkeypatch.setattr(dynamo, "AT_ONCE", 4)
    met = threading.Barrier(4, timeout=10)
    assert len(dynamo.together(lambda part: met.wait(), range(4))) == 4


def test_an_error_of_one_call_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamo, "AT_ONCE", 2)
    with pytest.raises(ZeroDivisionError):
        dynamo.together(lambda part: 1 // part, [1, 0, 1])
