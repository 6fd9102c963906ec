"""W17: join rules. A node runs by what became of the nodes before it: succeeded, failed, skipped, or never run."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.dags import actions as flow
from chalicelib.flow.jobs.actions import withdraw
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.schedules import actions, pauses
from tests.acceptance.words import day, doze
from tests.support import dags
from tests.support.dags import dag, ends, living, ran, rerun, state, states, views
from tests.support.world import EMR, World, full


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def begin(world: World, number: int = 1) -> None:
    world.upload(day(number))
    world.settle()


def node(rule: str, name: str = "z", **fields: Any) -> dict[str, Any]:
    return {"workflow": f"w_{name}", "when": rule, **fields}


def ruled(rule: str, *edges: Any, **fields: Any) -> dict[str, Any]:
    """A DAG whose node ``z`` has this rule: after a and b, unless ``edges`` say otherwise."""
    return dag(*(edges or ("a -> z", "b -> z")), nodes={"z": node(rule, **fields)})


@pytest.mark.parametrize(
    ("rule", "a", "b", "z", "of_run"),
    [
        ("all_done", "SUCCESS", "SUCCESS", "SUCCEEDED", "SUCCEEDED"),
        ("all_done", "FAILED", "CANCELLED", "SUCCEEDED", "FAILED"),
        ("none_failed", "SUCCESS", "SUCCESS", "SUCCEEDED", "SUCCEEDED"),
        ("none_failed", "SUCCESS", "FAILED", "BLOCKED", "FAILED"),
        ("one_succeeded", "FAILED", "SUCCESS", "SUCCEEDED", "SUCCEEDED"),
        ("one_succeeded", "FAILED", "FAILED", "BLOCKED", "FAILED"),
        ("one_failed", "SUCCESS", "CANCELLED", "SUCCEEDED", "SUCCEEDED"),
        ("one_failed", "SUCCESS", "SUCCESS", "SKIPPED", "SUCCEEDED"),
        ("always", "FAILED", "SUCCESS", "SUCCEEDED", "FAILED"),
    ],
)
def test_w17_a_node_runs_by_its_rule(world: World, rule: str, a: str, b: str, z: str, of_run: str) -> None:
    world.deploy(dags.app(ruled(rule)))
    begin(world)
    ends(world, "a", a)
    ends(world, "b", b)
    if "z" in living(world):
        ends(world, "z")
    [view] = views(world)
    assert (view["nodes"]["z"]["state"], view["state"]) == (z, of_run)
    assert ran(world).count("z") == (z == "SUCCEEDED")


def test_w17_one_end_is_enough_for_some_rules(world: World) -> None:
    nodes = {"any": node("one_succeeded", "any"), "alarm": node("one_failed", "alarm"), "now": node("always", "now")}
    edges = (f"{before} -> {after}" for before in "abc" for after in nodes)
    world.deploy(dags.app(dag(*edges, nodes=nodes)))
    begin(world)
    assert set(living(world)) == {"a", "b", "c", "now"}
    ends(world, "a", "FAILED")
    assert set(living(world)) == {"b", "c", "now", "alarm"}
    ends(world, "b")
    assert set(living(world)) == {"c", "now", "alarm", "any"}
    for each in ("any", "alarm", "c", "now"):
        ends(world, each)
    assert sorted(ran(world)) == ["a", "alarm", "any", "b", "c", "now"], "a later end starts nothing again"
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w17_blocked_and_skipped_nodes_count_as_what_they_are(world: World) -> None:
    """a fails: b is BLOCKED, then c. d waits for the failure of x, which succeeds: it is SKIPPED."""
    nodes = {name: node(rule, name) for name, rule in (("tidy", "all_done"), ("go", "none_failed"))}
    edges = ("a -> b", "b -> c", "c -> tidy", dags.edge("x -> d", on=["FAILED"]), "d -> tidy", "d -> go", "x -> go")
    world.deploy(dags.app(dag(*edges, nodes=nodes)))
    begin(world)
    ends(world, "a", "FAILED")
    assert "tidy" not in ran(world)
    ends(world, "x")
    assert set(living(world)) == {"tidy", "go"}
    found = state(world)
    assert (found["b"], found["c"], found["d"]) == ("BLOCKED", "BLOCKED", "SKIPPED")


def test_w17_an_aborted_or_cancelled_job_is_an_end(world: World) -> None:
    """b waits longer than its timeout for a window; the job of c is cancelled by a person."""
    window = {"type": "time_window", "start": "22:00", "end": "23:00", "on_unmet": "wait"}
    nodes = {
        "b": {"workflow": "w_b", "constraints": [window], "timeout": {"after": "1h"}},
        "c": {"workflow": "w_c", "constraints": [window]},
        "z": node("all_done"),
    }
    world.deploy(dags.app(dag("a -> b", "a -> c", "b -> z", "c -> z", nodes=nodes)))
    begin(world)
    ends(world, "a")
    graph = flow.dag_view(world.ports, full("daily"))["schedules"]
    [job] = world.jobs(next(name for name in graph if name.endswith("~c")))
    withdraw(world.ports, job.job_id, "ann")
    world.settle()
    assert state(world) == {"a": "SUCCEEDED", "b": "WAITING", "c": "ABORTED", "z": "PENDING"}
    doze(world, "2h")
    assert state(world) == {"a": "SUCCEEDED", "b": "ABORTED", "c": "ABORTED", "z": "STARTING"}
    ends(world, "z")
    assert views(world)[0]["state"] == "FAILED"


def test_w17_a_cancelled_run_of_a_node_is_an_end(world: World) -> None:
    world.deploy(dags.app(ruled("one_failed", "a -> z")))
    begin(world)
    run_actions.cancel(world.ports, views(world)[0]["nodes"]["a"]["run_id"], "ann")
    world.emr_says(living(world)["a"], "CANCELLED")
    world.settle()
    assert state(world) == {"a": "CANCELLED", "z": "STARTING"}


def test_w17_only_the_last_attempt_is_an_end(world: World) -> None:
    retries = {"attempts": 2, "delay": "30s"}
    world.deploy(dags.app(ruled("all_done", "a -> z"), w_a={"target": EMR, "retries": retries}))
    begin(world)
    ends(world, "a", "FAILED")
    assert state(world) == {"a": "RETRYING", "z": "PENDING"}
    doze(world, "1m")
    ends(world, "a", "FAILED")
    assert state(world) == {"a": "FAILED", "z": "STARTING"}


def test_w17_a_rerun_decides_its_rules_again(world: World) -> None:
    """The round has the end of b from before, and that of a again. z runs once in each round."""
    world.deploy(dags.app(ruled("all_done")))
    begin(world)
    ends(world, "a", "FAILED")
    ends(world, "b")
    ends(world, "z")
    rerun(world, "from", "a", "r1")
    world.settle()
    assert state(world) == {"a": "STARTING", "b": "SUCCEEDED", "z": "PENDING"}
    ends(world, "a")
    ends(world, "z")
    assert ran(world) == ["a", "b", "z", "a", "z"]
    rerun(world, "only", "z", "r2")
    world.settle()
    ends(world, "z")
    rerun(world, "from", "z", "r3")
    world.settle()
    ends(world, "z")
    assert ran(world)[5:] == ["z", "z"]
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w17_a_rerun_from_a_node_needs_its_rule(world: World) -> None:
    world.deploy(dags.app(ruled("one_failed")))
    begin(world)
    ends(world, "a")
    ends(world, "b")
    with pytest.raises(SluiceError, match="got z: its rule is one_failed, and a is SUCCEEDED"):
        rerun(world, "from", "z")


def test_w17_a_node_rerun_alone_decides_no_rule(world: World) -> None:
    world.deploy(dags.app(ruled("one_succeeded", "a -> z")))
    begin(world)
    ends(world, "a", "FAILED")
    rerun(world, "only", "a")
    world.settle()
    ends(world, "a")
    assert "z" not in ran(world)
    assert "run again alone" in views(world)[0]["nodes"]["z"]["why"]


def test_w17_the_run_of_a_node_is_told_of_the_ends_before_it(world: World) -> None:
    world.deploy(dags.app(ruled("all_done", "a -> z", "b -> z", "c -> z")))
    begin(world)
    ends(world, "a", "FAILED")
    ends(world, "c")
    world.clock.pass_by("1s")
    ends(world, "b")
    [request] = [run.request for run in world.targets.emr.runs.values() if run.request["schedule"].endswith("~z")]
    told = {(event["workflow"].rpartition("_")[2], event["status"]) for event in request["events"]}
    assert told == {("a", "FAILED"), ("b", "COMPLETED"), ("c", "COMPLETED")}
    assert request["upstream"]["dag"]["node"] == "b"
    start = request["upstream"]["upstream"]
    assert request["logical_start_time"] == start["logical_start_time"]


def test_w17_a_node_that_no_run_leads_to_is_told_of_the_start(world: World) -> None:
    """The only node before z was aborted: its success is too old."""
    edges = (dags.edge("a -> c", within="2h"), "b -> c", "c -> z")
    world.deploy(dags.app(ruled("all_done", *edges)))
    begin(world)
    ends(world, "a")
    doze(world, "3h")
    ends(world, "b")
    [request] = [run.request for run in world.targets.emr.runs.values() if run.request["schedule"].endswith("~z")]
    assert state(world)["c"] == "ABORTED"
    assert request["upstream"]["dag"]["node"] is None
    assert request["logical_start_time"] == request["upstream"]["logical_start_time"]


def test_w17_a_node_that_is_skipped_stays_skipped(world: World) -> None:
    """b has the end of x, and waits for the failure of a that does not come. Its timeout is no failure."""
    edges = (dags.edge("a -> s", on=["FAILED"]), "s -> b", "x -> b", "b -> z")
    world.deploy(dags.app(ruled("none_failed", *edges)))
    begin(world)
    ends(world, "x")
    ends(world, "a")
    ends(world, "z")
    before = state(world)
    assert (before["s"], before["b"], before["z"]) == ("SKIPPED", "SKIPPED", "SUCCEEDED")
    doze(world, "2d")
    assert state(world) == before
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w17_a_timeout_that_runs_a_node_is_waited_for(world: World) -> None:
    """b runs an hour after x although a failed. So z waits for it."""
    nodes = {"b": {"workflow": "w_b", "timeout": {"after": "1h", "then": "run"}}, "z": node("all_done")}
    world.deploy(dags.app(dag("a -> b", "x -> b", "b -> z", nodes=nodes)))
    begin(world)
    ends(world, "a", "FAILED")
    ends(world, "x")
    assert state(world) == {"a": "FAILED", "x": "SUCCEEDED", "b": "WAITING", "z": "PENDING"}
    doze(world, "2h")
    ends(world, "b")
    ends(world, "z")
    assert sorted(ran(world)) == ["a", "b", "x", "z"]


def test_w17_constraints_of_a_node_with_a_rule_count(world: World) -> None:
    constraints = [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]
    world.deploy(dags.app(ruled("all_done", "a -> z", constraints=constraints)))
    for number in (1, 2):
        begin(world, number)
    for run_id in [run.id for run in world.targets.emr.runs.values()]:
        world.emr_says(run_id, "SUCCESS")
        world.settle()
    assert sorted(each["z"] for each in states(world)) == ["STARTING", "WAITING"]
    ends(world, "z")
    ends(world, "z")
    assert [view["state"] for view in views(world)] == ["SUCCEEDED"] * 2


def test_w17_a_paused_dag_holds_a_node_whose_rule_is_met(world: World) -> None:
    world.deploy(dags.app(ruled("all_done", "a -> z")))
    begin(world)
    pauses.pause_dag(world.ports, full("daily~"), "hold", "ann")
    ends(world, "a", "FAILED")
    world.pass_by("2m")
    assert state(world) == {"a": "FAILED", "z": "WAITING"}
    pauses.resume_dag(world.ports, full("daily~"), "ann")
    world.settle()
    assert state(world)["z"] == "STARTING"


def test_w17_a_run_keeps_its_rules_and_a_deleted_dag_ends(world: World) -> None:
    world.deploy(dags.app(ruled("none_failed", "a -> z")))
    begin(world)
    assert dags.put(world, ruled("one_failed", "a -> z")) == "replaced"
    ends(world, "a")
    assert state(world) == {"a": "SUCCEEDED", "z": "STARTING"}
    ends(world, "z")
    begin(world, 2)
    flow.delete(world.ports, full("daily"), "tester")
    world.emr_says(living(world)["a"], "FAILED")
    world.settle()
    assert states(world)[1] == {"a": "FAILED", "z": "BLOCKED"}
    assert "the DAG was deleted" in views(world)[1]["nodes"]["z"]["why"]
    assert ran(world) == ["a", "z", "a"]


def test_w17_a_backfill_counts_a_run_by_its_rules(world: World) -> None:
    from tests.support import backfills

    document = ruled("one_failed", "a -> z") | {"trigger": {"type": "time", "expression": "0 0 * * *"}, "by": []}
    world.deploy(dags.app(document))
    backfills.begin(world, "daily~", "r1", from_="2026-01-01T00:00:00Z", to="2026-01-02T00:00:00Z")
    world.settle()
    ends(world, "a", "FAILED")
    ends(world, "z")
    assert [view["state"] for view in views(world)] == ["SUCCEEDED"]


def test_w17_no_schedule_has_the_rule_of_a_node(world: World) -> None:
    from chalicelib.core.definitions.schedule import NewSchedule

    world.deploy(dags.app(ruled("all_done", "a -> z")))
    before = {"a": ["demo.flights.w_a", full("daily~")]}
    trigger = {"type": "nodes", "rule": "all_done", "nodes": before}
    with pytest.raises(SluiceError, match="expected a trigger that a schedule can have"):
        sent = NewSchedule.model_validate({"workflow": "w_a", "trigger": trigger})
        actions.put(world.ports, full("mine"), sent, "tester")


def test_w17_a_node_with_a_rule_passes_its_priority_on(world: World) -> None:
    """What is before `last` is as urgent. `alarm` waits for a failure, and makes nothing urgent."""
    one = [{"type": "concurrency", "max": 1, "group": "g", "on_unmet": "wait"}]
    waits = {name: {"workflow": f"w_{name}", "constraints": one, "priority": 2} for name in ("up", "plain")}
    urgent = {name: node(rule, name, priority=9) for name, rule in (("last", "all_done"), ("alarm", "one_failed"))}
    going = {"workflow": "clean", "trigger": {"type": "event", "event": "go"}, "constraints": one, "enabled": True}
    document = dags.app(dag("up -> last", "plain -> alarm", nodes=waits | urgent))
    world.deploy({**document, "schedules": {"going": going}})
    world.post("go")
    world.settle()
    begin(world)
    whys = {name: each["why"] for name, each in views(world)[0]["nodes"].items()}
    assert whys["up"].endswith("inherited from demo.flights.daily/last")
    assert "priority 9" in whys["up"]
    assert "priority 9" not in whys["plain"]
