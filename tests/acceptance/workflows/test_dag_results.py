"""W18: results. A run hands a small JSON value on to the runs after it, with its end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.core.results import of_value
from chalicelib.core.rows.run import Run
from chalicelib.core.runs.workers import parse_lease_id
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.runs import complete, workers
from chalicelib.flow.runs.workers import claim, heartbeat, report
from chalicelib.flow.views.views import run_in_full
from tests.acceptance.words import day
from tests.support import dags
from tests.support.answers import read
from tests.support.dags import dag, ends, hands_on, living, state, views
from tests.support.state_machines import MACHINE
from tests.support.world import EMR, World, full

FOUND = {"mode": "full", "files": ["a", "b"], "rows": 7}
LARGE = {"text": "x" * 11_000}


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def begin(world: World, number: int = 1) -> None:
    world.upload(day(number))
    world.settle()


def shown(world: World, node: str) -> dict[str, Any]:
    """The run of a node as the API answers."""
    attempts = world.ports.runs.attempts(views(world)[0]["nodes"][node]["run_id"])
    found: dict[str, Any] = read(run_in_full(world.ports, attempts))
    return found


def context_of(world: World, node: str) -> dict[str, Any]:
    [run] = [each for each in world.targets.emr.runs.values() if each.request["dag"]["node"] == node]
    return dict(run.request)


def test_w18_a_result_is_on_its_run_and_in_the_next_context(world: World) -> None:
    world.deploy(dags.app(dag("a -> b", "b -> c")))
    begin(world)
    assert context_of(world, "a")["result_uri"].startswith("s3://control/results/demo.flights.daily~")
    ends(world, "a", result=FOUND)
    assert shown(world, "a")["result"] == FOUND == views(world)[0]["nodes"]["a"]["result"]
    assert context_of(world, "b")["upstream"]["result"] == FOUND
    assert [event["result"] for event in context_of(world, "b")["events"]] == [FOUND]
    ends(world, "b")
    assert "result" not in shown(world, "b")
    upstream = context_of(world, "c")["upstream"]
    assert "result" not in upstream and upstream["upstream"]["result"] == FOUND


def test_w18_a_node_gets_the_results_of_all_nodes_before_it(world: World) -> None:
    world.deploy(dags.app(dag("a -> z", "b -> z", "c -> z", nodes={"z": {"workflow": "w_z", "when": "all_done"}})))
    begin(world)
    ends(world, "a", result={"rows": 1})
    ends(world, "b", "FAILED", result={"rows": 2})
    ends(world, "c", result=["s3://lake/c"])
    events = context_of(world, "z")["events"]
    given = {event["workflow"].rpartition("_")[2]: event.get("result") for event in events}
    assert given == {"a": {"rows": 1}, "b": None, "c": ["s3://lake/c"]}, "only a success has a result"


def test_w18_a_result_of_11_kb_is_refused_and_the_run_ends(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    ends(world, "a", result=LARGE)
    found = shown(world, "a")
    assert (found["state"], "result" in found) == ("SUCCEEDED", False)
    assert found["result_refused"] == (
        "expected a result of at most 10,000 bytes of JSON, got 11,011; "
        "put it into S3, and give its address as the result"
    )
    assert state(world)["b"] == "STARTING", "an edge without if needs no result"
    assert views(world)[0]["nodes"]["a"]["result_refused"] == found["result_refused"]


def test_w18_what_is_no_json_is_refused(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    run = world.targets.emr.runs[living(world)["a"]]
    world.payloads.results[run.request["run_id"], 1] = b"{mode: full}"
    ends(world, "a")
    assert shown(world, "a")["result_refused"] == "expected a result in JSON, got '{mode: full}'"


def test_w18_a_retried_attempt_replaces_the_result(world: World) -> None:
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
    world.deploy(dags.app(dag("a -> b"), w_a=retried))
    begin(world)
    ends(world, "a", "FAILED", result={"try": 1})
    world.clock.pass_by("31s")
    world.tick()
    world.settle()
    second = context_of_attempt(world, 2)
    assert second["result_uri"].endswith("-2.json")
    ends(world, "a", result={"try": 2})
    assert [each.get("result") for each in shown(world, "a")["history"]] == [None, {"try": 2}]
    assert context_of(world, "b")["upstream"]["result"] == {"try": 2}


def context_of_attempt(world: World, attempt: int) -> dict[str, Any]:
    [run] = [each for each in world.targets.emr.runs.values() if each.request["attempt"] == attempt]
    return dict(run.request)


def test_w18_an_end_that_comes_twice_keeps_the_first_result(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    run = world.targets.emr.runs[living(world)["a"]]
    ends(world, "a", result=FOUND)
    hands_on(world, run, {"mode": "delta"})
    world.emr_says(run.id, "SUCCESS")
    world.settle()
    assert shown(world, "a")["result"] == FOUND


def test_w18_an_outage_of_the_bucket_loses_no_end_and_no_result(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    run = world.targets.emr.runs[living(world)["a"]]
    hands_on(world, run, FOUND)
    read_one = world.payloads.result

    def broken(*_: Any) -> bytes | None:
        raise ConnectionError("no answer from S3")

    monkeypatch.setattr(world.payloads, "result", broken)
    world.emr_says(run.id, "RUNNING")
    with pytest.raises(ConnectionError):
        world.emr_says(run.id, "SUCCESS")
    assert state(world)["a"] == "RUNNING"
    monkeypatch.setattr(world.payloads, "result", read_one)
    world.emr_says(run.id, "SUCCESS")  # its event is delivered again
    world.settle()
    assert (shown(world, "a")["result"], state(world)["b"]) == (FOUND, "STARTING")


def test_w18_a_worker_reports_its_result_with_the_end(world: World) -> None:
    pulled = {"target": {"type": "worker", "pool": "cpus"}}
    world.deploy(dags.app(dag("a -> b"), w_a=pulled))
    begin(world)
    [lease] = claim(world.ports, "demo.cpus", "ann", 1).leases
    own = parse_lease_id(lease["lease"])
    assert own is not None and "result_uri" not in lease["context"]
    heartbeat(world.ports, own, "ann")
    answer = report(world.ports, own, "ann", workers.Report(True, result=of_value(FOUND)))
    world.settle()
    assert (answer["state"], shown(world, "a")["result"]) == ("SUCCEEDED", FOUND)
    assert context_of(world, "b")["upstream"]["result"] == FOUND


def test_w18_a_worker_is_told_that_its_result_is_refused(world: World) -> None:
    pulled = {"target": {"type": "worker", "pool": "cpus"}}
    world.deploy(dags.app(dag("a -> b"), w_a=pulled))
    begin(world)
    [lease] = claim(world.ports, "demo.cpus", "ann", 1).leases
    own = parse_lease_id(lease["lease"])
    assert own is not None
    heartbeat(world.ports, own, "ann")
    answer = report(world.ports, own, "ann", workers.Report(True, result=of_value(LARGE)))
    assert answer["state"] == "SUCCEEDED"
    assert answer["result_refused"] == shown(world, "a")["result_refused"]


def test_w18_the_output_of_an_execution_is_its_result(world: World) -> None:
    machine = {"target": {"type": "step_functions", "state_machine": MACHINE}}
    world.deploy(dags.app(dag("a -> b"), w_a=machine))
    begin(world)
    [execution] = world.targets.machines.executions.values()
    world.execution_says(execution, "SUCCEEDED", output=json.dumps(FOUND))
    world.settle()
    assert shown(world, "a")["result"] == FOUND
    assert context_of(world, "b")["upstream"]["result"] == FOUND


def test_w18_a_rerun_of_a_run_has_a_result_of_its_own(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    ends(world, "a", result=FOUND)
    first = views(world)[0]["nodes"]["a"]["run_id"]
    run_actions.rerun(world.ports, first, "again")
    world.settle()
    [again] = [run for run in world.targets.emr.runs.values() if run.request.get("rerun_of") == first]
    assert again.request["result_uri"].endswith(f"{again.request['run_id']}-1.json")
    ends(world, "a", result={"mode": "delta"})
    assert world.ports.rows.get(Run, again.request["run_id"], 1).result == {"mode": "delta"}  # type: ignore[union-attr]
    assert shown(world, "a")["result"] == FOUND, "it is no re-run of the DAG"


def test_w18_a_late_update_of_an_ended_run_changes_no_result(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    ends(world, "a", result=FOUND)
    run_id = views(world)[0]["nodes"]["a"]["run_id"]
    late = RunUpdate("SUCCEEDED", world.clock.now(), result=of_value({"mode": "delta"}))
    assert complete.advance_run(world.ports, run_id, 1, late) is None
    assert full("daily") and shown(world, "a")["result"] == FOUND
