"""Groups and pools that are named while runs are active, for `test_crash_points.py` (C9, W3)."""

from __future__ import annotations

from typing import Any

from chalicelib.core import states
from chalicelib.flow.definitions import store
from tests.faults.dying import Scenario, finish, passes, people, upload
from tests.support.schedules import partitions
from tests.support.world import EMR, World

GROUPED = [{"type": "concurrency", "group": "heavy", "max": 1, "on_unmet": "wait"}]


def _in_a_group(world: World) -> None:
    """Two runs are active when their schedule joins a group of one; a third job comes."""
    upload(world, 1)
    upload(world, 2)
    grouped = partitions(by=["day"], constraints=GROUPED, on_update="carry")
    people(world, lambda: world.put("daily", grouped))
    _one_more(world)


def _in_a_pool(world: World) -> None:
    """The same with a pool that the workflow names, and of which a share belongs to another workflow."""
    upload(world, 1)
    upload(world, 2)
    pooled = {"target": EMR, "pool": "p", "slots": 2}
    people(world, lambda: store.put(world.ports, "workflow", "demo.flights.clean", pooled, "tester"))
    _one_more(world)


def _one_more(world: World) -> None:
    upload(world, 3)
    passes(world, "1m")
    assert _most_at_once(world, 2), "the third waits for both"
    finish(world)
    passes(world, "2m")
    finish(world)


def _most_at_once(world: World, most: int) -> bool:
    return sum(not states.is_terminal(run.state) for run in world.runs("daily")) <= most


ENDED = [({"daily": ["SUCCEEDED"] * 3}, 3)]
DAILY: dict[str, Any] = {"daily": partitions(by=["day"])}
NAMED_LATER = {
    "a group that is named while runs are going": Scenario(DAILY, _in_a_group, ENDED),
    "a pool that a workflow names while its runs are going": Scenario(DAILY, _in_a_pool, ENDED),
}
