"""What is past is refused where it makes no sense, by the request alone: what is stored stays readable, and an app
stays deployable."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, iso
from chalicelib.core.schedules import past
from tests.flow.stored import everything, send
from tests.support.schedules import at
from tests.support.world import World, flights


@pytest.fixture
def world() -> World:
    world = World()
    world.deploy(flights({}))
    return world


def once(world: World, span: int, **fields: Any) -> dict[str, Any]:
    """A schedule that fires once, so long from now."""
    return at("", trigger={"type": "time", "due_time": iso(world.clock.now() + span)}) | fields


def bounded(world: World, span: int, **fields: Any) -> dict[str, Any]:
    """A schedule of every ten minutes that ends so long from now."""
    trigger = {"type": "time", "expression": "@every 10m", "end": iso(world.clock.now() + span)}
    return at("", trigger=trigger) | fields


def refused(world: World, field: str, act: Any) -> None:
    before = everything(world)
    with pytest.raises(SluiceError, match=r"expected an instant from now on \(it is") as caught:
        act()
    assert (caught.value.field, bool(caught.value.hint)) == (field, True)
    assert everything(world) == before


def test_a_schedule_that_never_fires_is_not_put(world: World) -> None:
    refused(world, "trigger.due_time", lambda: world.put("late", once(world, -1)))
    refused(world, "trigger.end", lambda: world.put("late", bounded(world, -1)))
    refused(world, "ttl", lambda: world.put("late", at("@daily", ttl=iso(world.clock.now() - 1))))
    nested = once(world, -1)["trigger"]
    either = at("", trigger={"type": "any", "triggers": [{"type": "time", "expression": "@daily"}, nested]})
    refused(world, "trigger.triggers.1.due_time", lambda: world.put("late", either))


def test_an_end_before_the_next_fire_is_refused(world: World) -> None:
    trigger = {"type": "time", "expression": "@daily", "end": iso(world.clock.now() + MINUTE)}
    with pytest.raises(SluiceError, match="expected an expression that still fires") as caught:
        world.put("late", at("", trigger=trigger))
    assert caught.value.field == "trigger.expression"


def test_a_disabled_schedule_that_never_fires_is_not_put(world: World) -> None:
    refused(world, "trigger.due_time", lambda: world.put("late", once(world, -1, enabled=False)))


def test_now_and_later_are_not_past(world: World) -> None:
    world.put("now", once(world, 0))
    world.put("later", once(world, 1))
    world.put("span", at("", trigger={"type": "time", "due_time": "0s"}))
    world.put("ends", bounded(world, 2 * DAY, ttl="1d"))
    # A due time of an expression is only its first fire: the others follow from there.
    first = {"type": "time", "expression": "@every 1h", "due_time": iso(world.clock.now() - DAY)}
    world.put("anchored", at("", trigger=first))


def test_a_schedule_that_has_become_past_is_not_enabled(world: World) -> None:
    world.put("late", once(world, HOUR, enabled=False))
    world.clock.pass_by("2h")
    refused(world, "trigger.due_time", lambda: world.enable("late"))
    assert world.ports.catalog.schedule_state("demo.flights.late").mode == "disabled"


def test_enable_of_a_completed_schedule_says_what_to_do(world: World) -> None:
    world.put("once", once(world, MINUTE))
    world.pass_by("5m")
    assert world.ports.catalog.schedule_state("demo.flights.once").mode == "completed"
    with pytest.raises(SluiceError) as error:
        world.enable("once")
    assert error.value.hint == past.COMPLETED


def test_an_app_whose_one_off_is_over_stays_deployable(world: World) -> None:
    document = flights({"once": once(world, HOUR), "off": bounded(world, HOUR, enabled=False)})
    world.deploy(document)
    world.clock.pass_by("2d")
    world.settle()
    assert "schedule demo.flights.once" in world.deploy(document)["kept"]
    document["schedules"]["once"]["description"] = "a change of something else"
    assert "schedule demo.flights.once" in world.deploy(document)["replaced"]
    document["schedules"]["off"]["enabled"] = True
    refused(world, "schedules.off.trigger.end", lambda: send(world, document))


def test_a_repeated_put_of_what_has_fired_is_no_error(world: World) -> None:
    """A request is repeated after a lost answer."""
    document = once(world, MINUTE)
    world.put("once", document)
    world.clock.pass_by("5m")
    world.put("once", document)


def test_a_dag_that_never_starts_is_refused(world: World) -> None:
    dag = {"trigger": once(world, -1)["trigger"], "nodes": {"one": {"workflow": "clean"}}, "edges": []}
    refused(world, "dags.daily.trigger.due_time", lambda: send(world, flights({}) | {"dags": {"daily": dag}}))


def test_a_run_in_the_past_is_refused_and_its_repeat_is_not(world: World) -> None:
    world.put("nightly", at("0 5 * * *"))
    now = world.clock.now()
    refused(world, "at", lambda: world.run_now("nightly", "r1", now - HOUR))
    assert world.run_now("nightly", "slow", now - 1000)  # the request took a second
    first = world.run_now("nightly", "r2", now + HOUR)
    world.clock.pass_by("3h")
    assert world.run_now("nightly", "r2", now + HOUR) == first
