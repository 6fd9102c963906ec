"""A run that waits for its next start call at its slowest pace moves when another pace becomes the slowest (E3, E8)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.targets.answers import NotNow
from chalicelib.flow.definitions import store
from tests.faults import invariants
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights

POLICY, STARTS = "policy:demo.calm", "emr:starts"
FAST, SLOW = {"max_events": 20, "interval": "10s"}, {"max_events": 1, "interval": "5m"}


def becomes(world: World, policy: dict[str, Any]) -> None:
    store.put(world.ports, "policy", "demo.calm", policy, "tester")


def refused(policy: dict[str, Any], queue: str) -> World:
    """A run whose call was refused for the moment, and which waits in this queue for the next one."""
    world = World(start_burst=1, wake_shards=1, history_shards=1)
    app = flights({"daily": partitions(by=["day"], policy="calm"), "free": partitions(1, "join", dataset="weather")})
    world.deploy({**app, "policies": {"calm": policy}, "workflows": {**app["workflows"], "clean": {"target": EMR}}})
    world.targets.emr.answers = [NotNow("throttled")]
    world.upload(day(1))
    world.settle()
    [run] = world.runs("daily")
    assert (run.queued_in, run.calls) == (queue, 1)
    return world


@pytest.mark.parametrize(
    ("before", "after", "old", "new"), [(FAST, SLOW, STARTS, POLICY), (SLOW, FAST, POLICY, STARTS)]
)
def test_e3_a_run_moves_to_the_queue_of_the_pace_that_is_slowest(
    before: dict[str, Any], after: dict[str, Any], old: str, new: str
) -> None:
    world = refused(before, old)
    becomes(world, after)
    if new == POLICY:  # its permit of this interval is taken
        world.pass_by("1s")
    seen = set()
    for _ in range(80):
        world.pass_by("5s")
        [run] = world.runs("daily")
        seen.add((run.queued_in, run.reason.text))
    assert run.state == "RUNNING" or run.target_id is not None
    assert all(reason.count("waits for a permit") <= 1 for _, reason in seen), seen
    assert (world.limit_state(POLICY).waiters, world.limit_state(STARTS).waiters) == (0, 0)
    invariants.check(world)


def test_e3_a_run_that_waits_for_its_policy_delays_no_other() -> None:
    """Others wait for the slow policy, too. The run used to stay at the head of the queue for starts until none did."""
    world = refused(FAST, STARTS)
    becomes(world, SLOW)
    for number in (2, 3, 4):
        world.upload(day(number))
    world.upload(day(1, "weather", "a.csv"))
    world.pass_by("20s")
    [free] = world.runs("free")
    assert free.target_id is not None
    assert world.limit_state(STARTS).waiters == 0
    invariants.check(world)
    for _ in range(60):
        world.pass_by("30s")
    assert [each.target_id is not None for each in world.runs("daily")] == [True] * 4
