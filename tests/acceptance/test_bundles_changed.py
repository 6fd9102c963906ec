"""Fires of many events that share rows, and what changes before they are sent: outages and updates (E1, E2, L6)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chalicelib.core.instants import HOUR
from tests.support import events
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import World, flights


def _deployed(cron: str, count: int, over: str | None = None, **rest: Any) -> World:
    world = World(wake_shards=1, history_shards=1)
    spread = {"count": count} | ({"over": over} if over else {})
    world.deploy(flights({"batch": at(cron, "notify", spread=spread, **rest)}))
    return world


def _sent(world: World) -> Counter[str]:
    return Counter(run_id for run_id, _ in world.targets.queue.messages)


def test_e1_bundles_of_many_fires_are_prepared_after_an_outage() -> None:
    world = _deployed("* * * * *", 7)
    world.clock.wait_until(NOON + 3 * HOUR)
    world.pass_by("5m")
    sent = _sent(world)
    assert set(sent.values()) == {1}
    assert len(sent) == 185 * 7
    assert len(events.sent(world, "batch")) == 185 * 7
