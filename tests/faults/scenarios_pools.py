"""Pools, for `test_crash_points.py`: units that are acquired, kept, borrowed and released (W3)."""

from __future__ import annotations

from typing import Any

from chalicelib.flow.definitions import store
from tests.faults.dying import POOLS, Scenario, finish, passes, people, upload
from tests.support.schedules import partitions
from tests.support.world import World

SHARED_BY_ALL = {"size": 4, "unit": "slots", "shares": {}}
LARGER = {"size": 6, "unit": "slots", "shares": POOLS["p"]["shares"]}


def pooled(workflow: str, dataset: str = "flights", **fields: Any) -> dict[str, Any]:
    return partitions(1, workflow, dataset, by=["day"], pool="p", timeout="never", **fields)


def _use_a_share_and_its_fallback(world: World) -> None:
    """Three units are common and one belongs to the join. The join takes a common unit that no job waits for, then
    queues.
    """
    upload(world, 1)
    for number in (1, 2, 3):
        upload(world, number, "weather", "x.csv")
    finish(world)
    passes(world, "1m1s")
    finish(world)


def _grow(world: World) -> None:
    for number in (1, 2):
        upload(world, number)
    people(world, lambda: store.put(world.ports, "pool", "demo.p", LARGER, "tester"))
    finish(world)


def _cut(world: World) -> None:
    """The share of the join is removed while its run is active. Its unit is free only after that run has ended."""
    upload(world, 1, "weather", "x.csv")
    for number in (1, 2, 3, 4):
        upload(world, number)
    people(world, lambda: store.put(world.ports, "pool", "demo.p", SHARED_BY_ALL, "tester"))
    finish(world)


def _at_a_pace(world: World) -> None:
    """Of five jobs, one starts, two hold a unit while they wait for the policy, and two wait for the pool."""
    for number in (1, 2, 3, 4, 5):
        upload(world, number)
    passes(world, "21s", "21s", "21s", "21s")
    finish(world)


def _leave_with_units(world: World) -> None:
    """Two jobs hold two units each while they wait for the start rate. Then the schedule is disabled."""
    for number in (1, 2):
        upload(world, number)
    people(world, lambda: world.disable("a"))


POOLED = {
    "a share, and what nobody waits for": Scenario(
        {"a": pooled("clean", slots=2), "j": pooled("join", "weather")},
        _use_a_share_and_its_fallback,
        [({"a": ["SUCCEEDED"], "j": ["SUCCEEDED"] * 3}, 4)],
    ),
    "a pool that grows while a job waits": Scenario(
        {"a": pooled("clean", slots=3)}, _grow, [({"a": ["SUCCEEDED"] * 2}, 2)]
    ),
    "a pool whose share is given up": Scenario(
        {"a": pooled("clean", slots=1), "j": pooled("join", "weather")},
        _cut,
        [({"a": ["SUCCEEDED"] * 4, "j": ["SUCCEEDED"]}, 5)],
    ),
    "a policy, and a pool behind it": Scenario(
        {"a": pooled("clean", slots=1, policy="calm")}, _at_a_pace, [({"a": ["SUCCEEDED"] * 5}, 5)]
    ),
    "a disable of who holds units of a pool": Scenario(
        {"a": pooled("clean", slots=1)},
        _leave_with_units,
        [({"a": ["SUCCEEDED"]}, 1), ({"a": ["CANCELLED"]}, 1), ({"a": ["ABORTED"]}, 0), ({"a": []}, 0)],
        tuned={"start_burst": 1, "start_rate_per_second": 0.1},
    ),
}
