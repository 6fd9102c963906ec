"""A `due_time` that is the instant of the request fires at once (T3, L16); one in the past does not."""

from __future__ import annotations

import pytest

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from tests.acceptance.words import dues, on, to_queue, why_schedule
from tests.support.world import World, flights

NOW_FORMS = ["0s", "PT0S", "0m", "the instant"]


def now_as(form: str, world: World) -> str:
    return iso(world.clock.now()) if form == "the instant" else form


@pytest.mark.parametrize("form", NOW_FORMS)
def test_t3_a_schedule_due_now_fires_at_once_and_once(world: World, form: str) -> None:
    now = world.clock.now()
    world.deploy(flights({"once": on({"type": "time", "due_time": now_as(form, world)})}))
    world.settle()
    assert [run.start_requested_at for run in world.runs("once")] == [now]
    world.pass_by("3m")
    assert (len(world.runs("once")), why_schedule(world, "once")["state"]) == (1, "completed")


def test_t3_an_expression_that_begins_now_fires_now_and_goes_on(world: World) -> None:
    rule = {"type": "time", "expression": "@every 10s", "due_time": "0s", "repeats": 3}
    world.deploy(flights({"tick": to_queue(rule)}))
    world.settle()
    world.pass_by("1m")
    assert dues(world) == [0, 10, 20]


def test_t3_the_instant_of_enabling_counts_as_now(world: World) -> None:
    due = iso(world.clock.now() + 5_000)
    world.deploy(flights({"once": on({"type": "time", "due_time": due}, enabled=False)}))
    world.pass_by("5s")
    world.enable("once")
    world.settle()
    assert len(world.runs("once")) == 1


def test_t3_a_time_due_a_millisecond_ago_is_refused(world: World) -> None:
    past = iso(world.clock.now() - 1)
    with pytest.raises(SluiceError, match="expected an instant from now on"):
        world.deploy(flights({"once": on({"type": "time", "due_time": past})}))


@pytest.mark.parametrize("form", NOW_FORMS)
def test_l16_a_message_due_now_is_sent_at_once_and_deleted(world: World, form: str) -> None:
    now = world.clock.now()
    world.deploy(flights({}))
    world.message("ping", workflow="notify", due_time=now_as(form, world))
    world.settle()
    assert [run.start_requested_at for run in world.runs("~ping")] == [now]
    world.pass_by("3m")
    assert len(world.targets.queue.messages) == 1


def test_l16_a_message_due_a_millisecond_ago_is_refused(world: World) -> None:
    world.deploy(flights({}))
    with pytest.raises(SluiceError, match="expected a message that is due at .* or later"):
        world.message("ping", workflow="notify", due_time=iso(world.clock.now() - 1))


@pytest.mark.parametrize("ttl", ["0s", "PT0S"])
def test_t3_a_schedule_life_of_zero_length_is_refused(ttl: str) -> None:
    with pytest.raises(ValueError, match="longer than 0s"):
        NewSchedule.model_validate({"workflow": "w", "trigger": {"type": "time", "expression": "@hourly"}, "ttl": ttl})
