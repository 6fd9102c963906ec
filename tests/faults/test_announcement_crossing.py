"""A status without a waiting schedule is not announced, and a waiting schedule misses no status, in any order (T10).

A run ends. Before each call that handles this event, another machine enables a schedule that waits for the status. The
clock of that machine may be behind, so that the enabling began before the event came, or ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import SECOND, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import Conflict, Replace, Write
from chalicelib.flow.schedules import actions
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.clock import HandClock
from tests.support.crossings import at_each_call, cross
from tests.support.schedules import after, partitions
from tests.support.snapshot import Start
from tests.support.world import World, day, flights, full

ENDS = {"RUNNING": "STARTED", "SUCCESS": "COMPLETED", "CANCELLED": "KILLED"}


@pytest.mark.parametrize("began", [-SECOND, 0, 1])
@pytest.mark.parametrize("says", ENDS)
def test_t10_a_late_waiter_gets_statuses_that_its_since_covers(says: str, began: Millis) -> None:
    start = Start(lambda: _begun(ENDS[says]))
    at_each_call(lambda before: _cross(start, before, says, began), least=5)


def _begun(status: str) -> World:
    world = World(**SMALL)
    waiting = after("clean", "join", status, enabled=False)
    world.deploy(flights({"daily": partitions(), "next": waiting}))
    world.upload(day(1))
    world.settle()
    return world


def _cross(start: Start, before: int | None, says: str, began: Millis) -> int:
    """Play one order. Returns the number of calls that handle the event."""
    world = start.again()

    def enable() -> None:
        theirs = replace(world.ports, clock=HandClock(world.clock.now() + began))
        actions.enable(theirs, full("next"), "tester")

    calls = cross(world, before, enable, lambda: world.emr_says("jr00001", says))
    world.settle()
    for _ in range(3):
        world.clock.pass_by("11m")
        world.tick()
        world.finish()
    invariants.check_rest(world)
    if before is not None:
        assert (len(world.runs("next")) == 1) == (began <= 0)
    return calls


def _ended(document: dict[str, Any], says: str = "SUCCESS") -> tuple[World, list[int]]:
    """A world in which a run has ended, and the number of writes of its row since its start."""
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(), **document}))
    world.upload(day(1))
    world.settle()
    written: list[int] = []
    commit = world.ports.ledger.commit

    def counted(writes: Sequence[Write]) -> Conflict | None:
        written.append(sum(isinstance(write, Replace) and isinstance(write.row, Run) for write in writes))
        return commit(writes)

    world.ports.ledger.commit = counted
    world.finish(says)
    return world, written


def test_t10_a_run_nobody_waits_for_is_written_once_per_state() -> None:
    world, written = _ended({})
    assert written == [1, 1]
    (run,) = world.runs("daily")
    assert (run.state, run.announce, run.wake_at) == ("SUCCEEDED", (), None)


def test_t10_l19_awaited_statuses_and_failures_are_announced() -> None:
    listens = {"next": after("clean", "join", "COMPLETED", "STARTED")}
    for document, says, answer in ((listens, "SUCCESS", 2), ({}, "FAILED", 1)):
        world, written = _ended(document, says)
        assert sum(written) == 2 + answer
        assert [run.announce for run in world.runs("daily")] == [()]
