"""A schedule that has ended and deleted itself is not run again by the same document of its app (L8, L10)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.core.instants import MINUTE, iso
from chalicelib.flow.deploy import deploy
from tests.acceptance.words import dues, is_gone, kinds, time, to_queue
from tests.support.clock import NOON
from tests.support.world import World, flights

DELETED = {"when_done": "delete"}
ENDED = "schedule demo.flights.tick"
ENDINGS: dict[str, dict[str, Any]] = {
    "a due time": to_queue({"type": "time", "due_time": "10s"}, **DELETED),
    "an instant": to_queue({"type": "time", "due_time": iso(NOON + MINUTE)}, **DELETED),
    "repeats": to_queue(time("R2/PT10S"), **DELETED),
    "a ttl": to_queue(time("@every 30s"), ttl="80s"),
    "an end": to_queue(time("@every 30s", end="80s"), **DELETED),
}


def app(tick: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return flights({"tick": tick}) | fields


@pytest.mark.parametrize("ending", ENDINGS)
def test_l8_an_unchanged_deployment_runs_nothing_twice(world: World, ending: str) -> None:
    world.deploy(app(ENDINGS[ending]))
    world.pass_by("5m")
    ran = dues(world)
    assert (bool(ran), is_gone(world)) == (True, True)

    for number in range(3):
        report = world.deploy(app(ENDINGS[ending], description=f"deployed {number + 2} times"))
        assert (ENDED in report["kept"], report["created"]) == (True, [])
        world.deploy(app(ENDINGS[ending] | {"description": "the same"}))
        world.pass_by("5m")
    assert (dues(world), kinds(world, "tick"), is_gone(world)) == (ran, [], True)


@pytest.mark.parametrize(
    "change", [{"properties": {"number": 2}}, {"trigger": {"type": "time", "due_time": "20s"}}, {"priority": 7}]
)
def test_l8_another_document_is_deployed_again(world: World, change: dict[str, Any]) -> None:
    once = ENDINGS["a due time"]
    world.deploy(app(once))
    world.pass_by("5m")
    assert ENDED in world.deploy(app(once | change))["created"]
    world.pass_by("5m")
    assert len(dues(world)) == 2
    assert ENDED in world.deploy(app(once | change))["kept"]


def test_l8_after_its_app_was_deleted_a_schedule_runs_again(world: World) -> None:
    once = ENDINGS["a due time"]
    for number in range(2):
        for _ in range(2):
            world.deploy(app(once))
            world.pass_by("5m")
            assert len(dues(world)) == number + 1
        deploy.delete_app(world.ports, "demo.flights", "tester")
        world.pass_by("1m")


def test_l8_a_schedule_that_was_left_out_runs_again(world: World) -> None:
    once = ENDINGS["a due time"]
    for number in range(2):
        world.deploy(app(once))
        world.pass_by("5m")
        world.deploy(flights({}))
        world.pass_by("1m")
        assert len(dues(world)) == number + 1
    deploy.delete_app(world.ports, "demo.flights", "tester")
    world.deploy(flights({}))
    world.deploy(app(once))
    world.pass_by("5m")
    assert len(dues(world)) == 3


def test_l8_a_schedule_that_a_person_deleted_is_created_again(world: World) -> None:
    once = to_queue({"type": "time", "due_time": "10m"}, **DELETED)
    world.deploy(app(once))
    world.delete("tick")
    assert ENDED in world.deploy(app(once))["created"]


@pytest.mark.parametrize("deployed_before", [False, True])
def test_l8_a_deployment_that_broke_off_runs_nothing_twice(
    world: World, deployed_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has created the schedule, but is not recorded when the schedule ends."""
    if deployed_before:
        world.deploy(app(ENDINGS["a due time"]))
        world.pass_by("5m")
        world.deploy(flights({}))
        world.pass_by("5m")
    with monkeypatch.context() as patch:
        patch.setattr(deploy, "_record_deployment", lambda *_: None)
        world.deploy(app(ENDINGS["a due time"]))
    world.pass_by("5m")
    ran = dues(world)
    for _ in range(2):
        assert ENDED in world.deploy(app(ENDINGS["a due time"]))["kept"]
        world.pass_by("5m")
    assert dues(world) == ran


@pytest.mark.parametrize("update_schedules", [False, True])
def test_l8_a_record_that_is_gone_runs_nothing_twice(world: World, update_schedules: bool) -> None:
    world.deploy(app(ENDINGS["a due time"]))
    world.pass_by("5m")
    world.payloads.deployments.clear()
    document = App.model_validate(app(ENDINGS["a due time"], owner="ann"))
    report = deploy.deploy(world.ports, "demo", "flights", document, "bob", update_schedules=update_schedules)
    assert ENDED in report["kept"]


def test_l16_a_put_of_a_schedule_or_message_is_meant_anew(world: World) -> None:
    once = ENDINGS["a due time"]
    world.deploy(app(once))
    for number in range(2):
        world.message("m", due_time="10s", workflow="notify")
        world.pass_by("5m")
        assert len(world.runs("demo.flights.~m")) == number + 1
        world.put("tick", once)
        world.pass_by("5m")
        assert len(dues(world)) == number + 2
