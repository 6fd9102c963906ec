"""What is past is refused where it makes no sense, by the request alone: what is stored stays readable, and an app
stays deployable."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, iso
from chalicelib.core.rows.schedule import ScheduleState
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
    assert world.ports.rows.get(ScheduleState, "demo.flights.late").mode == "disabled"


def test_enable_of_a_completed_schedule_says_what_to_do(world: World) -> None:
    world.put("once", once(world, MINUTE))
    world.pass_by("5m")
    assert world.ports.rows.get(ScheduleState, "demo.flights.once").mode == "completed"
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


def short_lived(world: World, first: int, ttl: str, **fields: Any) -> dict[str, Any]:
    """A schedule whose first fire is so long from now, and that ends after ``ttl``."""
    return once(world, first, ttl=ttl, **fields)


def never_fires(world: World, act: Any, field: str = "ttl") -> None:
    before = everything(world)
    with pytest.raises(SluiceError, match="expected an end at or after the first fire at 2026-") as caught:
        act()
    assert (caught.value.field, caught.value.hint) == (field, "extend the ttl, or move the first fire")
    assert everything(world) == before


def test_a_ttl_that_ends_before_the_first_fire_is_refused(world: World) -> None:
    daily = {"type": "time", "expression": "0 5 * * *"}
    absent = {"type": "absent", "of": {"type": "partition", "dataset": "flights"}, "within": "2h"}
    for trigger in (
        {"type": "time", "due_time": "2h"},
        {"type": "time", "expression": "@every 2h"},
        {"type": "time", "expression": "@every 10m", "start": iso(world.clock.now() + 2 * HOUR)},
        {"type": "time", "expression": "@every 10m", "due_time": "2h"},
        daily,
        absent,
        {"type": "all", "triggers": [{"type": "partition", "dataset": "flights"}, daily]},
        {"type": "any", "triggers": [daily, {"type": "time", "due_time": "2h"}]},
    ):
        document = at("", trigger=trigger, ttl="1h")
        never_fires(world, lambda document=document: world.put("short", document))
        never_fires(world, lambda document=document: world.put("short", document | {"enabled": False}))


def test_a_ttl_at_the_first_fire_or_beside_data_is_accepted(world: World) -> None:
    world.put("inclusive", short_lived(world, HOUR, "1h"))
    world.put("now", short_lived(world, 0, "1ms"))
    data = {"type": "partition", "dataset": "flights"}
    world.put("either", at("", trigger={"type": "any", "triggers": [data, once(world, HOUR)["trigger"]]}, ttl="30m"))
    two = {"type": "at_least", "count": 2, "triggers": [data, time_of(5), time_of(50)]}
    world.put("two", at("", trigger=two, ttl="30m"))


def time_of(minutes: int) -> dict[str, Any]:
    return {"type": "time", "due_time": f"{minutes}m"}


def test_a_deployment_and_its_dry_run_refuse_a_short_ttl(world: World) -> None:
    document = flights({"short": short_lived(world, 2 * HOUR, "1h")})
    never_fires(world, lambda: send(world, document), "schedules.short.ttl")
    never_fires(world, lambda: send(world, document, dry_run=True), "schedules.short.ttl")


def test_a_dag_whose_end_is_before_its_first_fire_is_refused(world: World) -> None:
    """A DAG has no ttl, but its trigger may have an end."""
    trigger = {"type": "time", "expression": "@daily", "end": iso(world.clock.now() + HOUR)}
    dag = {"trigger": trigger, "nodes": {"one": {"workflow": "clean"}}, "edges": []}
    with pytest.raises(SluiceError, match="expected an expression that still fires") as caught:
        send(world, flights({}) | {"dags": {"daily": dag}})
    assert caught.value.field == "dags.daily.trigger.expression"


def test_an_enable_refuses_a_ttl_before_the_first_fire(world: World) -> None:
    """The interval of a disabled schedule counts from the enable, which may come too late for its ttl."""
    world.put("late", at("@every 1h", ttl="90m", enabled=False))
    world.clock.pass_by("1h")
    never_fires(world, lambda: world.enable("late"))


def test_an_update_that_keeps_the_trigger_may_end_it_early(world: World) -> None:
    world.put("hourly", at("@every 1h"))
    world.clock.pass_by("50m")
    world.put("hourly", at("@every 1h", ttl="30m"))
    world.put("hourly", at("@every 1h", ttl="5m", on_update="carry"))
    never_fires(world, lambda: world.put("hourly", at("@every 2h", ttl="30m")))


def test_a_stored_ttl_is_not_checked_again(world: World) -> None:
    """After its last fire, the schedule of an app has a ttl before any further fire."""
    document = flights({"daily": at("0 5 * * *", ttl=iso(world.clock.now() + 20 * HOUR))})
    world.deploy(document)
    world.clock.pass_by("19h")
    world.settle()
    document["schedules"]["daily"]["description"] = "a change of something else"
    assert "schedule demo.flights.daily" in world.deploy(document)["replaced"]
