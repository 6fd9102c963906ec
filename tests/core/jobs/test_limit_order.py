"""A job acquires the permits of its limits in their order; otherwise it yields (C1, C5, C9, L6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.instants import DAY, HOUR, MINUTE
from chalicelib.core.jobs import claim
from chalicelib.core.jobs.check import Decision, Launch, Wait, decide
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import permits as limit_permits
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.permits import Slots
from chalicelib.core.limits.policies import Policy
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.writes import Replace
from tests.core.builders import EMR_LIMIT, LIMIT, NAME, NOON, concurrency, facts, met, schedule, thorough
from tests.support.reasons import says

HOURLY: dict[str, Any] = {"type": "rate", "max": 1, "per": "hour"}
DAILY: dict[str, Any] = {"type": "rate", "max": 2, "per": "day"}
ONE = concurrency(1, "wait")
GROUP = concurrency(2, "wait") | {"group": "spark"}
HOUR_LIMIT, DAY_LIMIT, GROUP_LIMIT = f"rate:{NAME}:1/{HOUR}", f"rate:{NAME}:2/{DAY}", "group:demo.spark"
FULL = {"rate": {"starts": {"a": NOON - MINUTE, "b": NOON - MINUTE}}, "emr": {"head": NOON + DAY}}
POLICY, POOL = Policy(max_events=1), Slots("pool:demo.p", 8, units=2, unit="slot")
POOL_TURN, GROUP_TURN = "admission:demo.slow:pool:demo.p", "admission:demo.slow:group:demo.spark"


def queued(*held: str, at: str = EMR_LIMIT) -> Job:
    return met(queued_in=at, rank="5", held=held)


def turned(what: Job, *constraints: dict[str, Any], rates: tuple[str, ...] = ()) -> Decision:
    """The decision when a job is served at the limit where it queues."""
    known = facts(
        schedule=schedule(constraints=list(constraints)), limit_states={LIMIT: LimitState(LIMIT, rates=rates)}
    )
    return decide(what, known, NOON, what.queued_in)


@pytest.mark.parametrize(
    ("held", "constraints"),
    [
        ((LIMIT,), [HOURLY]),
        ((GROUP_LIMIT,), [GROUP, ONE]),
        ((GROUP_LIMIT, LIMIT), [GROUP, DAILY]),
        ((DAY_LIMIT, LIMIT), [DAILY, HOURLY]),
        ((DAY_LIMIT,), [DAILY, HOURLY]),
    ],
)
def test_c9_a_job_that_lacks_a_limit_before_one_it_holds_yields(
    held: tuple[str, ...], constraints: list[dict[str, Any]]
) -> None:
    """Its schedule was changed while it queued. Out of order, two jobs could each hold what the other one waits for."""
    assert turned(queued(*held), *constraints) == Wait(
        NOON, "PENDING_CONSTRAINTS", says("limits changed; requesting permits again from the first"), yields=True
    )
    assert isinstance(turned(met(), *constraints), Launch), "a job without permits launches"


@pytest.mark.parametrize(
    ("what", "constraints"),
    [
        (queued(LIMIT), [ONE]),
        (queued(HOUR_LIMIT, LIMIT), [HOURLY, ONE]),
        (queued(HOUR_LIMIT, at=LIMIT), [HOURLY, ONE]),
        (queued(HOUR_LIMIT, at=DAY_LIMIT), [HOURLY, DAILY, GROUP]),
        (queued(LIMIT), []),
        (queued(GROUP_LIMIT, LIMIT), []),  # it holds a permit that no constraint requests any more
        (queued(at=HOUR_LIMIT), [HOURLY]),
    ],
)
def test_c9_a_job_that_took_its_limits_in_order_goes_on(what: Job, constraints: list[dict[str, Any]]) -> None:
    assert isinstance(turned(what, *constraints), Launch)


def test_c5_a_rate_that_only_counts_never_makes_a_job_yield() -> None:
    """The rate records the start when it happens, so a job in a later queue does not hold it."""
    assert isinstance(turned(queued(LIMIT), rates=(f"1/{HOUR}",)), Launch)
    assert isinstance(turned(queued(LIMIT), HOURLY, rates=(f"1/{HOUR}",)), Wait)


def test_c9_a_job_does_not_yield_before_it_is_served() -> None:
    decision = decide(queued(LIMIT), facts(schedule=schedule(constraints=[HOURLY])), NOON)
    assert isinstance(decision, Wait)
    assert (decision.state, decision.yields) == ("PENDING_LAUNCH", False)


def busy(constraints: list[dict[str, Any]], rates: set[str], full: set[str], paced: bool) -> Facts:
    states = {line: LimitState(line, **FULL.get(line.partition(":")[0], {"active": 9})) for line in full}
    own = replace(states.get(LIMIT, LimitState(LIMIT)), rates=tuple(sorted(rates)))
    policy = {"policy": "demo.slow"} if paced else {}
    known = facts(
        schedule=schedule(constraints=constraints, timeout="never", **policy), limit_states=states | {LIMIT: own}
    )
    return replace(known, policy=POLICY, pool=POOL)


def freed(known: Facts, line: str) -> Facts:
    state = LimitState(line, waiters=1, rates=known.limit_state(line).rates)
    return replace(known, limit_states={**known.limit_states, line: state})


@given(
    st.lists(st.sampled_from([HOURLY, DAILY, ONE, GROUP]), unique_by=str),
    st.sets(st.sampled_from([f"1/{HOUR}", f"2/{DAY}", f"7/{MINUTE}"])),
    st.sets(
        st.sampled_from([HOUR_LIMIT, DAY_LIMIT, GROUP_LIMIT, LIMIT, EMR_LIMIT, POOL.limit_name, POOL_TURN, GROUP_TURN])
    ),
    st.booleans(),
)
@thorough
def test_c9_a_queued_job_passes_the_limits_one_by_one_in_order(
    constraints: list[dict[str, Any]], rates: set[str], full: set[str], paced: bool
) -> None:
    """Some of its limits are full. They are freed one by one, and the job never goes back."""
    waiting, known, turns = met(), busy(constraints, rates, full, paced), 0
    while True:
        decision = decide(waiting, known, NOON, waiting.queued_in)
        assert isinstance(decision, Launch)
        route = limit_route.route(decision.asks, waiting.held, known.limit_states, NOON, waiting.queued_in)
        if route.blocked is None:
            break
        [waiting] = [
            write.row
            for write in claim.queue(waiting, known, route, NOON)
            if isinstance(write, Replace) and isinstance(write.row, Job)
        ]
        order = {ask.limit_name: ask.order for ask in decision.asks}
        assert all(order[line] < route.blocked.order for line in waiting.held)
        known, turns = freed(known, (route.behind or route.blocked).limit_name), turns + 1

    permits = {*waiting.held, *(ask.limit_name for ask in route.take)}
    assert permits == {ask.limit_name for ask in known.asks("demo")}
    limiting = {ask.limit_name for ask in known.asks("demo") if not limit_permits.is_unlimited(ask)}
    assert turns == len(full & limiting), "the job queues once at each limit that is full"
