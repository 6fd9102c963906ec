"""Limits: which jobs get a permit, which ones queue, and in which order (C9, E8, W2)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.instants import SECOND, Instant
from chalicelib.core.limits import names, permits
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.permits import Pace, RateWindow, Slots
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import EMR_LIMIT, LIMIT, NOON, brief, thorough

PACE = Pace(EMR_LIMIT, SECOND, 3)


def busy(active: int, waiters: int = 0) -> LimitState:
    return LimitState(LIMIT, active=active, waiters=waiters)


@pytest.mark.parametrize(("active", "free"), [(0, True), (1, True), (2, False), (3, False)])
def test_c1_a_slot_is_free_while_fewer_are_in_use_than_the_limit(active: int, free: bool) -> None:
    assert permits.has_permit(Slots(LIMIT, 2), busy(active), NOON) is free


def test_c1_without_a_limit_a_slot_is_always_free_and_no_queue() -> None:
    assert permits.has_permit(Slots(LIMIT, None), busy(1_000), NOON)
    assert permits.admits(Slots(LIMIT, None), busy(1_000, waiters=5), NOON)


@pytest.mark.parametrize("ask", [Slots(LIMIT, 2), PACE])
def test_w2_a_new_job_does_not_overtake_the_waiters(ask: Any) -> None:
    assert permits.admits(ask, busy(0), NOON)
    assert permits.has_permit(ask, busy(0, waiters=1), NOON)
    assert not permits.admits(ask, busy(0, waiters=1), NOON)


def test_e8_a_burst_passes_at_once_then_one_start_each_spacing() -> None:
    state, taken = LimitState(EMR_LIMIT), []
    for millisecond in range(0, 5_001, 100):
        now = NOON + millisecond
        while permits.admits(PACE, state, now):
            state = replace(state, head=max(state.head, now) + PACE.spacing)
            taken.append(millisecond)
    assert taken == [0, 0, 0, 1_000, 2_000, 3_000, 4_000, 5_000]


@pytest.mark.parametrize(
    ("head", "next_check"), [(NOON - SECOND, NOON), (NOON + 2 * SECOND, NOON), (NOON + 5_500, NOON + 3_500)]
)
def test_c8_a_pace_is_checked_when_its_next_permit_comes(head: Instant, next_check: Instant) -> None:
    state = LimitState(EMR_LIMIT, head=head)
    assert permits.next_service(PACE, state, NOON) == next_check
    assert permits.has_permit(PACE, state, next_check)
    assert next_check == NOON or not permits.has_permit(PACE, state, next_check - 1)


def test_c8_slots_are_checked_at_a_release_or_after_a_lease() -> None:
    assert permits.next_service(Slots(LIMIT, 1), busy(1), NOON) == NOON + permits.SLOTS_RECHECK


@given(
    spacing=st.integers(1, 5_000),
    burst=st.integers(1, 8),
    gaps=st.lists(st.one_of(st.just(0), st.integers(0, 400), st.integers(0, 20_000)), min_size=1, max_size=80),
    window=st.integers(0, 30_000),
)
@thorough
def test_e8_no_window_has_more_starts_than_burst_and_pace_allow(
    spacing: int, burst: int, gaps: list[int], window: int
) -> None:
    """Claims come at any instants, and each acquires a permit if there is one. In every window the limit holds."""
    ask, state, now, starts = Pace(EMR_LIMIT, spacing, burst), LimitState(EMR_LIMIT), NOON, []
    for gap in gaps:
        now += gap
        if permits.admits(ask, state, now):
            state = replace(state, head=max(state.head, now) + ask.spacing)
            starts.append(now)
    for first in starts:
        assert sum(first <= start <= first + window for start in starts) <= burst + window // spacing
    # No claim is delayed without need: while the bucket is not full, the first claim passes.
    assert starts[0] == NOON + gaps[0]


@given(spacing=st.integers(1, 5_000), burst=st.integers(1, 8), waiting=st.integers(1, 40))
@brief
def test_e8_waiters_served_at_every_check_lose_no_permit(spacing: int, burst: int, waiting: int) -> None:
    ask, state, now, starts = Pace(EMR_LIMIT, spacing, burst), LimitState(EMR_LIMIT), NOON, []
    while len(starts) < waiting:
        now = permits.next_service(ask, state, now)
        while len(starts) < waiting and permits.has_permit(ask, state, now):
            state = replace(state, head=max(state.head, now) + ask.spacing)
            starts.append(now)
    assert starts[-1] == NOON + max(0, waiting - burst) * spacing


# -- the order of limits -------------------------------------------------------------------------------------------

ASKS = (Slots("workflow:a.b.c", 2), Slots("workflow:a.b.d", 1), Pace("emr:one", 1_000, 20), Pace("emr:two", 3_000, 1))


def test_c9_every_job_takes_slots_before_pace_the_widest_last() -> None:
    assert all(permits.in_order(shuffled) == ASKS for shuffled in permutations(ASKS))


def test_c5_rate_windows_are_first_in_the_order_of_limits() -> None:
    hourly, daily = (
        RateWindow("rate:a.b.c:9/3600000", 9, 3_600_000),
        RateWindow("rate:a.b.c:2/86400000", 2, 86_400_000, False),
    )
    first = (hourly, daily, ASKS[1], ASKS[3])
    assert all(permits.in_order(shuffled) == first for shuffled in permutations(first))


asks = st.one_of(
    st.builds(Slots, st.sampled_from(["workflow:a", "workflow:b", "pool:x"]), st.none() | st.integers(1, 3)),
    st.builds(
        RateWindow, st.sampled_from(["rate:a:1", "rate:a:2"]), st.integers(1, 3), st.integers(1, 5_000), st.booleans()
    ),
    st.builds(Pace, st.sampled_from(["emr:a", "emr:b"]), st.integers(1, 5_000), st.integers(1, 20)),
)


@given(st.lists(asks, unique_by=lambda ask: ask.limit_name), st.lists(asks, unique_by=lambda ask: ask.limit_name))
@brief
def test_c9_two_jobs_take_shared_limits_in_the_same_order(one: list[Any], other: list[Any]) -> None:
    """Otherwise two jobs could each hold what the other one waits for."""
    same = {ask.limit_name: ask for ask in one} | {ask.limit_name: ask for ask in other}
    first, second = (permits.in_order(tuple(same[ask.limit_name] for ask in some)) for some in (one, other))
    shared = {ask.limit_name for ask in first} & {ask.limit_name for ask in second}
    assert [ask for ask in first if ask.limit_name in shared] == [ask for ask in second if ask.limit_name in shared]


def routed(
    held: tuple[str, ...] = (), serving: str | None = None, **states: LimitState
) -> tuple[list[str], str | None]:
    known = {ASKS["abcd".index(name)].limit_name: state for name, state in states.items()}
    route = limit_route.route(ASKS, held, known, NOON, serving)
    return [ask.limit_name for ask in route.take], route.blocked.limit_name if route.blocked else None


def full(waiters: int = 0) -> LimitState:
    return LimitState("any", active=9, waiters=waiters, head=NOON + 100 * SECOND)


def test_a_job_with_every_limit_free_takes_every_permit() -> None:
    assert routed() == ([ask.limit_name for ask in ASKS], None)


def test_a_job_takes_the_permits_before_the_limit_that_blocks() -> None:
    assert routed(d=full()) == ([ASKS[0].limit_name, ASKS[1].limit_name], ASKS[3].limit_name)
    assert routed(a=full()) == ([], ASKS[0].limit_name)


def test_e3_a_job_of_two_paces_queues_at_slowest_and_names_it() -> None:
    """A permit of a pace is for a start now, so a job cannot keep it while it queues for another limit."""
    held_up = limit_route.route(ASKS, (), {ASKS[2].limit_name: full()}, NOON, None)
    assert held_up == limit_route.Route(ASKS[:2], ASKS[3], behind=ASKS[2])
    assert (
        limit_route.queue_served_at(held_up, {ASKS[2].limit_name: full()}, NOON)
        == NOON + 81 * SECOND - permits.SERVED_EARLY
    )

    is_served = limit_route.route(
        ASKS, (), {ASKS[3].limit_name: LimitState("any", waiters=9)}, NOON, ASKS[3].limit_name
    )
    assert is_served.blocked is None


def test_e3_a_free_permit_of_faster_pace_is_enough_despite_queue() -> None:
    queued = LimitState("any", waiters=9)
    assert routed(c=queued) == ([ask.limit_name for ask in ASKS], None)
    assert routed(d=queued)[1] == ASKS[3].limit_name
    assert [limit_route.passes(ask, ASKS) for ask in ASKS] == [False, False, True, False]


def test_a_job_passes_the_limits_whose_permits_it_holds() -> None:
    held = (ASKS[0].limit_name, ASKS[1].limit_name)
    assert routed(held=held, a=full(), b=full()) == ([ASKS[2].limit_name, ASKS[3].limit_name], None)


def test_w2_a_served_job_needs_a_permit_of_that_limit_only() -> None:
    waited_for = LimitState("any", waiters=4)
    assert routed(b=waited_for) == ([ASKS[0].limit_name], ASKS[1].limit_name)
    assert routed(serving=ASKS[1].limit_name, b=waited_for)[1] is None
    assert routed(serving=ASKS[1].limit_name, b=full(4)) == ([ASKS[0].limit_name], ASKS[1].limit_name)
    assert routed(serving=ASKS[1].limit_name, b=waited_for, d=waited_for) == (
        [ASKS[0].limit_name, ASKS[1].limit_name],
        ASKS[3].limit_name,
    )


# -- the order in a queue ------------------------------------------------------------------------------------------

Waiting = tuple[int, int | None, int, str]
waiting = st.tuples(
    st.integers(0, 9),
    st.none() | st.integers(0, 10**13),
    st.integers(0, 10**13),
    st.from_regex("[a-z0-9.]{1,8}", fullmatch=True),
)


def by_meaning(who: Waiting) -> Any:
    priority, latest_start, created_at, job_id = who
    return (-priority, latest_start is None, latest_start or 0, created_at, job_id)


@given(st.lists(waiting, min_size=2, max_size=8, unique=True))
@thorough
def test_w2_a_queue_is_sorted_by_priority_latest_start_and_age(some: list[Waiting]) -> None:
    by_rank = sorted(some, key=lambda who: permits.rank(*who))
    assert by_rank == sorted(some, key=by_meaning)
    assert all(permits.rank(*one) < permits.rank(*other) for one, other in pairwise(by_rank))


def test_w2_an_urgent_newer_job_goes_first_and_older_of_equals() -> None:
    queue = {
        "urgent": permits.rank(9, None, NOON + 5, "j1"),
        "soon": permits.rank(5, NOON + 1, NOON + 4, "j2"),
        "old": permits.rank(5, None, NOON + 1, "j3"),
        "young": permits.rank(5, None, NOON + 2, "j4"),
        "idle": permits.rank(0, NOON, NOON, "j5"),
    }
    assert sorted(queue, key=lambda name: queue[name]) == ["urgent", "soon", "old", "young", "idle"]


# -- the texts -----------------------------------------------------------------------------------------------------


def test_why_names_the_limit_that_a_job_waits_for() -> None:
    assert permits.why(Slots(LIMIT, 2), busy(2, waiters=3)).text == (
        "waits for a slot of workflow demo.flights.clean: 2 of 2 in use"
    )
    assert permits.why(PACE, LimitState(EMR_LIMIT)).text == (
        "waits for a permit of the EMR start rate of this account: one start every 1s, burst 3"
    )
    assert names.describe("pool:demo.big") == "pool demo.big"
