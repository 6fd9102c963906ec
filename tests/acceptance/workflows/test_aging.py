"""Aging of pools and policies: no priority starves, and `why` says what goes first (W2, C14)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.flow.definitions import store
from tests.support.answers import explain
from tests.support.clock import NOON
from tests.support.world import SQS, World, flights


def pooled_at(priority: int) -> dict[str, Any]:
    trigger = {"type": "event", "event": f"p{priority}"}
    return {"workflow": "clean", "enabled": True, "trigger": trigger, "priority": priority, "pool": "demo.few"}


def aged(document: dict[str, Any], aging: str | None) -> dict[str, Any]:
    return document | ({"aging": aging} if aging else {})


def pooled(aging: str | None) -> World:
    """A pool of one slot. A run of priority 9 has it, another one waits, and one of priority 8."""
    world = World(start_burst=100)
    document = flights({"urgent": pooled_at(9), "calm": pooled_at(8)})
    world.deploy(document | {"pools": {"few": aged({"size": 1}, aging)}})
    for priority in (9, 9, 8):
        world.post(f"p{priority}")
        world.settle()
    return world


def next_hour(world: World) -> None:
    """Another event of priority 9 comes, and the active run ends."""
    world.clock.pass_by("1h")
    world.post("p9")
    world.settle()
    world.finish()
    world.settle()


@pytest.mark.parametrize(("aging", "hour"), [("30m", 2), ("6h", 7), ("20h", 21), (None, None)])
def test_w2_priority_8_starts_beside_endless_priority_9(aging: str | None, hour: int | None) -> None:
    """For 48 hours, a run of priority 9 is always ready when the slot becomes free."""
    world = pooled(aging)
    for _ in range(48):
        next_hour(world)
    started = [(run.claimed_at - NOON) // HOUR for run in world.runs("calm")]
    assert started == ([hour] if hour is not None else [])
    assert len(world.runs("urgent")) == 49 - len(started), "the slot never idles"


def test_c14_why_says_that_more_urgent_work_goes_first() -> None:
    world = pooled("6h")
    next_hour(world)
    world.post("p9")
    world.settle()
    [job] = world.jobs("calm")
    view = explain.why_job(world.ports, job)
    assert view["why"] == (
        "waits for a slot of pool demo.few: 1 of 1 in use; position 2 of 2 in its queue; "
        "1 of higher priority go first, and it has waited since 2026-03-02T12:00:00.000Z"
    )
    assert (view["queue"]["more_urgent"], view["queue"]["since"]) == (1, "2026-03-02T12:00:00.000Z")


@pytest.mark.parametrize(("before", "after", "calm"), [(None, "30m", 1), ("30m", None, 0), ("1d", "1h", 1)])
def test_w2_a_changed_aging_ranks_waiting_jobs_again(before: str | None, after: str | None, calm: int) -> None:
    world = pooled(before)
    world.finish()
    world.settle()
    world.clock.pass_by("3h")
    world.post("p9")
    world.settle()
    store.put(world.ports, "pool", "demo.few", aged({"size": 1}, after), "ada")
    world.finish()
    world.settle()
    assert (len(world.runs("urgent")), len(world.runs("calm"))) == (3 - calm, calm)


@pytest.mark.parametrize(
    ("policy", "count", "aging", "within"),
    [
        ({"max_events": 1, "interval": "1m"}, 1, "5m", 7),
        ({"max_events": 10, "interval": "10s"}, 60, "5m", 7),  # its jobs start in blocks
        ({"max_events": 1, "interval": "1m"}, 1, None, None),
    ],
)
def test_w2_a_policy_ages_its_queue(policy: dict[str, Any], count: int, aging: str | None, within: int | None) -> None:
    """Jobs of priority 9 come as fast as the policy lets them start."""
    world = World()
    shared = {"workflow": "notify", "enabled": True, "policy": "demo.calm"}
    every_minute = {"trigger": {"type": "time", "expression": "* * * * *"}, "coalesce": False}
    spread = {"spread": {"count": count}} if count > 1 else {}
    event = {"trigger": {"type": "event", "event": "p8"}}
    schedules = {"p9": shared | every_minute | spread | {"priority": 9}, "p8": shared | event | {"priority": 8}}
    world.deploy(flights(schedules, notify={"target": SQS}) | {"policies": {"calm": aged(policy, aging)}})
    world.pass_by("3m")
    began = world.clock.now()
    world.post("p8")
    world.pass_by("12m")
    started = [(run.claimed_at - began) / MINUTE for run in world.runs("p8")]
    assert (len(started), all(after <= (within or 0) for after in started)) == (int(within is not None), True)
