"""DAGs over the API: put, read, run, shown, run again, deleted, refused (W4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.results import Result
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.runs import complete
from chalicelib.wiring import ports
from tests.cli import recorded_dags
from tests.support.dags import dag
from tests.web.conftest import APP, NS, Api, installation, settle_in

EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
ALL = f"{APP}/dags"
ONE = f"{ALL}/daily"
CHAIN = dag("a -> b", nodes={"a": {"workflow": "clean"}, "b": {"workflow": "join"}}, by=[], enabled=True)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        for name in ("clean", "join"):
            made.put(f"{APP}/workflows/{name}", {"target": EMR})
        yield made


def ends(api: Api, view: Any, node: str, state: Any) -> None:
    """A node's run ends, and the event of its target arrives."""
    found = ports().runs.attempts(view["nodes"][node]["run_id"])[-1]
    complete.advance_run(ports(), found.run_id, found.attempt, RunUpdate(state, ports().clock.now(), "said so"))
    api.work()


def test_w4_a_dag_is_put_run_shown_rerun_and_deleted(api: Api) -> None:
    answer = api.answer(api.send("PUT", ONE, CHAIN), 201)
    assert set(answer) == set(recorded_dags.dag())
    assert (answer["version"], answer["state"]) == (1, "enabled")
    assert api.put(ONE, CHAIN) == answer, "the same again changes nothing"
    [listed] = api.get(ALL)["items"]
    assert (listed["name"], listed["state"], listed["enabled"]) == ("demo.flights.daily", "enabled", True)

    begun = api.post(f"{ONE}/run", idempotency_key="k")
    assert api.post(f"{ONE}/run", idempotency_key="k") == begun
    api.work()
    run = f"{ONE}/runs/{begun['run_id']}"
    view = api.get(run)
    assert set(view) == set(recorded_dags.dag_run())
    assert {frozenset(node) for node in view["nodes"].values()} == {
        frozenset(recorded_dags.dag_run()["nodes"]["clean"])
    }
    assert (view["state"], view["nodes"]["b"]["state"]) == ("RUNNING", "PENDING")
    node = api.get(f"/v1/runs/{view['nodes']['a']['run_id']}")
    assert node["dag"] == {"name": "demo.flights.daily", "run_id": begun["run_id"], "round": 1, "node": "a"}
    assert (node["correlation"], node["partition"]) == (None, None), "the key of a DAG is none of its users' business"
    assert api.refused(409, "POST", f"{run}/rerun", {"all": True})["code"] == "conflict"

    ends(api, view, "a", "FAILED")
    [listed] = api.get(f"{ONE}/runs")["items"]
    assert (listed["state"], listed["nodes"]["b"]["state"]) == ("FAILED", "BLOCKED")

    again = api.post(f"{run}/rerun", {"from": "a"}, idempotency_key="x")
    assert api.post(f"{run}/rerun", {"from": "a"}, idempotency_key="x")["reruns"] == again["reruns"]
    api.work()
    ends(api, api.get(run), "a", "SUCCEEDED")
    ends(api, api.get(run), "b", "SUCCEEDED")
    assert api.get(run)["state"] == "SUCCEEDED"

    assert api.refused(409, "DELETE", f"{APP}/workflows/join")["message"].endswith("used by dag demo.flights.daily")
    api.delete(ONE)
    api.refused(404, "GET", ONE)
    assert api.get(run)["state"] == "SUCCEEDED", "its history stays"


