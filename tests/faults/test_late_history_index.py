"""The indexes of history are eventually consistent and may miss recent writes.

A list may be late. A decision that cannot be taken back must not depend on one (L10, E6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.targets.answers import Never
from chalicelib.flow.runs import dead_letters
from tests.acceptance.words import is_gone, to_queue
from tests.faults.dying import SMALL
from tests.support.world import World, flights, full

HISTORY = ("by_schedule", "by_day", "by_workflow")
ONCE = to_queue({"type": "time", "due_time": "10s"}, when_done="delete")


class LateHistory:
    """While it is used, the history indexes yield no rows. Reads of the table itself see every write."""

    def __init__(self, query: Callable[..., dict[str, Any]]) -> None:
        self._query = query
        self.lasts = True

    def __call__(self, **arguments: Any) -> dict[str, Any]:
        if self.lasts and arguments.get("IndexName") in HISTORY:
            return {"Items": []}
        return self._query(**arguments)


@pytest.fixture
def world() -> World:
    made = World(**SMALL)
    made.deploy(flights({"once": ONCE}))
    made.targets.queue.down = Never("no such queue")
    return made


def late(world: World) -> LateHistory:
    made = LateHistory(world.tables.query)
    world.tables.query = made
    return made


def redriven(world: World, job_id: str) -> list[str]:
    world.targets.queue.down = None
    dead_letters.redrive(world.ports, "demo", job_id)
    world.settle()
    return [run_id for run_id, _ in world.targets.queue.messages]


def test_a_schedule_stays_while_its_dead_letter_index_is_late(world: World) -> None:
    index = late(world)
    world.pass_by("5m")
    assert not is_gone(world, "once"), "its dead letter can still be redriven"
    index.lasts = False
    [letter] = dead_letters.listed(world.ports, "demo", None, 10, None).items
    assert redriven(world, letter.run_id) == [letter.run_id]


def test_a_schedule_is_removed_once_its_dead_letter_was_redriven(world: World) -> None:
    world.pass_by("5m")
    [letter] = dead_letters.listed(world.ports, "demo", None, 10, None).items
    late(world)
    redriven(world, letter.run_id)
    world.pass_by("2h")
    assert is_gone(world, "once")


def test_a_schedule_is_removed_once_its_dead_letter_was_dropped(world: World) -> None:
    world.pass_by("5m")
    [letter] = dead_letters.listed(world.ports, "demo", None, 10, None).items
    dead_letters.drop(world.ports, "demo", letter.run_id, "tester")
    world.pass_by("2h")
    assert is_gone(world, "once")


def test_a_redrive_between_two_reads_keeps_its_schedule(world: World) -> None:
    """The redrive comes between the read of jobs and the read of dead letters, so neither read finds it."""
    world.pass_by("5m")
    [letter] = dead_letters.listed(world.ports, "demo", None, 10, None).items
    assert world.ports.runs.dead_letters("schedule", full("once"), 1, None).items
    plain = world.tables.query
    world.hints.lose = True

    def query(**arguments: Any) -> dict[str, Any]:
        if ":pk" in arguments["ExpressionAttributeValues"] and "DEAD#" in str(arguments["ExpressionAttributeValues"]):
            world.tables.query = plain
            dead_letters.redrive(world.ports, "demo", letter.run_id)
        return plain(**arguments)

    world.tables.query = query
    world.clock.wait_until(world.clock.now() + 3_600_000)
    world.targets.queue.down = None
    world.tick()
    assert world.tables.query == plain, "the redrive came in between"
    world.hints.lose = False
    world.pass_by("3m")
    assert [run_id for run_id, _ in world.targets.queue.messages] == [letter.run_id]
