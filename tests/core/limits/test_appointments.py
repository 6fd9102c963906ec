"""A permit of a pace is an appointment: acquired ahead, kept within its tolerance, or replaced by another (E3, E8)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.limits import blocks, permits
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.permits import Pace
from chalicelib.core.limits.policies import Policy
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import brief
from tests.support.clock import NOON

EMR = Pace("emr:app", 1_000, 20)


@given(
    most=st.integers(1, 100),
    seconds=st.integers(1, 120),
    checks=st.lists(st.tuples(st.integers(0, 3_000), st.floats(0, 1)), min_size=1, max_size=200),
)
@brief
def test_e3_starts_within_their_tolerance_never_exceed_a_policy(
    most: int, seconds: int, checks: list[tuple[int, float]]
) -> None:
    """Permits are acquired at any instants, ahead or late; each start begins anywhere in its span."""
    pace = Policy(max_events=most, interval=f"{seconds}s").pace("demo.calm")
    state, now, starts = LimitState(pace.limit_name), NOON, []
    for gap, share in checks:
        now += gap
        route = limit_route.route((pace,), (), {pace.limit_name: state}, now, pace.limit_name)
        if route.blocked is None and route.appointment is not None:
            assert now <= route.appointment <= now + permits.LEAD
            starts.append(route.appointment + round(share * pace.tolerance))
            state = replace(state, head=max(state.head, route.appointment) + pace.spacing)
    starts.sort()
    assert all(late - early >= seconds * 1_000 for early, late in zip(starts, starts[most:], strict=False))


@pytest.mark.parametrize(("most", "interval"), [(1, "1s"), (2, "2s"), (1, "5s"), (20, "1m"), (1, "1h")])
def test_e3_starts_reserved_ahead_use_over_95_percent_of_pace(most: int, interval: str) -> None:
    policy = Policy(max_events=most, interval=interval)
    pace, state = policy.pace("demo.calm"), LimitState("policy:demo.calm", head=NOON)
    taken = []
    for _ in range(100):
        at = limit_route.appointment((pace,), {pace.limit_name: state}, state.head - permits.SERVED_EARLY)
        taken.append(at)
        state = replace(state, head=max(state.head, at) + pace.spacing)
    assert 99 * policy.span / most / (taken[-1] - taken[0]) >= 0.95


def test_e3_a_reserved_start_leaves_time_to_prepare() -> None:
    short, long = (Policy(max_events=1, interval=interval).pace("demo.calm") for interval in ("1s", "1m"))
    assert limit_route.appointment((short,), {}, NOON) == NOON + permits.PREPARATION - short.tolerance
    assert limit_route.appointment((long,), {}, NOON) == NOON, "a minute's tolerance is longer than that"
    assert limit_route.appointment((EMR,), {}, NOON) == NOON


def test_e3_two_paces_give_one_start_instant_the_later_one() -> None:
    policy = Policy(max_events=1, interval="1s").pace("demo.calm")
    ahead = {
        policy.limit_name: LimitState(policy.limit_name, head=NOON + 800),
        EMR.limit_name: LimitState(EMR.limit_name, head=NOON + 19_900),
    }
    assert limit_route.appointment((policy, EMR), ahead, NOON) == NOON + 900
    assert limit_route.route((policy, EMR), (), ahead, NOON, EMR.limit_name).appointment == NOON + 900


def test_e3_reading_the_facts_moves_only_a_start_that_was_missed() -> None:
    policy = Policy(max_events=1, interval="1s").pace("demo.calm")
    route = limit_route.route((policy,), (), {}, NOON, None)
    assert limit_route.prepared(route, NOON + 100).appointment == NOON + 310
    later = limit_route.route(
        (policy,), (), {policy.limit_name: LimitState(policy.limit_name, head=NOON + 900)}, NOON, policy.limit_name
    )
    assert limit_route.prepared(later, NOON + 100).appointment == NOON + 900


@given(
    most=st.one_of(st.integers(1, 500), st.sampled_from([200, 500])),
    seconds=st.integers(1, 60),
    blocks=st.lists(st.integers(1, 400), min_size=1, max_size=40),
)
@brief
def test_e3_permits_in_blocks_never_exceed_a_policy(most: int, seconds: int, blocks: list[int]) -> None:
    """Blocks of any sizes follow each other without a pause, and each start is as late, or as early, as it may be."""
    policy = Policy(max_events=most, interval=f"{seconds}s")
    pace, base, appointments = policy.pace("demo.calm"), NOON, []
    for size in blocks:
        appointments += [base + pace.after(number) for number in range(size)]
        base += pace.after(size)
    ends = zip(appointments, appointments[most:], strict=False)
    assert all(late - (early + pace.tolerance) >= policy.span for early, late in ends)


@pytest.mark.parametrize(
    ("most", "interval"), [(500, "1s"), (499, "1s"), (200, "1s"), (100, "1s"), (99, "1s"), (7, "2s")]
)
def test_e3_a_fast_policy_loses_no_permit_by_rounding(most: int, interval: str) -> None:
    policy = Policy(max_events=most, interval=interval)
    pace = policy.pace("demo.calm")
    assert pace.after(most) == policy.span + policy.tolerance
    assert pace.after(1) == pace.spacing


@pytest.mark.parametrize(
    ("most", "interval"), [(2, "1s"), (10, "1s"), (100, "1s"), (200, "1s"), (500, "1s"), (600, "1m")]
)
@pytest.mark.parametrize("ahead", [0, 300, 550])
def test_e3_a_block_spans_half_a_second_and_ends_within_the_lead(most: int, interval: str, ahead: int) -> None:
    """So an urgent job that arrives passes all jobs but those of the blocks that are acquired: those of one second."""
    pace = Policy(max_events=most, interval=interval).pace("demo.calm")
    block = blocks.next_block(pace, NOON + ahead, NOON, 10_000)
    assert block is not None
    assert block.appointments[-1] - block.appointments[0] <= 500
    assert block.appointments[-1] <= NOON + permits.LEAD == NOON + 1_000
    assert block.appointments[0] >= NOON + ahead
    assert blocks.next_block(pace, NOON + permits.LEAD + 1, NOON, 10_000) is None, "not farther ahead"


@pytest.mark.parametrize(("most", "interval", "count"), [(10, "1s", 1), (50, "1s", 4), (100, "1s", 4), (500, "1s", 4)])
def test_e3_each_sender_of_a_block_has_time_between_its_calls(most: int, interval: str, count: int) -> None:
    assert blocks.senders(Policy(max_events=most, interval=interval).pace("demo.calm")) == count
