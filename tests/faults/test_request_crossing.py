"""Two requests with one `Idempotency-Key` that arrive at once, one of them after the schedule was replaced: one job."""

from __future__ import annotations

from contextlib import suppress

import pytest

from chalicelib.core.errors import SluiceError
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.faults.meetings.side_by_side import every_order, side_by_side
from tests.support.schedules import partitions
from tests.support.snapshot import Start
from tests.support.world import World, flights


@pytest.mark.parametrize("replaced", ["updated", "deleted and created"])
def test_two_requests_with_one_key_make_one_job_in_every_order(replaced: str) -> None:
    start = Start(_deployed)
    played = list(every_order(lambda calls: _play(start.again(), calls, replaced), stride=2))
    assert len(played) > 10


def _deployed() -> World:
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(2)}))
    return world


def _play(world: World, calls: tuple[int, int], replaced: str) -> tuple[bool, bool]:
    answers: list[str] = []

    def asks() -> None:
        with suppress(SluiceError):  # there is no schedule between the delete and the new one
            answers.append(world.run_now("daily", "r1"))

    def replaces_and_asks() -> None:
        _replace(world, replaced)
        answers.append(world.run_now("daily", "r1"))

    left = side_by_side(world, asks, replaces_and_asks, calls)
    world.settle()
    invariants.check_awake(world)
    assert len(set(answers)) == 1, f"switched after {calls} calls: {answers}"
    made = len(world.runs("daily")) + len(world.jobs("daily")) + len(world.records("daily"))
    assert made == 1, f"switched after {calls} calls: {made} jobs of one request"
    return left


def _replace(world: World, how: str) -> None:
    if how == "updated":
        world.put("daily", partitions(3))
        return
    world.delete("daily")
    world.put("daily", partitions(2))
