"""W4: DAGs and their surroundings: workflows, schedules, cycles through schedules outside."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.dags import actions as flow
from chalicelib.flow.definitions import store
from chalicelib.flow.schedules import actions
from tests.acceptance.words import on
from tests.acceptance.workflows.test_dags import begin
from tests.support import dags
from tests.support.dags import dag, ends, ran, states
from tests.support.schedules import at, partitions
from tests.support.world import World, full


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def test_w4_a_workflow_that_a_dag_uses_is_not_deleted(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    with pytest.raises(SluiceError, match="used by dag demo.flights.daily"):
        store.delete(world.ports, "workflow", full("w_b"))
    dags.put(world, dag("a -> c", nodes={"c": {"workflow": "clean"}}))
    store.delete(world.ports, "workflow", full("w_b"))


def test_w4_a_deleted_dag_starts_nothing(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world, 1)
    flow.delete(world.ports, full("daily"), "tester")
    world.finish()
    world.settle()
    begin(world, 2)
    assert ran(world) == ["a"]
    assert flow.owned(world.ports, full("daily")) == []
    assert states(world)[0]["a"] == "SUCCEEDED", "its history stays"


def test_w4_a_cycle_through_outside_schedules_is_refused(world: World) -> None:
    """A DAG that a workflow's success starts must not run that workflow, nor may a schedule lead back to it."""
    own = {"trigger": {"type": "program_status", "workflow": "w_b"}, "by": []}
    world.deploy(dags.app(dag("a -> b")))
    with pytest.raises(SluiceError, match=r"without a cycle, got demo\.flights\.w_b -> demo\.flights\.w_b"):
        dags.put(world, dag("a -> b", **own))

    dags.put(world, dag("a -> b", trigger={"type": "program_status", "workflow": "clean"}, by=[]))
    with pytest.raises(SluiceError) as refused:
        world.put("back", on({"type": "program_status", "workflow": "w_b"}, "clean"))
    assert refused.value.code == "cycle"


def test_w4_edges_within_one_dag_run_make_no_cycle_outside(world: World) -> None:
    """A schedule that starts the first workflow of a DAG after the last one closes no cycle: only runs that the DAG
    itself starts continue in it.
    """
    world.deploy(dags.app(dag("a -> b"), {"back": on({"type": "program_status", "workflow": "w_b"}, "w_a")}))
    begin(world)
    ends(world, "a")
    ends(world, "b")
    world.finish()
    world.settle()
    assert [run.workflow for run in world.runs("back")] == [full("w_a")]
    assert len(states(world)) == 1


def test_w4_a_status_may_be_that_of_the_runs_of_one_schedule(world: World) -> None:
    after = {"type": "program_status", "workflow": "clean", "schedule": "nightly"}
    world.deploy(dags.flights({"nightly": at("0 0 * * *"), "daily": partitions(), "then": on(after, "join")}))
    begin(world)
    world.finish()
    world.settle()
    assert world.runs("then") == []
    actions.run_now(world.ports, full("nightly"), {}, "now")
    world.settle()
    world.finish()
    world.settle()
    assert len(world.runs("then")) == 1
    with pytest.raises(SluiceError, match="expected an existing schedule, got 'demo.flights.nightl'"):
        world.put("then", on({**after, "schedule": "nightl"}, "join"))


def test_l17_what_a_dag_refers_to_cannot_be_deleted_with_reason(world: World) -> None:
    load = {"type": "load", "of": {"pool": "small"}, "below": 0.5}
    nodes = {"b": {"workflow": "w_b", "constraints": [load]}}
    world.deploy({**dags.app(dag("a -> b", nodes=nodes)), "pools": {"small": {"size": 4}}})
    for kind, name in (("dataset", "demo.flights"), ("pool", "demo.small"), ("workflow", full("w_a"))):
        with pytest.raises(SluiceError) as refused:
            store.delete(world.ports, kind, name)
        assert refused.value.code == "in_use"
        assert refused.value.message.endswith("used by dag demo.flights.daily")
    with pytest.raises(SluiceError, match=r"used by .*demo\.flights\.daily"):
        store.delete(world.ports, "app", "demo.flights")

    flow.delete(world.ports, full("daily"), "tester")
    for kind, name in (("dataset", "demo.flights"), ("pool", "demo.small"), ("workflow", full("w_a"))):
        store.delete(world.ports, kind, name)


def test_w4_the_key_of_a_dag_cannot_be_a_correlation_key(world: World) -> None:
    """With it, a schedule would count as a node, and could be part of a cycle that no check finds."""
    world.deploy(dags.app(dag("a -> b")))
    again = {"type": "program_status", "workflow": "w_b"}
    with pytest.raises(SluiceError, match="expected names of partition keys, or of fields of a payload, got '~dag'"):
        world.put("again", on(again, "w_b", by=["~dag"]))
    with pytest.raises(SluiceError, match="got '~dag'"):
        dags.put(world, dag("b -> a", trigger=again, by=["~dag"]))
