"""The queue of a policy of many starts a second is in parts, and keeps one order (E3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.limits import names, parts, route
from chalicelib.core.limits.policies import Policy
from chalicelib.core.rows.limit import LimitState, Waiter
from tests.core.builders import brief
from tests.support.clock import NOON

LIMIT = "policy:demo.calm"


def waiter(rank: str, number: int = 0) -> Waiter:
    queue = names.part(LIMIT, number) if number else LIMIT
    return Waiter(queue, rank, "demo.flights.daily", 1, f"JOB#{rank}", rank)


@pytest.mark.parametrize(
    ("most", "interval", "count"),
    [(1, "1s", 0), (100, "1s", 0), (6_000, "1m", 0), (101, "1s", 2), (200, "1s", 2), (500, "1s", 5), (30_000, "1m", 5)],
)
def test_e3_a_queue_has_a_part_for_each_hundred_starts_a_second(most: int, interval: str, count: int) -> None:
    pace = Policy(max_events=most, interval=interval).pace("demo.calm")
    assert parts.count(pace, LimitState(LIMIT)) == count


def test_e3_a_slower_policy_keeps_the_parts_of_its_queue() -> None:
    pace = Policy(max_events=1, interval="1s").pace("demo.calm")
    assert parts.count(pace, LimitState(LIMIT, parts=5)) == 5
    assert len(parts.queues(LimitState(LIMIT, parts=5))) == 6, "the first one has the jobs from before, and runs"


@given(ranks=st.lists(st.text("abcdef", min_size=1, max_size=4), unique=True, max_size=40), size=st.integers(1, 9))
@brief
def test_e3_parts_merge_into_the_order_of_one_queue(ranks: list[str], size: int) -> None:
    """However the waiters are divided, and wherever a page ends: no waiter is before one that ranks higher."""
    queues: dict[int, list[str]] = {}
    for number, rank in enumerate(sorted(ranks)):
        queues.setdefault((number * 7 + len(rank)) % 3, []).append(rank)
    pages = [([waiter(rank) for rank in queue[:size]], len(queue) >= size) for queue in queues.values()]
    merged = [each.rank for each in parts.merged(pages)]
    assert merged == sorted(ranks)[: len(merged)]
    assert len(merged) >= min(size, len(ranks)) or not ranks


def test_e3_a_job_beside_a_queue_in_parts_joins_it() -> None:
    """No single row shows that nobody waits, so a job acquires no permit directly."""
    pace = Policy(max_events=200, interval="1s").pace("demo.calm")
    beside = route.route((pace,), (), {}, NOON, None)
    assert beside.blocked == pace
    assert route.route((pace,), (), {}, NOON, names.part(LIMIT, 2)).blocked is None, "the server acquires permits"
    once_fast = Policy(max_events=1, interval="1s").pace("demo.calm")
    assert route.route((once_fast,), (), {LIMIT: LimitState(LIMIT, parts=2)}, NOON, None).blocked == once_fast


def test_e3_a_part_has_the_name_of_its_policy_for_users() -> None:
    assert names.describe(names.part(LIMIT, 3)) == "policy demo.calm"
    assert names.whole(names.part(LIMIT, 3)) == LIMIT
    assert names.number_of(names.part(LIMIT, 3)) == 3
    assert names.whole("rate:demo.flights.clean:2/1000") == "rate:demo.flights.clean:2/1000"
