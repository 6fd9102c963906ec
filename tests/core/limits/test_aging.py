"""Aging: each span of waiting raises a waiter by one step of priority, and the order of two waiters never changes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, Millis
from chalicelib.core.limits import permits
from chalicelib.core.limits.policies import Aging, Policy
from chalicelib.core.limits.pools import Pool
from tests.core.builders import NOON, thorough

PRIORITY = st.integers(0, 9)
SINCE = st.integers(NOON, NOON + 3 * DAY)
AGINGS = st.sampled_from([1_000, MINUTE, 30 * MINUTE, HOUR, DAY, 30 * DAY])


def _rank(priority: int, since: Instant, aging: Millis, job_id: str = "a") -> str:
    return permits.rank(priority, None, since, job_id, aging, since)


@thorough
@given(PRIORITY, SINCE, PRIORITY, SINCE, AGINGS, st.integers(0, 30 * DAY))
@example(8, NOON, 9, NOON + 30 * MINUTE, 30 * MINUTE, 0)
@example(0, NOON, 9, NOON + 9 * 30 * DAY, 30 * DAY, 0)
def test_w2_the_order_is_that_of_priority_and_waiting(
    one: int, one_since: Instant, other: int, other_since: Instant, aging: Millis, later: Millis
) -> None:
    """The sentence of the page: each `aging` of waiting counts as one step of priority, at every instant."""
    now = max(one_since, other_since) + later
    steps = [priority * aging + (now - since) for priority, since in ((one, one_since), (other, other_since))]
    first, second = _rank(one, one_since, aging), _rank(other, other_since, aging)
    if steps[0] != steps[1]:
        assert (permits.urgency(first) < permits.urgency(second)) == (steps[0] > steps[1])
        assert (first < second) == (steps[0] > steps[1])
    else:
        assert permits.urgency(first) == permits.urgency(second)


@given(PRIORITY, SINCE, st.sampled_from([0, MINUTE, 30 * DAY]))
def test_the_priority_is_read_from_a_rank(priority: int, since: Instant, aging: Millis) -> None:
    assert permits.priority_in(_rank(priority, since, aging)) == priority


def test_of_equal_steps_the_earliest_latest_start_is_first() -> None:
    early, late, none = (permits.rank(5, at, NOON, "a", HOUR, NOON) for at in (NOON, NOON + 1, None))
    assert early < late < none


def test_without_aging_the_higher_priority_is_first() -> None:
    assert _rank(9, NOON + DAY, 0) < _rank(8, NOON, 0)
    assert permits.urgency(_rank(9, NOON, 0)) == "0"


@pytest.mark.parametrize("aging", ["1ms", "999ms", "31d"])
@pytest.mark.parametrize(("kind", "fields"), [(Pool, {"size": 1}), (Policy, {"max_events": 1})])
def test_an_aging_that_is_too_short_or_too_long_is_refused(
    kind: type[Aging], fields: dict[str, int], aging: str
) -> None:
    with pytest.raises(ValueError, match=f"a span from 1s to 30d, got '{aging}'"):
        kind.model_validate(fields | {"aging": aging})


def test_an_aging_is_a_span() -> None:
    assert Pool(size=1, aging="30m").aging_span == 30 * MINUTE
    assert (Policy(max_events=1, aging="2h").aging_span, Policy(max_events=1).aging_span) == (2 * HOUR, 0)


@pytest.mark.parametrize("document", [Pool(size=1), Policy(max_events=1)])
def test_a_document_without_aging_is_stored_as_before(document: Aging) -> None:
    assert not {"aging", "margin"} & document.model_dump(mode="json").keys()
    assert type(document).model_validate(document.model_dump(mode="json")) == document
    aged = type(document).model_validate(document.model_dump(mode="json") | {"aging": "30m"})
    assert aged.model_dump(mode="json")["aging"] == "30m"
