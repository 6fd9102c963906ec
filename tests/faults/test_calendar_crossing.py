"""A holiday calendar is put while a schedule that names it is put, enabled or resumed (T30).

Whichever comes first, the timer has the fires of the new calendar once both requests are answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.instants import iso
from chalicelib.core.rows.schedule import Timer
from chalicelib.flow.fires import calendars
from tests.acceptance.words import time, to_queue
from tests.support.crossings import at_each_call, cross
from tests.support.snapshot import Start
from tests.support.world import World, flights, full

LAST = time("0 17 LW * *", calendar="france")


def build(enabled: bool) -> Callable[[], World]:
    def built() -> World:
        world = World()
        schedules = {"closing": to_queue(LAST, enabled=enabled)}
        world.deploy({**flights(schedules), "calendars": {"france": {"days": ["12-25"]}}})
        return world

    return built


OFF, ON = Start(build(False)), Start(build(True))


def holiday(world: World) -> None:
    """The last day of March, a Tuesday, becomes a holiday."""
    calendars.put(world.ports, "demo.france", {"days": ["2026-03-31"]}, "tester")


def put_again(world: World) -> None:
    world.put("closing", {**to_queue(LAST, enabled=True), "properties": {"new": "1"}})


def drained(world: World) -> None:
    world.pause("closing", "drain")
    world.resume("closing")


FLOWS: dict[str, tuple[Start, Callable[[World], Any]]] = {
    "enable": (OFF, lambda world: world.enable("closing")),
    "put": (ON, put_again),
    "drain and resume": (ON, drained),
}


def next_fire(world: World) -> str:
    timer = world.ports.rows.get(Timer, full("closing"))
    assert timer is not None
    return iso(timer.next["0"])[:10]


@pytest.mark.parametrize("what", FLOWS)
def test_t30_a_calendar_put_meanwhile_reaches_the_timer(what: str) -> None:
    start, flow = FLOWS[what]

    def play(before: int | None) -> int:
        world = start.again()
        calls = cross(world, before, lambda: holiday(world), lambda: flow(world))
        assert next_fire(world) == "2026-03-30"
        return calls

    at_each_call(play, least=5)


@pytest.mark.parametrize("what", FLOWS)
def test_t30_a_request_during_a_put_of_the_calendar_follows_it(what: str) -> None:
    start, flow = FLOWS[what]

    def play(before: int | None) -> int:
        world = start.again()
        calls = cross(world, before, lambda: flow(world), lambda: holiday(world))
        assert next_fire(world) == "2026-03-30"
        return calls

    at_each_call(play, least=3)


def test_t30_a_repeat_moves_the_timers_that_a_death_left(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ON.again()
    with monkeypatch.context() as patch, pytest.raises(ExceptionGroup):
        patch.setattr(calendars, "follow", lambda ports, name: 1 / 0)
        holiday(world)
    assert next_fire(world) == "2026-03-31"
    holiday(world)
    assert next_fire(world) == "2026-03-30"
