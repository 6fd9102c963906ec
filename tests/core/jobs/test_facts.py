"""What a job requests of the limits: slots of its workflow and groups, entries of rate windows, the pace of EMR (C1,
C4, C5, E8).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import DAY, HOUR, MINUTE
from chalicelib.core.jobs import permits as rules
from chalicelib.core.jobs.permits import asks_of
from chalicelib.core.limits.permits import Pace, PermitRequest, RateWindow, Slots
from chalicelib.core.rows.limit import LimitState
from tests.core.builders import (
    ELAPSED,
    EMR_LIMIT,
    LIMIT,
    NAME,
    PARTITION,
    RATE,
    SQS,
    any_of,
    concurrency,
    facts,
    schedule,
    workflow,
)

PACE = Pace(EMR_LIMIT, RATE.spacing, RATE.burst)
HOURLY = {"type": "rate", "max": 4, "per": "hour"}
DAILY = {"type": "rate", "max": 10, "per": "day"}
GAP = {"type": "since_last_run", "at_least": "5m"}


def asks(
    *constraints: dict[str, Any], rates: tuple[str, ...] = (), target: dict[str, Any] | None = None
) -> list[PermitRequest]:
    made = schedule(constraints=list(constraints))
    return list(asks_of(made, workflow(target), RATE, "demo", rates))


def group(most: int, name: str = "spark") -> dict[str, Any]:
    return concurrency(most, "wait") | {"group": name}


def log(rule: str, limit: int, span: int, binding: bool = True) -> RateWindow:
    return RateWindow(f"rate:{NAME}:{rule}", limit, span, binding)


# -- groups (C1) ---------------------------------------------------------------------------------------------------


def test_c1_a_group_is_a_limit_of_its_namespace_beside_workflow() -> None:
    assert asks(group(2)) == [Slots(LIMIT, None), Slots("group:demo.spark", 2), PACE]


def test_c1_a_workflow_and_its_groups_may_each_have_a_limit() -> None:
    assert asks(concurrency(1, "wait"), group(3), group(2, "night")) == [
        Slots(LIMIT, 1),
        Slots("group:demo.night", 2),
        Slots("group:demo.spark", 3),
        PACE,
    ]


def test_c1_of_two_constraints_on_one_limit_the_tighter_holds() -> None:
    assert asks(group(5), group(2), group(3))[1] == Slots("group:demo.spark", 2)
    assert asks(concurrency(4), concurrency(2, "wait"))[0] == Slots(LIMIT, 2)


# -- since the last run (C4) ---------------------------------------------------------------------------------------


def test_c4_a_gap_is_kept_by_the_limit_of_the_workflow() -> None:
    assert asks(GAP)[0] == Slots(LIMIT, None, 5 * MINUTE, any_run=False)
    assert asks(GAP | {"of": "any"})[0] == Slots(LIMIT, None, 5 * MINUTE, any_run=True)
    assert asks(GAP, concurrency(3, "wait"))[0] == Slots(LIMIT, 3, 5 * MINUTE)


def test_c4_of_two_gaps_the_wider_applies_and_any_counts_more() -> None:
    assert asks(GAP, GAP | {"at_least": "1h", "of": "any"})[0] == Slots(LIMIT, None, HOUR, any_run=True)
    assert asks(GAP | {"of": "any"}, GAP | {"at_least": "1h"})[0] == Slots(LIMIT, None, HOUR, any_run=True)


# -- rates (C5) ----------------------------------------------------------------------------------------------------


def test_c5_each_rate_is_its_own_window_before_slots_and_pace() -> None:
    assert asks(DAILY, HOURLY) == [
        log(f"4/{HOUR}", 4, HOUR),
        log(f"10/{DAY}", 10, DAY),
        Slots(LIMIT, None),
        PACE,
    ]


def test_c5_a_schedule_without_a_rate_is_counted_but_not_limited() -> None:
    assert asks(rates=(f"4/{HOUR}",)) == [log(f"4/{HOUR}", 4, HOUR, binding=False), Slots(LIMIT, None), PACE]
    assert asks(HOURLY, rates=(f"4/{HOUR}", f"10/{DAY}")) == [
        log(f"4/{HOUR}", 4, HOUR),
        log(f"10/{DAY}", 10, DAY, binding=False),
        Slots(LIMIT, None),
        PACE,
    ]


def test_c5_a_rate_written_twice_is_one() -> None:
    assert asks(HOURLY, HOURLY | {"per": "60m"}) == asks(HOURLY)


def test_c5_the_rates_of_a_schedule_are_known_to_its_workflow() -> None:
    assert rules.rates_of(schedule(constraints=[HOURLY, DAILY, HOURLY])) == (f"10/{DAY}", f"4/{HOUR}")
    assert rules.rates_of(schedule()) == ()


def test_c5_the_facts_have_the_rates_that_the_workflow_counts() -> None:
    known = facts(limit_states={LIMIT: LimitState(LIMIT, rates=(f"4/{HOUR}",))})
    assert known.asks("demo") == (log(f"4/{HOUR}", 4, HOUR, binding=False), Slots(LIMIT, None), PACE)
    assert replace(known, workflow=None).asks("demo") == ()
    assert replace(known, schedule=None).asks("demo") == ()


# -- targets without a lifecycle -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "tracked"),
    [
        ({}, False),
        ({"constraints": [GAP]}, False),
        ({"constraints": [HOURLY]}, True),
        ({"trigger": ELAPSED}, True),
        ({"trigger": any_of(PARTITION, ELAPSED)}, True),
    ],
)
def test_c1_queue_starts_are_counted_only_where_constraint_asks(fields: dict[str, Any], tracked: bool) -> None:
    made = schedule(**fields)
    assert rules.is_tracked(made, workflow(SQS)) is tracked
    assert bool(asks_of(made, workflow(SQS), RATE, "demo")) is tracked
    assert rules.is_tracked(made, workflow())


def test_c5_once_a_rate_asks_for_it_every_queue_start_is_counted() -> None:
    plain, queue, rates = schedule(), workflow(SQS), (f"4/{HOUR}",)
    assert asks_of(plain, queue, RATE, "demo", rates) == ()
    assert asks_of(plain, queue, RATE, "demo", rates, counted=True) == (
        log(f"4/{HOUR}", 4, HOUR, binding=False),
        Slots(LIMIT, None),
    )
    assert rules.asks_for_starts(schedule(ELAPSED))
    assert not rules.asks_for_starts(plain)


def test_e8_a_queue_delivery_asks_for_no_emr_start() -> None:
    assert asks(HOURLY, target=SQS) == [log(f"4/{HOUR}", 4, HOUR), Slots(LIMIT, None)]
