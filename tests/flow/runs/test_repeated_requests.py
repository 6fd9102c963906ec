"""Requests with one `Idempotency-Key` create one job (L11, W15), also when the schedule is replaced or deleted in
between.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR
from chalicelib.flow import requests
from chalicelib.flow.runs import actions
from tests.acceptance.words import kinds, on, partition, states
from tests.support.answers import read
from tests.support.world import World, flights

Make = Callable[..., World]


@pytest.fixture
def world(make_world: Make) -> World:
    made = make_world(wake_shards=1, history_shards=1)
    made.deploy(flights({"clean": on(partition(count=2))}))
    return made


def test_a_key_names_one_run_also_after_a_schedule_was_replaced(world: World) -> None:
    first = world.run_now("clean", request="r1")
    world.settle()
    world.put("clean", on(partition(count=3)))
    assert world.run_now("clean", request="r1") == first
    world.settle()
    assert [run.run_id for run in world.runs("clean")] == [first]


def test_a_job_dropped_by_a_replacement_is_not_remade_by_its_key(world: World) -> None:
    first = world.run_now("clean", request="r1", at=world.clock.now() + HOUR)
    world.put("clean", on(partition(count=3)))
    assert world.run_now("clean", request="r1", at=world.clock.now() + HOUR) == first
    assert read(requests.became(world.ports, first)) == {
        "job_id": first,
        "state": "DROPPED",
        "reason": "the schedule was replaced or enabled again",
        "code": "schedule_replaced",
    }
    world.pass_by("61m")
    assert (world.runs("clean"), kinds(world, "clean")) == ([], ["DROPPED"])


def test_a_key_names_one_run_also_after_delete_and_recreate(world: World) -> None:
    first = world.run_now("clean", request="r1")
    world.settle()
    world.delete("clean")
    assert world.run_now("clean", request="r1") == first, "nothing is started, so no schedule is needed"
    with pytest.raises(SluiceError, match="no schedule named"):
        world.run_now("clean", request="r2")
    world.put("clean", on(partition(count=2)))
    assert world.run_now("clean", request="r1") == first
    world.settle()
    assert len(world.runs("clean")) == 1


def test_a_key_of_another_schedule_is_another_request(world: World) -> None:
    world.put("other", on(partition(count=2), "join"))
    assert world.run_now("clean", request="r1") != world.run_now("other", request="r1")


def test_a_repeated_request_wakes_a_job_whose_hint_was_lost(world: World) -> None:
    world.hints.lose = True
    first = world.run_now("clean", request="r1")
    world.hints.lose = False
    assert world.run_now("clean", request="r1") == first
    world.settle()
    assert states(world, "clean") == ["STARTING"]


def test_a_rerun_is_one_job_per_key_also_after_a_replacement(world: World) -> None:
    origin = world.run_now("clean", request="r1")
    world.settle()
    world.finish()
    world.settle()
    again = actions.rerun(world.ports, origin, "r1")
    assert again != origin
    world.settle()
    world.put("clean", on(partition(count=3)))
    assert actions.rerun(world.ports, origin, "r1") == again
    world.settle()
    assert len(world.runs("clean")) == 2


def test_the_state_of_a_request_is_answered_at_every_stage(world: World) -> None:
    waiting = world.run_now("clean", request="r1", at=world.clock.now() + HOUR)
    answer = read(requests.became(world.ports, waiting))
    assert (answer["state"], answer["reason"]) == ("PENDING_CONSTRAINTS", "due at 2026-03-02T13:00:00.000Z")
    world.pass_by("1h")
    assert requests.became(world.ports, waiting)["state"] == "STARTING"
    world.finish()
    assert requests.became(world.ports, waiting)["state"] == "SUCCEEDED"
