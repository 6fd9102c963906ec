"""How long after a failure the next attempt is due (W1)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.core.targets.retries import Retries, scattered


def delays(count: int, **fields: Any) -> list[int]:
    retries = Retries.model_validate({"attempts": 20, **fields})
    return [retries.delay_after(attempt, "run") for attempt in range(1, count + 1)]


def test_w1_a_fixed_delay_is_the_same_after_every_attempt() -> None:
    assert delays(3, delay="45s") == [45 * SECOND] * 3
    assert delays(2) == [30 * SECOND] * 2


def test_w1_an_exponential_delay_doubles_until_the_longest() -> None:
    grown = [MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 10 * MINUTE, 10 * MINUTE]
    assert delays(6, delay="1m", backoff="exponential", max_delay="10m") == grown
    assert delays(20, delay="1m", backoff="exponential")[-1] == HOUR


@pytest.mark.parametrize("backoff", ["fixed", "exponential"])
def test_w1_jitter_shortens_each_delay_by_run_and_attempt(backoff: str) -> None:
    jittered = Retries.model_validate({"attempts": 20, "delay": "10s", "backoff": backoff, "jitter": True})
    plain = jittered.model_copy(update={"jitter": False})
    for attempt in range(1, 6):
        whole = plain.delay_after(attempt, "run")
        found = {jittered.delay_after(attempt, f"run{number}") for number in range(40)}
        assert len(found) > 20
        assert all(whole / 2 <= delay <= whole for delay in found)
        assert jittered.delay_after(attempt, "run7") == scattered(whole, attempt, "run7")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"on": ["failed", "lost", "failed"]}, "distinct outcomes"),
        ({"backoff": "exponential", "delay": "2h"}, "at least the first delay, 2h"),
        ({"on": []}, "at least 1 item"),
        ({"attempts": 21}, "less than or equal to 20"),
    ],
)
def test_w1_retries_that_contradict_themselves_are_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Retries.model_validate(document)


def test_w1_a_fixed_delay_may_exceed_the_exponential_maximum() -> None:
    assert Retries.model_validate({"delay": "2h", "on": ["failed", "lost"]}).delay_after(1, "run") == 2 * HOUR
    equal = {"delay": "1h", "max_delay": "1h", "backoff": "exponential"}
    assert Retries.model_validate(equal).delay_after(3, "run") == HOUR