def test_w4_dag_schedules_are_shown_and_not_changed_individually(api: Api) -> None:
    view = api.put(f"{ALL}/seen", CHAIN)
    start, node = (name.rpartition(".")[2] for name in view["schedules"][:2])
    names = [item["name"] for item in api.get(f"{APP}/schedules")["items"]]
    assert set(view["schedules"]) <= set(names)
    assert api.get(f"{APP}/schedules/{node}")["dag"] == "demo.flights.seen"
    api.get(f"{APP}/schedules/{node}/why")

    for name in (start, node):
        path = f"{APP}/schedules/{name}"
        for method, where in (("DELETE", path), ("POST", f"{path}/disable"), ("POST", f"{path}/run"), ("PUT", path)):
            error = api.refused(409, method, where, {} if method == "PUT" else None)
            shown = ids.plain(f".{name}")[1:]
            assert error["message"] == f"schedule {shown} belongs to the DAG seen and cannot be changed alone"
    assert api.refused(400, "PUT", f"{APP}/workflows/{node}", {"target": EMR})["code"] == "invalid"
    past = {"partitions": {"values": [{"year": 2013, "month": 1, "day": 1}]}, "dry_run": True}
    assert api.post(f"{APP}/schedules/{start}/backfills", past)["total"] == 1

    assert api.post(f"{ALL}/seen/disable")["state"] == "disabled"
    assert api.post(f"{ALL}/seen/enable")["state"] == "enabled"
    changed = api.post(f"{APP}/bulk", {"action": "disable", "all": True})
    assert not any("~" in name for name in changed["changed"])


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        (dag("a -> b", "b -> a"), "edges", "expected edges without a cycle, got a -> b -> a"),
        ({**CHAIN, "edges": [{"from": "a", "to": "x"}]}, "edges.0.to", "expected the name of a node of this DAG"),
        (dag("a -> b", nodes={"a": {"workflow": "clean"}, "b": {"workflow": "jion"}}), "nodes.b.workflow",
         "expected an existing workflow, got 'demo.flights.jion'"),
        (dag("a -> b", nodes={"a": {"workflow": "notify"}, "b": {"workflow": "join"}}), "edges.0.from",
         "expected a node whose target reports how its runs end, got 'a, whose sqs target reports none'"),
        ({**CHAIN, "trigger": {"type": "program_status", "workflow": "join"}}, "trigger",
         "expected triggers without a cycle, got demo.flights.join -> demo.flights.join"),
        ({**CHAIN, "trigger": {"type": "partition", "dataset": "fligths"}}, "trigger",
         "expected an existing dataset, got 'demo.fligths'"),
        ({**CHAIN, "nodes": {}}, "nodes", "expected at least 1 item, got {}"),
        ({**CHAIN, "edge": []}, "edge", "unknown field 'edge'"),
    ],
)  # fmt: skip
def test_w4_a_bad_dag_is_refused_and_nothing_is_stored(api: Api, body: Any, field: str, message: str) -> None:
    before = api.everything()
    error = api.refused(400, "PUT", f"{ALL}/bad", body)
    assert (error["field"], error["message"][: len(message)]) == (field, message)
    assert api.everything() == before


@pytest.mark.parametrize("limits", [{}, {"concurrency": {"max": 5, "on_unmet": "wait"}}])
def test_w20_a_dag_run_is_cancelled_with_its_clean_up(api: Api, limits: Any) -> None:
    name = "limited" if limits else "plain"
    nodes = {"a": {"workflow": "clean"}, "b": {"workflow": "join", "when": "all_done"}}
    api.put(f"{ALL}/{name}", {**CHAIN, "nodes": nodes, **limits})
    begun = api.post(f"{ALL}/{name}/run")["run_id"]
    api.work()
    for _ in range(2):
        assert api.answer(api.send("POST", f"/v1/runs/{begun}/cancel"), 202)["run_id"] == begun
        api.work()
    view = api.get(f"{ALL}/{name}/runs/{begun}")
    assert (view["nodes"]["b"]["state"], view["nodes"]["b"]["run_id"]) == ("ABORTED", None)
    ends(api, view, "a", "CANCELLED")
    assert api.get(f"{ALL}/{name}/runs/{begun}")["state"] == "FAILED"
    api.delete(f"{ALL}/{name}")


