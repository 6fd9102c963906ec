"""Policies as their receivers see them: the margin covers what latencies vary. The delay of an idle policy."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.core.limits.policies import Policy
from tests.core.builders import NOON, thorough

POLICIES = st.sampled_from([(5, "10s"), (1, "1s"), (3, "10s"), (100, "1m"), (7, "3s")])


@thorough
@given(POLICIES, st.integers(0, 1000), st.data())
@example((5, "10s"), 1000, None)
def test_e3_with_a_margin_the_receiver_sees_no_more_either(
    rule: tuple[int, str], margin: int, data: st.DataObject | None
) -> None:
    """Each call begins within its tolerance, and arrives within the margin after that."""
    count, interval = rule
    policy = Policy(max_events=count, interval=interval, margin=f"{margin}ms" if margin else None)
    pace = policy.pace("demo.calm")
    arrivals = []
    for number in range(2 * count + 2):
        worst = 1 if number < count + 1 else 0
        late = data.draw(st.integers(0, policy.tolerance - 1)) if data is not None else worst * (policy.tolerance - 1)
        latency = data.draw(st.integers(0, margin)) if data is not None else worst * margin
        arrivals.append(NOON + pace.after(number) + late + latency)
    arrivals.sort()
    for first, later in zip(arrivals, arrivals[count:], strict=False):
        assert later - first >= policy.span


def test_e3_without_a_margin_the_receiver_may_see_one_more() -> None:
    """The first call takes 400 ms, and the others arrive at once."""
    policy = Policy(max_events=5, interval="10s")
    pace = policy.pace("demo.calm")
    arrivals = sorted([NOON + 400, *(NOON + pace.after(number) for number in range(1, 6))])
    assert arrivals[5] - arrivals[0] < policy.span
    roomy = Policy(max_events=5, interval="10s", margin="400ms").pace("demo.calm")
    arrivals = sorted([NOON + 400, *(NOON + roomy.after(number) for number in range(1, 6))])
    assert arrivals[5] - arrivals[0] >= policy.span


def test_a_margin_of_more_than_the_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="at most the interval, 10s, got '11s'"):
        Policy(max_events=5, interval="10s", margin="11s")
    assert Policy(max_events=5, interval="10s", margin="10s").spacing == 4_040


@pytest.mark.parametrize(
    ("count", "interval", "late"), [(1, "1s", 210), (3, "10s", 50), (1, "12500ms", 0), (1, "1m", 0)]
)
def test_an_idle_policy_starts_late_by_the_preparation(count: int, interval: str, late: int) -> None:
    """What the page says: a call is ready 250 ms after its decision, and may begin a tolerance after its permit."""
    assert Policy(max_events=count, interval=interval).pace("demo.calm").room == late
