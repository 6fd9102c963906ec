"""W20, L12: a DAG run that is cancelled ends, with limits or without: no other node starts, under no join rule."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.dags.cancel import cancel
from chalicelib.flow.jobs import dag_cancel
from tests.acceptance.words import day
from tests.acceptance.workflows.test_dag_each import FILES, done, mapped
from tests.acceptance.workflows.test_dag_limits import ONE, active
from tests.support import dags
from tests.support.dags import dag, ends, ran, rerun
from tests.support.world import World

LIMITS: list[dict[str, Any]] = [{}, {"concurrency": ONE}]
RULED = {
    "tidy": {"workflow": "w_tidy", "when": "all_done"},
    "alarm": {"workflow": "w_alarm", "when": "one_failed"},
}
EDGES = ("a -> b", "b -> tidy", "x -> alarm")


@pytest.fixture(params=LIMITS, ids=["plain", "one at a time"])
def limits(request: pytest.FixtureRequest) -> dict[str, Any]:
    fields: dict[str, Any] = request.param
    return fields


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def begin(world: World, *edges: Any, nodes: Any = None, workflow: Any = None, **limits: Any) -> str:
    """A DAG run of the first day. Returns its id."""
    document = dags.app(dag(*(edges or EDGES), nodes=RULED if nodes is None else nodes, **limits))
    for each in document["workflows"].values():
        each |= workflow or {}
    world.deploy(document)
    world.upload(day(1))
    world.settle()
    return the_run(world)


def the_run(world: World) -> str:
    [view] = dags.views(world)
    return str(view["run_id"])


def end(world: World, run_id: str) -> None:
    cancel(world.ports, run_id, "ann")
    world.settle()
    world.pass_by("11m")


def test_w20_a_cancelled_run_starts_no_clean_up(world: World, limits: Any) -> None:
    run_id = begin(world, **limits)
    end(world, run_id)
    assert dags.state(world) == {
        "a": "CANCELLED",
        "b": "ABORTED",
        "tidy": "ABORTED",
        "x": "CANCELLED",
        "alarm": "ABORTED",
    }
    assert (dags.views(world)[0]["state"], sorted(ran(world)), dags.living(world)) == ("FAILED", ["a", "x"], {})
    assert "cancelled by ann" in dags.views(world)[0]["nodes"]["tidy"]["why"]
    cancel(world.ports, run_id, "ann")
    world.settle()
    assert sorted(ran(world)) == ["a", "x"], "a repeat changes nothing"


def test_w20_a_cancelled_run_can_be_cleaned_up(world: World, limits: Any) -> None:
    end(world, begin(world, **limits))
    rerun(world, "only", "tidy")
    world.settle()
    ends(world, "tidy")
    assert dags.state(world)["tidy"] == "SUCCEEDED"
    rerun(world, "all", request="r2")
    world.settle()
    assert sorted(dags.living(world)) == ["a", "x"]


def test_w20_a_cancelled_rerun_ends(world: World, limits: Any) -> None:
    """Its start has ended before the re-run began, also if it has a limit."""
    run_id = begin(world, "a -> b", "b -> tidy", nodes={"tidy": RULED["tidy"]}, **limits)
    for node in ("a", "b", "tidy"):
        ends(world, node)
    rerun(world, "from", "a")
    world.settle()
    end(world, run_id)
    assert dags.state(world) == {"a": "CANCELLED", "b": "ABORTED", "tidy": "ABORTED"}
    assert ran(world) == ["a", "b", "tidy", "a"]
    rerun(world, "from", "a", request="r2")
    world.settle()
    assert list(dags.living(world)) == ["a"]
    end(world, run_id)
    assert dags.living(world) == {}, "the cancel of one round is none of the next one, which has its own"


@pytest.mark.parametrize("what", ["held", "queued", "retried", "met"])
def test_w20_a_cancelled_run_drops_what_waits(world: World, limits: Any, what: str) -> None:
    window = {"type": "time_window", "start": "22:00", "end": "23:00", "on_unmet": "wait"}
    one = {"type": "concurrency", "max": 1, "on_unmet": "wait"}
    constraints = {"held": [window], "queued": [one]}.get(what, [])
    nodes = {"b": {"workflow": "w_a", "constraints": constraints}, "a": {"workflow": "w_a", "constraints": constraints}}
    nodes = {name: {**node, **({"when": "always"} if name == "b" else {})} for name, node in nodes.items()}
    workflow = {"retries": {"attempts": 2, "delay": "30m"}} if what == "retried" else None
    run_id = begin(world, "a -> b", "b -> tidy", nodes={**nodes, "tidy": RULED["tidy"]}, workflow=workflow, **limits)
    if what == "retried":
        ends(world, "a", "FAILED")
    before = len(ran(world))
    end(world, run_id)
    assert set(dags.state(world).values()) <= {"ABORTED", "CANCELLED", "FAILED"}
    assert (len(ran(world)), dags.living(world)) == (before, {})


def test_w19_a_cancelled_run_ends_its_elements(world: World, limits: Any) -> None:
    each = {"of": "scan", "path": "files", "concurrency": 2}
    nodes = {"tidy": {"workflow": "w_tidy", "when": "all_done"}}
    world.deploy(dags.app({**mapped("scan -> load", "load -> tidy", nodes=nodes, each=each), **limits}))
    world.upload(day(1))
    world.settle()
    ends(world, "scan", result=FILES)
    done(world, 0)
    end(world, the_run(world))
    assert dags.state(world) == {"scan": "SUCCEEDED", "load": "CANCELLED", "tidy": "ABORTED"}
    assert dags.living(world) == {}


def test_w20_only_a_run_that_is_active_is_cancelled(world: World, limits: Any) -> None:
    run_id = begin(world, "a -> b", nodes={}, **limits)
    ends(world, "a", "FAILED")
    with pytest.raises(SluiceError, match=r"has not ended, got one that is FAILED"):
        cancel(world.ports, run_id, "ann")
    assert dags.state(world) == {"a": "FAILED", "b": "BLOCKED"}


def test_w20_a_cancelled_node_lets_the_clean_up_run(world: World, limits: Any) -> None:
    """The other cancel: that of a node's run. Then the join rules decide."""
    begin(world, **limits)
    for node in ("a", "x"):
        cancel(world.ports, dags.views(world)[0]["nodes"][node]["run_id"], "ann")
    world.settle()
    world.pass_by("11m")
    assert sorted(dags.living(world)) == ["alarm", "tidy"]
    ends(world, "alarm")
    ends(world, "tidy")
    assert dags.views(world)[0]["state"] == "FAILED"
    assert not limits.get("concurrency") or active(world) == 0


@pytest.mark.parametrize("next_began", [False, True])
def test_w20_a_node_that_fails_during_a_cancel_is_not_retried(
    world: World, monkeypatch: pytest.MonkeyPatch, next_began: bool
) -> None:
    """The states of the nodes are read, then an attempt fails, and its retry waits or has begun."""
    run_id = begin(world, workflow={"retries": {"attempts": 3, "delay": "1m"}})
    read = dag_cancel.node_states

    def crossed(*given: Any) -> Any:
        found = read(*given)
        ends(world, "a", "FAILED")
        if next_began:
            world.pass_by("2m")
        return found

    monkeypatch.setattr(dag_cancel, "node_states", crossed)
    cancel(world.ports, run_id, "ann")
    monkeypatch.undo()
    world.settle()
    world.pass_by("11m")
    assert not active(world)
    attempts = [run for run in world.targets.emr.runs.values() if run.request["dag"]["node"] == "a"]
    assert len(attempts) == 1 + next_began
    world.pass_by("1h")
    assert len([run for run in world.targets.emr.runs.values() if run.request["dag"]["node"] == "a"]) == len(attempts)