def test_w18_a_dag_with_lists_is_stored_with_single_edges(api: Api) -> None:
    nodes = {name: {"workflow": "clean" if name == "a" else "join"} for name in "abc"}
    short = {**CHAIN, "nodes": nodes, "edges": [{"from": "a", "to": ["b", "c"], "if": {"go": [True]}}]}
    stored = api.put(f"{ALL}/fan", short)
    assert stored["edges"] == [
        {"from": "a", "to": name, "on": ["COMPLETED"], "within": None, "if": {"go": [True]}} for name in "bc"
    ]
    assert api.put(f"{ALL}/fan", short)["version"] == stored["version"], "the same document changes nothing"
    nodes["a"]["workflow"] = "notify"
    late = {**short, "edges": [{"from": "c", "to": ["b"]}, {"from": ["a"], "to": "b"}]}
    assert api.refused(400, "PUT", f"{ALL}/fan", late)["field"] == "edges.1.from"


def test_w19_elements_are_listed_and_run_again(api: Api) -> None:
    nodes = {"a": {"workflow": "clean"}, "b": {"workflow": "join", "each": {"of": "a", "path": "files"}}}
    api.put(f"{ALL}/mapped", {**CHAIN, "nodes": nodes})
    begun = api.post(f"{ALL}/mapped/run")["run_id"]
    api.work()
    run = f"{ALL}/mapped/runs/{begun}"
    listed = f"{run}/nodes/b/elements"
    assert api.get(listed)["items"] == [], "none yet"
    first = api.get(run)["nodes"]["a"]["run_id"]
    handed_on = RunUpdate("SUCCEEDED", ports().clock.now(), result=Result({"files": ["x", {"y": 1.5}, "z"]}))
    complete.advance_run(ports(), first, 1, handed_on)
    api.work()
    items = api.get(listed)["items"]
    assert [(each["index"], each["value"], each["state"]) for each in items] == [
        (0, "x", "STARTING"),
        (1, {"y": 1.5}, "STARTING"),
        (2, "z", "STARTING"),
    ]
    assert api.get(f"/v1/runs/{items[1]['run_id']}")["each"] == {"index": 1, "count": 3, "value": {"y": 1.5}}
    counts = {"count": 3, "succeeded": 0, "failed": 0, "running": 3, "waiting": 0}
    assert api.get(run)["nodes"]["b"]["elements"] == counts
    for each, state in zip(items, ("SUCCEEDED", "FAILED", "SUCCEEDED"), strict=True):
        complete.advance_run(ports(), each["run_id"], 1, RunUpdate(state, ports().clock.now()))
    api.work()
    page = api.get(f"{listed}?limit=2")
    assert [(each["index"], each["state"]) for each in page["items"]] == [(1, "FAILED"), (0, "SUCCEEDED")]
    rest = api.get(f"{listed}?limit=2&cursor={page['next_cursor']}")
    assert [each["index"] for each in rest["items"]] == [2]
    again = api.post(f"{run}/rerun", {"from": "b", "elements": "failed"}, idempotency_key="x")
    assert again["reruns"][0]["elements"] == [1]
    assert api.post(f"{run}/rerun", {"from": "b", "elements": "failed"}, idempotency_key="x") == again
    api.work()
    assert api.get(run)["nodes"]["b"]["elements"] == {**counts, "succeeded": 2, "running": 1}
    error = api.refused(404, "GET", f"{run}/nodes/a/elements")
    assert error["message"].startswith("no node with each named 'a'")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"all": True, "elements": [1]}, "expected elements of one node, got 'all: true'"),
        ({"from": "b", "elements": []}, "expected at least one index, or failed, got []"),
    ],
)
def test_w19_a_rerun_of_elements_says_which(api: Api, body: Any, message: str) -> None:
    api.put(f"{ALL}/again", CHAIN)
    run = api.post(f"{ALL}/again/run")["run_id"]
    error = api.refused(400, "POST", f"{ALL}/again/runs/{run}/rerun", body)
    assert (error["field"], error["message"]) == ("elements", message)


