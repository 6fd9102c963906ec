"""A backfill meets each user action, in every order (L12, C13).

A backfill begins, its first runs end, and the next ones are claimed. Before each of these calls in turn, another
machine cancels the backfill, or deletes, disables, enables or replaces its schedule, or changes its description.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.core.rows.backfill import Backfill
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support import backfills
from tests.support.crossings import at_each_call, calls_on_record, cross, let_time_pass
from tests.support.schedules import at, at_most
from tests.support.snapshot import Start
from tests.support.world import World, flights, full

FOUR_DAYS = {"from_": "2026-01-01T00:00:00Z", "to": "2026-01-05T00:00:00Z"}
NIGHTLY = at("0 2 * * *", **at_most(1), enabled=False)


STRIDE = 3  # `make test-long` tries each call


@dataclass(frozen=True)
class UserAction:
    """A user action, and the state in which the backfill ends. ``ends``: none of its runs starts after the action."""

    act: Callable[[World], Any]
    state: str
    ends: bool


def _stop(runs: bool) -> Callable[[World], Any]:
    return lambda world: [
        backfills.stop(world, "nightly", row.id, runs) for row in world.ports.jobs.backfills(full("nightly"))
    ]


ACTIONS = {
    "cancel": UserAction(_stop(runs=False), "CANCELLED", ends=True),
    "cancel with its runs": UserAction(_stop(runs=True), "CANCELLED", ends=True),
    "delete": UserAction(lambda world: world.delete("nightly"), "ENDED", ends=True),
    "replace": UserAction(lambda world: world.put("nightly", at("0 3 * * *", enabled=False)), "ENDED", ends=True),
    "disable": UserAction(lambda world: world.disable("nightly"), "DONE", ends=False),
    "enable": UserAction(lambda world: world.enable("nightly"), "DONE", ends=False),
    "describe": UserAction(lambda world: world.put("nightly", {**NIGHTLY, "description": "x"}), "DONE", ends=False),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_l12_c13_a_backfill_and_user_actions_in_every_order(action: str) -> None:
    """Each action begins at another call, so that together they come before every call."""
    _at_each_call(action, first=1 + list(ACTIONS).index(action) % STRIDE, stride=STRIDE)


@pytest.mark.long
@pytest.mark.parametrize("action", ACTIONS)
def test_l12_c13_a_backfill_and_each_user_action_at_each_call(action: str) -> None:
    _at_each_call(action)


def _at_each_call(action: str, first: int = 1, stride: int = 1) -> None:
    start = Start(_begun)
    calls = at_each_call(lambda before: _cross(start, before, ACTIONS[action]), 60, first, stride)
    print(f"{action} beside a backfill of {calls} calls, before every {stride}th of them")


def _begun() -> World:
    world = World(**SMALL)
    world.deploy(flights({"nightly": NIGHTLY}))
    backfills.begin(world, "nightly", concurrency=2, **FOUR_DAYS)
    return world


def _cross(start: Start, before: int | None, action: UserAction) -> int:
    """Play one order. Returns the number of calls of the backfill."""
    world = start.again()
    [backfill] = [row.id for row in world.ports.jobs.backfills(full("nightly"))]
    started: list[set[str]] = []

    def act() -> None:
        action.act(world)
        started.append(calls_on_record(world, "nightly"))

    def process() -> None:
        world.settle()
        world.finish()
        world.settle()

    calls = cross(world, before, act, process)
    for _ in range(3):
        let_time_pass(world, finishing=True)

    invariants.check_rest(world)
    row = world.ports.rows.get(Backfill, full("nightly"), backfill)
    assert row is not None
    assert (row.state, row.live) == (action.state, {})
    counted = backfills.counts(world, "nightly", backfill)
    if action.ends:
        assert set(world.targets.emr.calls) <= started[0], "only what was on record as called may pass"
    else:
        # A start call that was in flight when the schedule closed may have succeeded. That run is then cancelled, on
        # record.
        assert counted.get("succeeded", 0) + counted.get("cancelled", 0) == 4
        assert counted.get("cancelled", 0) == sum(run.state == "CANCELLED" for run in world.runs("nightly"))
    return calls
