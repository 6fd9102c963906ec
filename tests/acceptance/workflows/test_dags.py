"""W4: DAGs. Named graphs of workflows, run once per start, in order, and again in part."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.dags import actions as flow
from chalicelib.flow.schedules import actions, bulk, pauses
from tests.acceptance.words import day, doze
from tests.support import dags
from tests.support.dags import DIAMOND, dag, edge, ends, living, ran, rerun, state, states, views
from tests.support.schedules import partitions
from tests.support.world import EMR, World, full


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def begin(world: World, number: int = 1) -> None:
    world.upload(day(number))
    world.settle()


def test_w4_each_node_runs_once_when_all_its_upstreams_succeeded(world: World) -> None:
    world.deploy(dags.app(dag(*DIAMOND)))
    begin(world)
    assert state(world) == {"a": "STARTING", "b": "PENDING", "c": "PENDING", "d": "PENDING"}
    ends(world, "a")
    assert set(living(world)) == {"b", "c"}
    ends(world, "b")
    assert state(world) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "STARTING", "d": "WAITING"}
    assert views(world)[0]["nodes"]["d"]["why"] == "waits for c"
    ends(world, "c")
    ends(world, "d")

    [view] = views(world)
    assert (view["state"], view["partition"]) == ("SUCCEEDED", {"year": "2013", "month": "01", "day": "1"})
    assert sorted(ran(world)) == ["a", "b", "c", "d"]


def test_w4_a_node_reacts_only_to_runs_of_its_own_dag_run(world: World) -> None:
    """Two days are active side by side, and a schedule outside runs the same workflow."""
    world.deploy(dags.app(dag("a -> c", "b -> c"), {"other": partitions(1, "w_a", "weather")}))
    begin(world, 1)
    begin(world, 2)
    first, second = sorted(run.id for run in world.targets.emr.runs.values() if run.request["schedule"].endswith("~a"))
    one, two = sorted(run.id for run in world.targets.emr.runs.values() if run.request["schedule"].endswith("~b"))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    [outside] = [run.id for run in world.targets.emr.runs.values() if run.request["schedule"] == full("other")]

    for run_id in (first, two, outside):
        world.emr_says(run_id, "SUCCESS")
        world.settle()
    assert "c" not in ran(world), "a of the one day and b of the other are no match"

    for run_id in (second, one):
        world.emr_says(run_id, "SUCCESS")
        world.settle()
    answer = [run.request for run in world.targets.emr.runs.values() if run.request["schedule"].endswith("~c")]
    days = [{event["partition"]["day"] for event in context["events"]} for context in answer]
    assert sorted(days, key=str) == [{"1"}, {"2"}]


def test_w4_one_workflow_may_be_several_nodes_with_properties(world: World) -> None:
    nodes = {name: {"workflow": "clean", "properties": {"part": name}} for name in ("a", "b")}
    world.deploy(dags.app(dag("a -> b", nodes=nodes)))
    begin(world)
    ends(world, "a")
    ends(world, "b")
    assert [run.request["properties"] for run in world.targets.emr.runs.values()] == [{"part": "a"}, {"part": "b"}]


def test_w4_nodes_after_a_failed_node_do_not_run_and_say_so(world: World) -> None:
    world.deploy(dags.app(dag(*DIAMOND)))
    begin(world)
    ends(world, "a")
    ends(world, "b", "FAILED", "disk full")
    ends(world, "c")

    [view] = views(world)
    assert (view["state"], view["nodes"]["b"]["why"]) == ("FAILED", "disk full")
    blocked = {"state": "BLOCKED", "why": "needs b COMPLETED, which is FAILED", "code": None}
    assert view["nodes"]["d"] == {**blocked, "run_id": None, "started_at": None, "ended_at": None}
    assert "d" not in ran(world)


def test_w4_an_edge_may_wait_for_a_failure(world: World) -> None:
    """The clean-up after a failure is skipped when all nodes succeed."""
    world.deploy(dags.app(dag("a -> b", edge("a -> tidy", on=["FAILED", "KILLED"]))))
    begin(world, 1)
    ends(world, "a", "FAILED")
    assert state(world) == {"a": "FAILED", "b": "BLOCKED", "tidy": "STARTING"}
    ends(world, "tidy")
    world.clock.pass_by("1s")

    begin(world, 2)
    ends(world, "a")
    ends(world, "b")
    assert states(world)[1] == {"a": "SUCCEEDED", "b": "SUCCEEDED", "tidy": "SKIPPED"}
    assert [view["state"] for view in views(world)] == ["FAILED", "SUCCEEDED"]


def test_w4_a_success_that_is_too_old_for_an_edge_does_not_count(world: World) -> None:
    world.deploy(dags.app(dag(edge("a -> c", within="2h"), "b -> c")))
    begin(world)
    ends(world, "a")
    doze(world, "3h")
    ends(world, "b")

    [view] = views(world)
    assert view["nodes"]["c"]["state"] == "ABORTED"
    assert "demo.flights.w_a succeeded within 2h, else abort" in view["nodes"]["c"]["why"]

    rerun(world, "from", "a")
    world.settle()
    ends(world, "a")
    ends(world, "c")
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w4_a_run_goes_on_from_the_node_that_failed(world: World) -> None:
    world.deploy(dags.app(dag(*DIAMOND)))
    begin(world)
    ends(world, "a")
    ends(world, "b", "FAILED")
    ends(world, "c")

    rerun(world, "from", "b")
    rerun(world, "from", "b")  # the same request again is the same re-run
    world.settle()
    assert state(world) == {"a": "SUCCEEDED", "b": "STARTING", "c": "SUCCEEDED", "d": "WAITING"}
    ends(world, "b")
    ends(world, "d")

    [view] = views(world)
    assert (view["state"], [rerun["round"] for rerun in view["reruns"]]) == ("SUCCEEDED", [2])
    assert sorted(ran(world)) == ["a", "b", "b", "c", "d"]


def test_w4_one_node_or_all_nodes_can_be_rerun(world: World) -> None:
    world.deploy(dags.app(dag("a -> b", "b -> c")))
    begin(world)
    for node in ("a", "b", "c"):
        ends(world, node)

    rerun(world, "only", "b", "r1")
    world.settle()
    ends(world, "b")
    assert ran(world)[3:] == ["b"], "nothing follows a node that runs again alone"
    assert state(world) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "SUCCEEDED"}

    rerun(world, "all", None, "r2")
    world.settle()
    for node in ("a", "b", "c"):
        ends(world, node)
    assert ran(world)[4:] == ["a", "b", "c"]
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w4_nodes_behind_a_node_rerun_alone_are_rerun_too(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    ends(world, "a", "FAILED")
    rerun(world, "only", "a", "r1")
    world.settle()
    ends(world, "a")
    [view] = views(world)
    assert view["nodes"]["b"]["why"] == "an upstream node has run again alone since; run the DAG again from this node"

    rerun(world, "from", "b", "r2")
    world.settle()
    ends(world, "b")
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w4_no_rerun_while_active_or_from_a_node_that_cannot_run(world: World) -> None:
    world.deploy(dags.app(dag("a -> b", "b -> c")))
    begin(world)
    with pytest.raises(
        SluiceError, match="expected a DAG run without active nodes, got one where a is STARTING, b is PENDING"
    ):
        rerun(world, "all")
    ends(world, "a", "FAILED")
    with pytest.raises(SluiceError, match="got b: it needs a COMPLETED, which is FAILED"):
        rerun(world, "from", "b")
    with pytest.raises(SluiceError, match="expected a node of the graph that this run began with"):
        rerun(world, "only", "x")


def test_w4_a_dag_run_keeps_the_graph_that_it_began_with(world: World) -> None:
    world.deploy(dags.app(dag("a -> b", "b -> c"), w_z={"target": EMR}))
    begin(world, 1)
    changed = dag("a -> z", "b -> c", nodes={"z": {"workflow": "w_z"}})
    assert dags.put(world, changed) == "replaced"
    world.clock.pass_by("1s")
    begin(world, 2)
    assert [set(nodes) for nodes in states(world)] == [{"a", "b", "c"}, {"a", "b", "c", "z"}]

    for _ in range(4):
        world.finish()
        world.settle()
    assert [set(nodes.values()) for nodes in states(world)] == [{"SUCCEEDED"}, {"SUCCEEDED"}]
    present = set(flow.dag_view(world.ports, full("daily"))["schedules"])
    former = set(flow.owned(world.ports, full("daily"))) - present
    assert len(former) == 3
    doze(world, "46d")
    world.pass_by("3m")
    assert set(flow.owned(world.ports, full("daily"))) == present, "the former graph goes when no runs are left"


def test_w4_an_update_of_the_graph_only_keeps_gathered_events(world: World) -> None:
    two = {"trigger": {"type": "partition", "dataset": "flights", "count": 2}, "by": []}
    world.deploy(dags.app(dag("a -> b", **two)))
    begin(world, 1)
    assert dags.put(world, dag("b -> a", **two)) == "replaced"
    assert dags.put(world, dag("b -> a", **two)) == "unchanged"
    begin(world, 2)
    assert ran(world) == ["b"]


def test_w4_a_disabled_dag_begins_nothing_and_started_runs_go_on(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world, 1)
    assert dags.put(world, dag("a -> b", enabled=False)) == "replaced"
    begin(world, 2)
    ends(world, "a")
    ends(world, "b")
    assert states(world) == [{"a": "SUCCEEDED", "b": "SUCCEEDED"}]
    actions.run_now(world.ports, full("daily~"), {}, "now")
    world.settle()
    assert len(states(world)) == 2


def test_w4_times_start_a_dag_and_a_backfill_runs_its_past(world: World) -> None:
    from tests.support import backfills

    world.deploy(dags.app(dag("a -> b", trigger={"type": "time", "expression": "0 0 * * *"}, by=[])))
    world.pass_by("12h")
    assert views(world)[0]["nominal_at"] == "2026-03-03T00:00:00.000Z"

    backfills.begin(world, "daily~", "r1", from_="2026-01-01T00:00:00Z", to="2026-01-03T00:00:00Z")
    world.settle()
    for _ in range(2 * 3):  # one run of the DAG at a time
        world.finish()
        world.settle()
    assert [view["state"] for view in views(world)] == ["SUCCEEDED"] * 3


def test_l24_a_paused_dag_holds_its_nodes_and_goes_on(world: World) -> None:
    """Its active runs go on; the nodes after them wait, and a new day waits at the start."""
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    pauses.pause_dag(world.ports, full("daily~"), "hold", "ann")
    ends(world, "a")
    begin(world, 2)
    world.pass_by("2m")
    [view] = views(world)
    assert {node: each["state"] for node, each in view["nodes"].items()} == {"a": "SUCCEEDED", "b": "WAITING"}
    assert view["nodes"]["b"]["why"].startswith("the schedule has been paused (hold) since ")
    assert flow.dag_view(world.ports, full("daily"))["state"] == "hold"
    pauses.resume_dag(world.ports, full("daily~"), "ann")
    world.settle()
    assert states(world) == [{"a": "SUCCEEDED", "b": "STARTING"}, {"a": "STARTING", "b": "PENDING"}]


def test_l24_a_drained_dag_ends_the_runs_that_have_begun(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    pauses.pause_dag(world.ports, full("daily~"), "drain", "ann")
    begin(world, 2)
    for node in ("a", "b"):
        ends(world, node)
    assert states(world) == [{"a": "SUCCEEDED", "b": "SUCCEEDED"}]


def test_l24_a_filter_pauses_the_dags_of_an_app_too(world: World) -> None:
    world.deploy(dags.app(dag("a -> b"), {"other": partitions()}) | {"tags": {"team": "a"}})
    report = bulk.act(world.ports, "demo.flights", "pause", bulk.Filters(tag=("team", "a")), "ann")
    assert report["changed"] == [full("daily"), full("other")]
    begin(world)
    assert ran(world) == []
    assert bulk.act(world.ports, "demo.flights", "resume", bulk.Filters(), "ann")["changed"] == report["changed"]
    world.settle()
    assert sorted(ran(world)) == ["a", full("other")]
