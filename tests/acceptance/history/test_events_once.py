"""The events of a run have their type and payload, and each is shown once, however many leaves count it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.words import all_of, day, event, on, partition, quiet, size
from tests.support.answers import explain, views
from tests.support.world import World, flights

CLOSED = "orders.closed"


def reported(world: World, number: int = 0) -> list[dict[str, Any]]:
    return views.events_view(world.ports, world.runs("a")[number])


def made(schedule: dict[str, Any]) -> World:
    world = World()
    world.deploy(flights({"a": schedule}))
    return world


def test_a_custom_event_is_shown_with_its_type_and_payload() -> None:
    world = made(on(event(CLOSED)))
    world.post(CLOSED, "o-7", order=7, lines=[1, None])
    world.settle()
    [shown] = reported(world)
    assert (shown["kind"], shown["type"], shown["payload"]) == ("event", CLOSED, {"order": 7, "lines": [1, None]})


def test_an_event_that_two_leaves_count_is_shown_once() -> None:
    both = all_of(event(CLOSED, pattern={"order": [{"numeric": [">", 0]}]}), event(CLOSED))
    world = made(on(all_of(both, event("go"))))
    world.post(CLOSED, "o-7", order=7)
    world.settle()
    [job] = world.jobs("a")
    waits = explain.why_job(world.ports, job)
    assert waits["arrived"] == [f"1 event {CLOSED} came at 2026-03-02T12:00:00.000Z"]
    assert waits["why"].count(CLOSED) == 1
    world.post("go", "g")
    world.settle()
    assert sorted(each["type"] for each in reported(world)) == ["go", CLOSED]
    assert world.runs("a")[0].fired_by.text.count(CLOSED) == 1


@pytest.mark.parametrize("trigger", [partition(count=2), all_of(partition(count=2), quiet(partition(), "1m"))])
def test_an_object_that_is_put_twice_is_one_event(trigger: dict[str, Any]) -> None:
    world = made(on(trigger))
    for number in (1, 1, 2, 2):
        world.upload(day(number))
    world.settle()
    world.pass_by("2m")
    assert sorted(each["partition"]["day"] for each in reported(world)) == ["1", "2"]


def test_a_delivery_that_repeats_is_one_event_of_its_run() -> None:
    world = made(on(all_of(event(CLOSED), size("1KB"))))
    for _ in range(3):
        world.post(CLOSED, "o-7", order=7)
        world.upload(day(1, name="a.csv"), size=2_000, etag="e")
    world.settle()
    assert sorted(each["kind"] for each in reported(world)) == ["event", "size"]
