"""How late the events of a bundle were sent, in a few counts (T4)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.runs import sends
from tests.support.clock import NOON

LATE = st.lists(st.integers(-5, 10_000_000), min_size=1, max_size=40)


def pairs(late: list[int]) -> list[tuple[int, int]]:
    return [(NOON, NOON + each) for each in late]


@given(LATE, LATE)
def test_t4_the_sends_of_two_bundles_are_those_of_all_events(one: list[int], other: list[int]) -> None:
    both = sends.of(pairs([*one, *other]))
    assert sends.joined(sends.of(pairs(one)), sends.of(pairs(other))) == both
    assert sends.of(pairs(other), sends.of(pairs(one))) == both


@given(LATE)
def test_t4_half_of_the_events_keep_the_median(late: list[int]) -> None:
    known = sends.of(pairs(late))
    kept = [max(0, each) for each in late]
    median = sends.median(known)
    assert sum(each <= median for each in kept) * 2 >= len(kept)
    assert median <= known["max"] == max(kept)


def test_t4_nothing_is_added_to_no_sends() -> None:
    known = sends.of(pairs([7]))
    assert sends.joined({}, known) == sends.joined(known, {}) == known
    assert sends.joined({}, {}) == {}
