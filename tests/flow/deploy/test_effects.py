"""A deployment says, before and after it acts, what becomes of the triggers of the schedules that it replaces (L6)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.flow.deploy import deploy
from tests.acceptance.words import on, partition, time, to_queue
from tests.support.world import World, flights

TICK = to_queue(time("@every 10m"))
PAIR = on(partition(count=2))
ONCE = to_queue(time("R1/PT10S"))
DROP = {"on_update": "drop"}
URGENT = {"priority": 9}


def said(world: World, document: dict[str, Any]) -> dict[str, str]:
    """The codes of a dry run, by the schedules' short names. The deployment itself must say the same."""
    app = App.model_validate(document)
    _, _, plan = deploy.dry_run(world.ports, "demo", "flights", app)
    _, done = deploy.deploy_and_say(world.ports, "demo", "flights", app, "tester")
    assert plan == done
    assert all(effect["text"] for effect in plan.values())
    return {name.removeprefix("schedule demo.flights."): effect["code"] for name, effect in plan.items()}


@pytest.mark.parametrize(
    ("before", "change", "code"),
    [
        (TICK, {"description": "another"}, "described"),
        (TICK, URGENT | DROP, "goes_on"),
        (TICK, URGENT, "carried"),
        (TICK, {"trigger": time("@every 9m")}, "begins_again"),
        (TICK, {"enabled": False}, "stops"),
        (TICK | {"enabled": False}, {"enabled": True}, "begins"),
        (TICK | {"enabled": False}, {"enabled": False, **URGENT}, "idle"),
        (PAIR, URGENT | DROP, "goes_on"),
        (PAIR, URGENT, "carried"),
        (PAIR, {"by": ["day"]}, "begins_again"),
        (ONCE, URGENT, "ended"),
        (ONCE, {"description": "another"}, "ended"),
        (ONCE, {"trigger": time("R2/PT10S")}, "begins_again"),
    ],
)
def test_l6_a_deployment_says_what_becomes_of_each_trigger(
    world: World, before: dict[str, Any], change: dict[str, Any], code: str
) -> None:
    world.deploy(flights({"one": before, "other": TICK}))
    world.pass_by("5m")
    assert said(world, flights({"one": before | change, "other": TICK})) == {"one": code}
    assert said(world, flights({"one": before | change, "other": TICK})) == {}


def test_l6_a_deployment_says_what_has_ended(world: World) -> None:
    document = flights({"once": ONCE | {"when_done": "delete"}})
    world.deploy(document)
    world.pass_by("5m")
    assert said(world, document) == {"once": "ended"}


def test_l6_a_prepared_last_fire_goes_on(world: World) -> None:
    """The schedule is completed as soon as its last fire is prepared."""
    late = to_queue(time("R1/PT1M"))
    world.deploy(flights({"once": late}))
    world.pass_by("10s")
    assert said(world, flights({"once": late | URGENT})) == {"once": "ended"}, "its last fire is kept"
    world.pass_by("3m")
    assert len(world.runs("once")) == 1


def test_w4_a_deployment_says_what_becomes_of_the_start_of_a_dag(world: World) -> None:
    both = {name: {"workflow": "clean"} for name in ("a", "b")}
    dag = {"enabled": True, "trigger": time("@every 10m"), "nodes": both}
    document = flights({}) | {"dags": {"daily": dag}}
    world.deploy(document)
    changed = dag | {"trigger": time("@every 9m")}
    assert set(said(world, document | {"dags": {"daily": changed}}).values()) == {"begins_again"}
    more = changed | {"nodes": {"a": {"workflow": "clean"}}}
    assert set(said(world, document | {"dags": {"daily": more}}).values()) <= {"carried", "described"}