@pytest.mark.parametrize(
    ("field", "given", "hint"),
    [
        ("from", "b[failed]", 'send {"from": "b", "elements": "failed"}'),
        ("only", "b[3,17]", 'send {"only": "b", "elements": [3, 17]}'),
        ("from", "b[x]", "lower-case letters, digits"),
    ],
)
def test_w19_elements_have_a_field_of_their_own(api: Api, field: str, given: str, hint: str) -> None:
    api.put(f"{ALL}/again", CHAIN)
    run = api.post(f"{ALL}/again/run")["run_id"]
    error = api.refused(400, "POST", f"{ALL}/again/runs/{run}/rerun", {field: given})
    assert (error["field"], error["hint"][: len(hint)]) == (field, hint)


@pytest.mark.parametrize("body", [{}, {"from": "a", "all": True}, {"from": "a", "only": "b"}, {"form": "a"}])
def test_w4_an_invalid_rerun_request_is_refused(api: Api, body: Any) -> None:
    api.put(f"{ALL}/again", CHAIN)
    run = api.post(f"{ALL}/again/run")["run_id"]
    assert api.refused(400, "POST", f"{ALL}/again/runs/{run}/rerun", body)["code"] in ("invalid", "unknown_field")
    api.refused(404, "GET", f"{ALL}/again/runs/{run}x")
    api.refused(404, "GET", f"{ALL}/none/runs")


def test_l8_dags_are_a_part_of_an_app_deployment(api: Api) -> None:
    api.put(f"{NS}/apps/nightly")
    app = {"workflows": {"clean": {"target": EMR}, "join": {"target": EMR}}, "dags": {"daily": CHAIN}}
    dry = api.put(f"{NS}/apps/nightly?dry_run=true", app)
    assert "dag demo.nightly.daily" in dry["created"]
    assert "schedule demo.nightly.daily~" in dry["created"]
    assert len([answer for answer in dry["created"] if answer.startswith("schedule")]) == 3
    api.refused(404, "GET", f"{NS}/apps/nightly/dags/daily")

    assert api.put(f"{NS}/apps/nightly", app)["created"] == dry["created"]
    again = api.put(f"{NS}/apps/nightly", app)
    assert (again["created"], again["replaced"], again["deleted"]) == ([], [], [])
    assert api.get(f"{NS}/apps/nightly")["deployed"]["counts"]["dags"] == 1

    error = api.refused(400, "PUT", f"{NS}/apps/nightly", {**app, "workflows": {"clean": {"target": EMR}}})
    assert error["field"] == "dags.daily.nodes.b.workflow"
    gone = api.put(f"{NS}/apps/nightly", {**app, "dags": {}})
    assert "dag demo.nightly.daily" in gone["deleted"]
    assert api.get(f"{NS}/apps/nightly/schedules")["items"] == []
    api.put(f"{NS}/apps/nightly", app)
    api.delete(f"{NS}/apps/nightly")


def test_l19_an_occurrence_of_a_dag_is_skipped_and_unskipped(api: Api) -> None:
    nightly = f"{ALL}/nightly"
    hourly = {**CHAIN, "trigger": {"type": "time", "expression": "@hourly"}}
    api.answer(api.send("PUT", nightly, hourly), 201)
    start = f"{APP}/schedules/nightly~"
    [at] = api.get(f"{start}/preview?count=1")["items"]
    assert api.post(f"{nightly}/skip", {"at": at})["skips"] == [at]
    assert api.get(start)["skips"] == api.get(nightly)["skips"] == [at]
    assert api.refused(400, "POST", f"{nightly}/skip", {"at": "2001-01-01T00:00:00Z"})["field"] == "at"
    assert api.refused(409, "POST", f"{start}/skip", {"at": at})["code"] == "conflict", "only the DAG changes its start"
    assert api.post(f"{nightly}/unskip", {"at": at})["skips"] == []
    api.refused(404, "POST", f"{ALL}/nothing/skip", {"at": at})
