"""Throttling policies (E3): all starts under a policy keep its pace, by priority, across schedules."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.flow.definitions import store
from tests.acceptance.words import day
from tests.support.clock import NOON
from tests.support.schedules import at, partitions
from tests.support.world import World, flights


def under(policy: dict[str, Any], schedules: dict[str, Any]) -> dict[str, Any]:
    return {**flights(schedules), "policies": {"calm": policy}}


def most_in(starts: list[int], interval: int) -> int:
    """The largest number of starts in any interval ``[start, start + interval)``."""
    return max(sum(first <= at < first + interval for at in starts) for first in starts)


def test_e3_no_sliding_interval_exceeds_policy_across_schedules() -> None:
    world = World()
    daily = partitions(by=["day"], policy="calm")
    ping = at("@every 7s", "notify", policy="calm", coalesce=False)
    world.deploy(under({"max_events": 4, "interval": "30s"}, {"daily": daily, "ping": ping}))
    for number in range(6):
        world.upload(day(number))
    world.pass_by("3m")

    starts = sorted([*world.targets.emr.called_at, *world.targets.queue.sent_at])
    assert len(world.targets.emr.called_at) == 6
    assert len(starts) >= 20
    assert most_in(starts, 30 * SECOND) <= 4


def test_e3_policy_starts_are_even_and_the_default_is_a_minute() -> None:
    world = World()
    world.deploy(under({"max_events": 20}, {"daily": partitions(by=["day"], policy="calm")}))
    for number in range(20):
        world.upload(day(number))
    world.pass_by("2m")

    starts = world.targets.emr.called_at
    assert len(starts) == 20
    assert most_in(starts, MINUTE) <= 20
    gaps = {later - earlier for earlier, later in pairwise(starts)}
    assert gaps == {3_060}, "(60 s + 2 %) / 20"


def test_e3_higher_priority_goes_first_in_a_policy_as_why_shows() -> None:
    world = World()
    low = partitions(by=["day"], policy="calm", priority=1)
    urgent = partitions(dataset="weather", by=["day"], workflow="join", policy="calm", priority=9)
    world.deploy(under({"max_events": 2, "interval": "1m"}, {"low": low, "urgent": urgent}))
    for number in range(4):
        world.upload(day(number))
    world.settle()
    reasons = {job.reason.text for job in world.jobs("low")}
    rule = "waits for a permit of policy demo.calm: at most 2 starts in any 1m"
    assert reasons == {rule}

    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    world.pass_by("31s")
    assert len(world.runs("low")) == 1
    assert len(world.runs("urgent")) == 1


def test_e3_retries_take_permits_too() -> None:
    world = World()
    retried = {
        "target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"},
        "retries": {"attempts": 3, "delay": "1s"},
    }
    document = flights({"daily": partitions(by=["day"], policy="calm")}, clean=retried)
    world.deploy({**document, "policies": {"calm": {"max_events": 1, "interval": "1m"}}})
    world.upload(day(1))
    world.settle()
    for _ in range(4):
        world.finish("FAILED")
        world.pass_by("30s")

    starts = world.targets.emr.called_at
    assert len(starts) == 2
    assert most_in(starts, MINUTE) == 1


def test_e3_a_changed_policy_applies_from_the_next_permit() -> None:
    world = World()
    world.deploy(under({"max_events": 2, "interval": "1h"}, {"daily": partitions(by=["day"], policy="calm")}))
    for number in range(8):
        world.upload(day(number))
    world.settle()
    assert world.targets.emr.called_at == [NOON]

    store.put(world.ports, "policy", "demo.calm", {"max_events": 6, "interval": "1m"}, "tester")
    world.settle()
    world.pass_by("2m")

    assert len(world.targets.emr.called_at) == 8, "nobody waits out the half hour of the pace before"
    assert most_in(world.targets.emr.called_at, MINUTE) <= 6


def test_e3_a_policy_in_use_is_not_deleted_and_must_exist() -> None:
    world = World()
    world.deploy(under({"max_events": 2}, {"daily": partitions(policy="calm")}))
    with pytest.raises(SluiceError, match="used by schedule demo.flights.daily"):
        store.delete(world.ports, "policy", "demo.calm")
    with pytest.raises(SluiceError, match="expected an existing policy, got 'demo.clam'"):
        world.put("other", partitions(policy="clam"))


def test_e3_a_stall_of_an_hour_is_not_recovered_at_once() -> None:
    world = World()
    world.deploy(
        under({"max_events": 10, "interval": "1m"}, {"ping": at("@every 10s", "notify", policy="calm", coalesce=False)})
    )
    world.pass_by("1m")
    world.clock.wait_until(NOON + HOUR)
    world.pass_by("10m")
    assert most_in(world.targets.queue.sent_at, MINUTE) <= 10
