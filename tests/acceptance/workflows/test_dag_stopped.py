"""L24, W20: what a DAG of another team waits for is stopped. ``why`` of the DAG says so, with the command that ends the
stop."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.flow.views import explain_dag
from tests.support.dags import dag
from tests.support.world import EMR, World, flights

GRANTS = {"grants": [{"to": "team", "follow": ["flights.clean"], "datasets": ["flights"]}]}
AFTER = {"type": "program_status", "workflow": "demo.flights.clean"}
DATA = {"type": "partition", "dataset": "demo.flights"}
FRESH = {"type": "fresh", "workflows": ["demo.flights.clean"], "within": "1h", "on_unmet": "wait"}
SAID = "has been stopped since 2026-03-02T12:00:00.000Z (sluice start {place} ends the stop)"


@pytest.fixture
def world() -> World:
    world = World(wake_shards=1, history_shards=1, authorization="enforce")
    world.deploy(
        flights({"daily": {"workflow": "clean", "trigger": {"type": "event", "event": "go"}, "enabled": True}})
    )
    world.grant("demo", GRANTS)
    return world


def of_team(world: World, trigger: Any, constraints: Any = (), namespace: str = "team") -> None:
    nodes = {"a": {"workflow": "load", "constraints": list(constraints)}, "b": {"workflow": "load"}}
    document = dag("a -> b", nodes=nodes, trigger=trigger, by=[])
    world.deploy({"workflows": {"load": {"target": EMR}}, "dags": {"nightly": document}}, namespace, "own")


def why(world: World, name: str = "team.own.nightly") -> str:
    return str(explain_dag.why_dag(world.ports, name)["why"].text)


@pytest.mark.parametrize("place", ["demo", "demo.flights"])
@pytest.mark.parametrize("trigger", [AFTER, DATA], ids=["a workflow", "a dataset"])
def test_l24_why_of_a_dag_says_what_is_stopped(world: World, trigger: Any, place: str) -> None:
    of_team(world, trigger)
    before = why(world)
    assert "stopped" not in before
    world.stop(place)
    if trigger is DATA and place != "demo":
        assert why(world) == before, "nothing shows that the data comes from this app"
        return
    what = "demo.flights.clean" if trigger is AFTER else "demo.flights"
    assert f"{what} is awaited, and {place} {SAID.format(place=place)}" in why(world)
    assert "repair" not in why(world), "why it was stopped is for its own team"
    world.grant("demo", {"grants": []})
    assert "stopped" not in why(world), "a team without the grant learns nothing"
    world.grant("demo", GRANTS)
    world.start(place)
    assert why(world) == before


def test_l24_why_goes_by_the_schedule_that_runs_it(world: World) -> None:
    """The workflow lies in one app, and a schedule of another app runs it."""
    runs = {"workflow": "demo.flights.clean", "trigger": {"type": "event", "event": "run"}, "enabled": True}
    world.deploy({"schedules": {"runs": runs}}, "demo", "other")
    of_team(world, AFTER)
    world.post("run")
    world.settle()
    world.finish()
    world.settle()
    world.stop("demo.flights")
    assert "stopped" not in why(world)
    world.stop("demo.other")
    assert "sluice start demo.other ends the stop" in why(world)


def test_l24_why_says_what_a_waiting_node_needs(world: World) -> None:
    """The node has a ``fresh`` constraint on a workflow of the stopped team."""
    of_team(world, {"type": "event", "event": "team.begin"}, [FRESH])
    world.stop()
    assert "sluice start" not in why(world), "no node waits yet"
    world.run_now("team.own.nightly~")
    world.settle()
    said = why(world)
    assert "node a is waiting" in said
    assert f"demo.flights.clean is awaited, and demo {SAID.format(place='demo')}" in said


def test_l24_a_stop_of_ones_own_is_told_once(world: World) -> None:
    of_team(world, AFTER, namespace="demo")
    world.stop("demo.flights")
    assert "demo.flights.clean is awaited, and demo.flights has been stopped" in why(world, "demo.own.nightly")
    assert "by ann: repair (sluice start demo.flights ends the stop)" in why(world, "demo.own.nightly")
    world.stop("demo")
    assert why(world, "demo.own.nightly").count("demo has been stopped since") == 1
