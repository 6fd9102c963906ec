"""Pairs of invocations that meet at a timeout or at an update that carries, and the expected result."""

from __future__ import annotations

from typing import Any

from tests.faults.meetings.situations_people import (
    BY_DAY_ONE,
    Crossing,
    check,
    either,
    emitting,
    ends,
    passes,
    put,
    serving,
    settle,
    succeeded,
    then,
    uploads,
)  # fmt: skip
from tests.faults.scenarios_basic import ONE_AT_A_TIME
from tests.support.schedules import at, partitions

AN_HOUR = {"after": "1h", "then": "abort"}
ANYWAY = {"after": "1h", "then": "run"}
CARRY = {"on_update": "carry"}


def burst(count: int, **fields: Any) -> dict[str, Any]:
    """A fire of several events, at four past."""
    return at("4 12 2 3 *", "notify", spread={"count": count}, **fields)


LIFECYCLE_CROSS = {
    "a check of what has timed out, and one more event": Crossing(
        {"daily": partitions(2, timeout=AN_HOUR)},
        then(uploads(1), settle, passes("61m")),
        check("daily"),
        uploads(2),
        succeeded(daily=1),
        uploads(3),
    ),
    "a check of what runs anyway, and one more event": Crossing(
        {"daily": partitions(2, timeout=ANYWAY)},
        then(uploads(1), settle, passes("61m")),
        check("daily"),
        uploads(2),
        succeeded(daily=2),
        uploads(3),
    ),
    "two events after a timeout": Crossing(
        {"daily": partitions(2, timeout=AN_HOUR)},
        then(uploads(1), settle, passes("61m")),
        uploads(2),
        uploads(3),
        succeeded(daily=1),
    ),
    "a serving of what runs anyway, and one more event": Crossing(
        {"daily": partitions(timeout=ANYWAY, constraints=ONE_AT_A_TIME)},
        then(uploads(1), settle, uploads(2), settle, passes("61m"), ends(), passes("1s")),
        serving,
        uploads(3),
        succeeded(daily=3),
    ),
    "an emission, and an update to fewer events": Crossing(
        {"burst": burst(4)}, passes("2m"), emitting, put("burst", burst(2, **CARRY)), either(burst=(2, 4))
    ),
    "an emission, and an update to more events": Crossing(
        {"burst": burst(2)}, passes("2m"), emitting, put("burst", burst(4, **CARRY)), either(burst=(2, 4))
    ),
    "an emission, and an update that ends before the fire": Crossing(
        {"burst": burst(2)}, passes("2m"), emitting, put("burst", burst(2, ttl="1m", **CARRY)), succeeded(burst=0)
    ),
    "a check of a fire, and an update to fewer events": Crossing(
        {"burst": burst(2)},
        then(passes("2m"), emitting, passes("121s")),
        check("burst", 1),
        put("burst", burst(1, **CARRY)),
        succeeded(burst=2),
    ),
    "a check of a fire, and an update to more events": Crossing(
        {"burst": burst(2)},
        then(passes("2m"), emitting, passes("119s")),
        check("burst", 1),
        put("burst", burst(3, **CARRY)),
        succeeded(burst=2),
    ),
    "a serving of the queue, and an update to another priority": Crossing(
        {"daily": BY_DAY_ONE},
        then(uploads(1), settle, uploads(2), settle, uploads(3), settle, ends(), passes("1s")),
        serving,
        put("daily", {**BY_DAY_ONE, "priority": 9, **CARRY}),
        succeeded(daily=3),
    ),
    "a serving of the queue, and an update to another workflow": Crossing(
        {"daily": BY_DAY_ONE},
        then(uploads(1), settle, uploads(2), settle, ends(), passes("1s")),
        serving,
        put("daily", {**BY_DAY_ONE, "workflow": "join", **CARRY}),
        succeeded(daily=2),
    ),
}
