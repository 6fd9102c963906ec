"""A backfill meets each user action, in every order (L12, C13).

A backfill begins, its first runs end, and the next ones are claimed. Before each of these calls in turn, another
machine cancels the backfill, or deletes, disables, enables or replaces its schedule, or changes its description.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.faults.memory_tables import QuickWorld
from tests.faults.test_disable_crossing import Cut, _cut, _let_time_pass
from tests.support import backfills
from tests.support.schedules import at, at_most
from tests.support.world import World, flights, full

FOUR_DAYS = {"from_": "2026-01-01T00:00:00Z", "to": "2026-01-05T00:00:00Z"}
NIGHTLY = at("0 2 * * *", **at_most(1), enabled=False)


@dataclass(frozen=True)
class Doing:
    """A user action, and the state in which the backfill ends. ``ends``: none of its runs starts after the action."""

    act: Callable[[World], Any]
    state: str
    ends: bool


def _stop(runs: bool) -> Callable[[World], Any]:
    return lambda world: [
        backfills.stop(world, "nightly", row.id, runs) for row in world.ports.jobs.backfills(full("nightly"))
    ]


DOINGS = {
    "cancel": Doing(_stop(runs=False), "CANCELLED", ends=True),
    "cancel with its runs": Doing(_stop(runs=True), "CANCELLED", ends=True),
    "delete": Doing(lambda world: world.delete("nightly"), "ENDED", ends=True),
    "replace": Doing(lambda world: world.put("nightly", at("0 3 * * *", enabled=False)), "ENDED", ends=True),
    "disable": Doing(lambda world: world.disable("nightly"), "DONE", ends=False),
    "enable": Doing(lambda world: world.enable("nightly"), "DONE", ends=False),
    "describe": Doing(lambda world: world.put("nightly", {**NIGHTLY, "description": "x"}), "DONE", ends=False),
}


@pytest.mark.parametrize("doing", DOINGS)
def test_l12_c13_a_backfill_and_user_actions_in_every_order(doing: str) -> None:
    calls = _cross(None, DOINGS[doing])
    for before in range(1, calls + 1):
        try:
            _cross(before, DOINGS[doing])
        except AssertionError as error:
            raise AssertionError(f"{doing} before call {before} of {calls}: {error}") from error
    print(f"{doing} on the road of a backfill: {calls} places where they may cross")
    assert calls >= 60


def _cross(before: int | None, doing: Doing) -> int:
    """Play one order. Returns the number of calls of the backfill."""
    world = QuickWorld(**SMALL)
    world.deploy(flights({"nightly": NIGHTLY}))
    backfill = backfills.begin(world, "nightly", concurrency=2, **FOUR_DAYS)
    plain = world.ports
    started: list[set[str]] = []

    def act() -> None:
        cut_ports, world.ports = world.ports, plain
        doing.act(world)
        calls = world.targets.emr.calls
        started.append({run.request.name for run in world.runs("nightly") if run.calls > 0} | set(calls))
        world.ports = cut_ports

    cut = Cut(before, act)
    world.ports = _cut(world.ports, cut)
    world.settle()
    world.finish()
    world.settle()
    world.ports = plain
    if before is None:
        act()
    for _ in range(3):
        _let_time_pass(world, finishing=True)

    invariants.check_rest(world)
    row = world.ports.jobs.backfill(full("nightly"), backfill)
    assert row is not None
    assert (row.state, row.live) == (doing.state, {})
    told = backfills.counts(world, "nightly", backfill)
    if doing.ends:
        assert set(world.targets.emr.calls) <= started[0], "only what was on record as called may pass"
    else:
        # A start call that was in flight when the schedule closed may have succeeded. That run is then cancelled, on
        # record.
        assert told.get("succeeded", 0) + told.get("cancelled", 0) == 4
        assert told.get("cancelled", 0) == sum(run.state == "CANCELLED" for run in world.runs("nightly"))
    return cut.count
