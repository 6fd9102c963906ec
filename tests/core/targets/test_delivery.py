"""How often a delivery is tried, the pauses between the tries, and when it is given up (E6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chalicelib.core.errors import from_validation
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow
from chalicelib.core.targets.retries import PATIENCE, Delivery, GiveUp, Retry, next_try
from tests.support.clock import NOON

DOWN = NoAnswer("the server is down")
BUSY = NotNow("throttled")


def policy(**fields: Any) -> Delivery:
    return Delivery.model_validate(fields)


def pauses(answer: NotNow | NoAnswer, delivery: Delivery) -> list[int]:
    """The pauses between the tries of a delivery that always gets the same answer."""
    found: list[int] = []
    for tries in range(1, 200):
        step = next_try(tries, answer, delivery, "e1", NOON)
        if isinstance(step, GiveUp):
            return found
        found.append(step.at - NOON)
    raise AssertionError("it is never given up")


def test_e6_the_default_is_three_tries_with_a_second_between() -> None:
    assert pauses(DOWN, policy()) == [SECOND, SECOND]
    assert next_try(3, DOWN, policy(), "e1", NOON) == GiveUp(
        "not delivered in 3 tries; last answer: the server is down"
    )


def test_e6_the_reason_of_a_delay_has_the_try_and_the_answer() -> None:
    why = "try 1 of 3 failed, next try in 1s: the server is down"
    assert next_try(1, DOWN, policy(), "e1", NOON) == Retry(NOON + SECOND, why)


def test_e6_failed_deliveries_back_off_as_configured() -> None:
    fixed = policy(tries=2, delay="2s", backoff={"tries": 3, "growth": "fixed", "delay": "1m"})
    quick, *slow = pauses(DOWN, fixed)
    assert quick == 2 * SECOND
    assert len(slow) == 3
    assert all(MINUTE / 2 <= pause <= MINUTE for pause in slow)

    doubling = policy(tries=1, backoff={"tries": 6, "delay": "10s", "max_delay": "1m"})
    bounds = [10, 20, 40, 60, 60, 60]
    for pause, bound in zip(pauses(DOWN, doubling), bounds, strict=True):
        assert bound * SECOND / 2 <= pause <= bound * SECOND


def test_e6_events_refused_together_are_retried_scattered() -> None:
    slow = policy(tries=1, backoff={"delay": "10m"})
    moments = {getattr(next_try(1, DOWN, slow, f"e{number}", NOON), "at", 0) for number in range(100)}
    assert len(moments) > 90


@pytest.mark.parametrize("tries", [1, 2, 50])
def test_e6_an_impossible_delivery_is_given_up_at_once(tries: int) -> None:
    assert next_try(tries, Never("no such queue"), policy(), "e1", NOON) == GiveUp("no such queue")


def test_e6_a_busy_target_is_given_time() -> None:
    """Bursts reach the limits of an account. Such calls must not become dead letters after three seconds."""
    found = pauses(BUSY, policy())
    assert len(found) == PATIENCE - 1
    assert 10 * MINUTE < sum(found) < HOUR
    assert found[0] <= SECOND < found[5]


def test_e6_a_delivery_is_not_tried_before_the_target_allows() -> None:
    assert next_try(1, NotNow("429", 90 * SECOND), policy(), "e1", NOON).at == NOON + 90 * SECOND
    later = next_try(1, NoAnswer("503", 30 * DAY), policy(), "e1", NOON)
    assert later.at == NOON + 6 * HOUR, "a target cannot put a delivery off for good"


@given(
    tries=st.integers(1, 10),
    more=st.integers(1, 30),
    growth=st.sampled_from(["fixed", "exponential"]),
    asked=st.none() | st.integers(0, 10**9),
    busy=st.booleans(),
)
def test_e6_every_delivery_ends_within_its_tries_in_time_order(
    tries: int, more: int, growth: str, asked: int | None, busy: bool
) -> None:
    delivery = policy(tries=tries, backoff={"tries": more, "growth": growth})
    answer: Answer = NotNow("busy", asked) if busy else NoAnswer("down", asked)
    found = pauses(answer, delivery)
    assert len(found) == (max(tries + more, PATIENCE) if busy else tries + more) - 1
    assert all(0 < pause <= 6 * HOUR for pause in found)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tries": 0}, "tries"),
        ({"tries": 11}, "tries"),
        ({"delay": "2h"}, "delay"),
        ({"backoff": {"tries": 31}}, "backoff.tries"),
        ({"backoff": {"growth": "linear"}}, "backoff.growth"),
        ({"backoff": {"delay": "2d"}}, "backoff.delay"),
        ({"backoff": {"delay": "1h", "max_delay": "1m"}}, "backoff.max_delay"),
    ],
)
def test_e6_a_policy_without_bounds_is_refused(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        policy(**fields)
    assert from_validation(caught.value).field == field
