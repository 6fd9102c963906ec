"""The small decisions about limits: what is remembered, when holders are polled, how far ahead permits are acquired,
and what never fits.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.core.limits import permits
from chalicelib.core.limits import permits as limit_slots
from chalicelib.core.limits.permits import Pace, RateWindow, Slots
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import EMR_LIMIT, LIMIT, NOON

HOURLY = RateWindow(f"rate:demo.flights.clean:1/{HOUR}", 1, HOUR)
POOL = Slots("pool:demo.big", 8, units=4, unit="vCPUs")
SHARE = Slots("pool:demo.big:demo.flights.clean", 2, units=4, unit="vCPUs", fallback=POOL)


# -- rate windows --------------------------------------------------------------------------------------------------


def test_c5_a_rate_window_forgets_starts_by_age_and_not_by_name() -> None:
    state = LimitState(HOURLY.limit_name, starts={"a": NOON + 2, "b": NOON + 1, "c": NOON})
    assert permits.outdated(HOURLY, state) == ("c", "b")


def test_c5_of_simultaneous_starts_the_first_name_is_forgotten() -> None:
    state = LimitState(HOURLY.limit_name, starts={"b": NOON, "a": NOON})
    assert permits.outdated(HOURLY, state) == ("a",)


# -- polling the holders of slots ----------------------------------------------------------------------------------

LAST_ASKED = NOON - 50 * SECOND
CROWDED = LimitState(LIMIT, active=2, waiters=1, asked_at=LAST_ASKED)


@pytest.mark.parametrize(
    ("state", "asked"),
    [
        (CROWDED, True),
        (replace(CROWDED, limit_name="pool:demo.big"), True),
        (replace(CROWDED, active=1), True),
        (replace(CROWDED, asked_at=LAST_ASKED + 1), False),  # polled less than 50 seconds ago
        (replace(CROWDED, waiters=0), False),  # no job waits
        (replace(CROWDED, active=0), False),  # no run holds a slot
        (replace(CROWDED, limit_name=EMR_LIMIT), False),  # permits of a pace are not released
        (replace(CROWDED, limit_name=HOURLY.limit_name), False),
        (replace(CROWDED, limit_name="admission:demo.slow:pool:demo.big"), False),  # these are jobs, not runs
    ],
)
def test_w7_slot_holders_are_polled_at_each_tick_while_jobs_wait(state: LimitState, asked: bool) -> None:
    assert limit_slots.polls_holders(state, NOON) is asked


# -- how far ahead a permit is acquired ----------------------------------------------------------------------------


def test_e8_only_a_queued_job_takes_a_pace_permit_a_second_ahead() -> None:
    pace = Pace(EMR_LIMIT, SECOND, 3)
    assert permits.horizon(pace, NOON, is_served=True) == NOON + SECOND
    assert permits.horizon(pace, NOON) == NOON


def test_e3_a_new_job_at_a_strict_pace_gets_time_to_prepare() -> None:
    exact = Pace("policy:demo.slow", SECOND, 1, tolerance=50)
    assert permits.horizon(exact, NOON) == NOON + 200
    assert permits.horizon(exact, NOON, is_served=True) == NOON + SECOND


def test_c8_a_slot_or_rate_permit_is_taken_only_when_it_is_free() -> None:
    assert [permits.horizon(ask, NOON, is_served=True) for ask in (Slots(LIMIT, 1), HOURLY)] == [NOON, NOON]


# -- the sort key in a queue ---------------------------------------------------------------------------------------


def test_w2_a_rank_is_priority_latest_start_age_and_job() -> None:
    """Ranks are stored, so those of one release must sort among those of another."""
    assert permits.rank(7, NOON + MINUTE, NOON, "j1") == "2#2026-03-02T12:01:00.000Z#2026-03-02T12:00:00.000Z#j1"
    assert permits.rank(7, None, NOON, "j1") == "2#~#2026-03-02T12:00:00.000Z#j1"


# -- parts of a pool -----------------------------------------------------------------------------------------------


def test_w3_a_job_never_fits_if_share_and_pool_are_too_small() -> None:
    assert not permits.never_fits(POOL)
    assert permits.never_fits(replace(POOL, limit=3))
    assert not permits.never_fits(replace(POOL, limit=4))
    assert not permits.never_fits(SHARE), "it fits into the common part"
    assert permits.never_fits(replace(SHARE, fallback=replace(POOL, limit=3)))
    assert permits.never_fits(replace(SHARE, fallback=None))
    assert not permits.never_fits(replace(SHARE, limit=4, fallback=None))
    assert not permits.never_fits(Pace(EMR_LIMIT, SECOND, 1))


def test_w3_a_permit_may_come_from_a_share_then_from_fallback() -> None:
    own, pace = Slots(LIMIT, 1), Pace(EMR_LIMIT, SECOND, 1)
    assert permits.with_fallbacks((HOURLY, own, SHARE, pace)) == (HOURLY, own, SHARE, POOL, pace)


def test_w3_a_fallback_permit_counts_as_the_one_asked_for() -> None:
    assert permits.is_held(SHARE, (LIMIT, SHARE.limit_name))
    assert permits.is_held(SHARE, (LIMIT, POOL.limit_name))
    assert not permits.is_held(SHARE, (LIMIT,))
    assert not permits.is_held(POOL, (SHARE.limit_name,))
    assert not permits.is_held(HOURLY, ())


@pytest.mark.parametrize(
    ("asks", "held", "units", "other"),
    [
        ((Slots(LIMIT, 1), SHARE), (LIMIT, SHARE.limit_name), 4, False),
        ((Slots(LIMIT, 1), SHARE), (LIMIT, POOL.limit_name), 4, False),
        ((SHARE,), (SHARE.limit_name,), 3, True),  # the schedule takes more units now
        ((SHARE,), (POOL.limit_name,), 5, True),  # or fewer
        ((SHARE,), ("pool:demo.other",), 4, True),  # it names another pool now
        ((Slots(LIMIT, 1),), (POOL.limit_name,), 4, True),  # or none
        ((SHARE,), (LIMIT,), 4, False),  # it holds nothing of a pool
        ((SHARE,), (), 3, False),
        ((), (), 0, False),
    ],
)
def test_w3_units_of_another_amount_or_pool_are_released(
    asks: tuple[permits.PermitRequest, ...], held: tuple[str, ...], units: int, other: bool
) -> None:
    assert permits.holds_other_units(asks, held, units) is other


# -- the texts -----------------------------------------------------------------------------------------------------


def test_why_names_the_policy_whose_admission_a_job_waits_for() -> None:
    ask = Slots("admission:demo.slow:pool:demo.big", 20)
    assert permits.why(ask, LimitState(ask.limit_name, active=20, waiters=2)).text == (
        "waits for admission to policy demo.slow: other jobs are next"
    )


def test_why_a_job_waits_for_several_slots_or_units() -> None:
    slots = replace(POOL, unit="slot")
    assert (
        permits.why(slots, LimitState(POOL.limit_name, active=6)).text
        == "waits for 4 slots of pool demo.big: 6 of 8 in use"
    )
    assert (
        permits.why(POOL, LimitState(POOL.limit_name, active=6)).text
        == "waits for 4 vCPUs of pool demo.big: 6 of 8 in use"
    )


def test_why_says_that_a_pool_is_too_small_or_divided_otherwise() -> None:
    small = replace(POOL, limit=3, overdrawn=2)
    assert permits.why(small, LimitState(POOL.limit_name, active=1)).text == (
        "waits for 4 vCPUs of pool demo.big: 1 of 3 in use; more than the whole pool: request less, or enlarge the pool"
        "; 2 more are still in use in parts that were made smaller"
    )
    assert permits.why(replace(POOL, overdrawn=2), LimitState(POOL.limit_name, active=5)).text == (
        "waits for 4 vCPUs of pool demo.big: 5 of 8 in use; 2 more are still in use in parts that were made smaller"
    )
