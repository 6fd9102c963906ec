"""H6: runs, DAG runs and datasets as events of OpenLineage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from chalicelib.core.instants import MINUTE
from chalicelib.core.openlineage import subjects
from chalicelib.core.openlineage.outlets import Later, Refused, Sent
from chalicelib.core.rows.run import Run
from chalicelib.flow.runs import context as flow_context
from chalicelib.flow.views import views
from tests.acceptance.words import day, doze, on, partition
from tests.support import dags
from tests.support.dags import dag, ends
from tests.support.openlineage import PREFIX, Lineage, parsed
from tests.support.world import EMR, World, flights, full

DAY = {"year": "2013", "month": "01", "day": "1"}
FILES = {"files": ["a.csv", "b.csv"]}
CLEAN = {
    "target": EMR,
    "description": "cleans a day",
    "owner": "team:flights",
    "tags": {"tier": "gold"},
    "reads": ["weather"],
    "produces": [{"dataset": "cleaned", "register": "on_success"}],
}


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1, lineage=PREFIX)


@pytest.fixture
def lineage(world: World) -> Lineage:
    return Lineage(world)


def app(schedules: Any = None, **workflows: Any) -> Any:
    made = {"daily": on(partition(), "clean", by=["year", "month", "day"])}
    found = flights(made if schedules is None else schedules, **({"clean": CLEAN} | workflows))
    cleaned = {"bucket": "lake", "prefix": "clean/flights/", "keys": ["year", "month", "day"], "owner": "team:flights"}
    found["datasets"]["cleaned"] = cleaned
    return found


def run_one(world: World, lineage: Lineage, state: str = "SUCCESS", details: str = "") -> None:
    world.deploy(app())
    world.upload(day(1))
    world.settle()
    lineage.work()
    world.finish(state, details)
    world.settle()
    lineage.work()


def facets(event: Any) -> Any:
    return event["run"]["facets"]


def names(datasets: Any) -> list[str]:
    return [f"{each['namespace']}/{each['name']}" for each in datasets]


def check(lineage: Lineage) -> None:
    """Each event is one of OpenLineage, and each run has one START and at most one end, in this order."""
    order = {"START": 0, "RUNNING": 1, "COMPLETE": 2, "FAIL": 2, "ABORT": 2}
    by_run: dict[str, list[int]] = {}
    for event in lineage.outlet.events:
        parsed(event)
        by_run.setdefault(event["run"]["runId"], []).append(order[event["eventType"]])
    for found in by_run.values():
        assert found == sorted(found)


def test_h6_a_run_has_start_running_and_complete(world: World, lineage: Lineage) -> None:
    run_one(world, lineage)
    assert lineage.said() == [("flights.daily", "START"), ("flights.daily", "RUNNING"), ("flights.daily", "COMPLETE")]
    check(lineage)
    [run] = world.runs("daily")
    assert {event["run"]["runId"] for event in lineage.outlet.events} == {subjects.family(PREFIX, run).own.run_id}
    assert UUID(lineage.outlet.events[0]["run"]["runId"]).version == 5
    assert {event["job"]["namespace"] for event in lineage.outlet.events} == {"sluice-test/demo"}
    assert lineage.outlet.calls == 2  # one batch of the stream each


def test_h6_inputs_and_outputs_are_those_of_workflow_and_trigger(world: World, lineage: Lineage) -> None:
    run_one(world, lineage)
    complete = lineage.of("flights.daily")
    assert names(complete["inputs"]) == ["s3://lake-bucket/raw/weather", "s3://lake-bucket/raw/flights"]
    assert names(complete["outputs"]) == ["s3://lake-bucket/clean/flights"]
    fired = complete["inputs"][1]["inputFacets"]["subset"]["inputCondition"]
    part = {"identifier": "year=2013/month=01/day=1", "dimensions": DAY}
    assert fired == {"type": "partition", "partitions": [part]}
    assert complete["outputs"][0]["outputFacets"]["subset"]["outputCondition"]["partitions"] == [part]
    assert complete["outputs"][0]["facets"]["ownership"]["owners"] == [{"name": "team:flights", "type": "OWNER"}]
    start = lineage.of("flights.daily", "START")
    assert names(start["inputs"]) == names(complete["inputs"])
    assert lineage.of("flights.daily", "RUNNING")["inputs"] == []


def test_h6_names_are_those_of_the_specification(world: World, lineage: Lineage) -> None:
    from openlineage.client.naming.dataset import S3

    run_one(world, lineage)
    [weather, _] = lineage.of("flights.daily")["inputs"]
    official = S3("lake-bucket", "raw/weather")
    assert (weather["namespace"], weather["name"]) == (official.get_namespace(), official.get_name())


def test_h6_a_job_has_its_type_owner_tags_and_description(world: World, lineage: Lineage) -> None:
    run_one(world, lineage)
    job = lineage.of("flights.daily")["job"]["facets"]
    assert job["documentation"]["description"] == "cleans a day"
    assert job["ownership"]["owners"] == [{"name": "team:flights", "type": "OWNER"}]
    assert job["tags"]["tags"] == [{"key": "tier", "value": "gold", "source": "USER"}]
    kind = job["jobType"]
    assert (kind["processingType"], kind["integration"], kind["jobType"]) == ("BATCH", "SLUICE", "JOB")


def test_h6_a_failure_says_why_without_secrets(world: World, lineage: Lineage) -> None:
    run_one(world, lineage, "FAILED", "no space left; password=hunter2secret")
    error = facets(lineage.of("flights.daily", "FAIL"))["errorMessage"]
    assert "no space left" in error["message"]
    assert "hunter2secret" not in error["message"]
    check(lineage)


def test_h6_a_cancelled_run_is_aborted(world: World, lineage: Lineage) -> None:
    run_one(world, lineage, "CANCELLED", "by ann")
    assert "by ann" in facets(lineage.of("flights.daily", "ABORT"))["errorMessage"]["message"]


def test_h6_each_attempt_is_a_run_of_its_own(world: World, lineage: Lineage) -> None:
    retried = CLEAN | {"retries": {"attempts": 2, "delay": "1s"}}
    world.deploy(app(clean=retried))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED", "first")
    doze(world, "2m")
    world.finish()
    world.settle()
    lineage.work()
    check(lineage)
    assert [kind for _, kind in lineage.said() if kind != "RUNNING"] == ["START", "FAIL", "START", "COMPLETE"]
    assert len({event["run"]["runId"] for event in lineage.outlet.events}) == 2


def test_h6_a_fire_has_its_nominal_time(world: World, lineage: Lineage) -> None:
    hourly = {"workflow": "clean", "trigger": {"type": "time", "expression": "0 * * * *"}, "enabled": True}
    world.deploy(app({"hourly": hourly}, clean={"target": EMR, "reads": ["weather"]}))
    doze(world, "70m")
    lineage.work()
    start = lineage.of("flights.hourly", "START")
    assert facets(start)["nominalTime"]["nominalStartTime"].endswith("T13:00:00.000Z")
    assert names(start["inputs"]) == ["s3://lake-bucket/raw/weather"]


def test_h6_a_dag_run_is_the_parent_of_its_nodes(world: World, lineage: Lineage) -> None:
    world.deploy(dags.app(dag("a -> b")))
    world.upload(day(1))
    world.settle()
    ends(world, "a")
    ends(world, "b")
    lineage.work()
    check(lineage)
    whole = lineage.of("flights.daily", "COMPLETE")
    assert whole["job"]["facets"]["jobType"]["jobType"] == "DAG"
    parents = [facets(e)["parent"] for e in lineage.outlet.events if e["job"]["name"] != "flights.daily"]
    assert {each["run"]["runId"] for each in parents} == {whole["run"]["runId"]}
    assert {each["root"]["job"]["name"] for each in parents} == {"flights.daily"}
    said = [each for each in lineage.said() if each[1] != "RUNNING"]
    assert said[0] == ("flights.daily", "START")
    assert said[-1] == ("flights.daily", "COMPLETE")
    assert [each for each in said if each[1] == "COMPLETE"][:2] == [
        ("flights.daily.a", "COMPLETE"), ("flights.daily.b", "COMPLETE")
    ]  # fmt: skip
    [upstream] = facets(lineage.of("flights.daily.b", "START"))["jobDependencies"]["upstream"]
    assert upstream["job"]["name"] == "flights.daily.a"


@pytest.mark.parametrize("fields", [{}, {"concurrency": {"max": 1, "on_unmet": "wait"}}], ids=["plain", "limited"])
def test_h6_a_dag_run_fails_with_its_node_and_is_mended(world: World, lineage: Lineage, fields: Any) -> None:
    world.deploy(dags.app(dag("a -> b", "a -> c", **fields)))
    world.upload(day(1))
    world.settle()
    ends(world, "a")
    ends(world, "b", "FAILED", "disk full")
    ends(world, "c")
    lineage.work()
    failed = lineage.of("flights.daily", "FAIL")
    assert "node b is FAILED" in facets(failed)["errorMessage"]["message"]
    dags.rerun(world, "from", "b")
    world.settle()
    ends(world, "b")
    lineage.work()
    assert lineage.of("flights.daily", "COMPLETE")["run"]["runId"] == failed["run"]["runId"]
    for event in lineage.outlet.events:
        parsed(event)


def test_h6_a_dag_run_ends_with_a_node_that_never_ran(world: World, lineage: Lineage) -> None:
    window = {"type": "time_window", "start": "00:00", "end": "01:00", "on_unmet": "abort"}
    nodes = {"b": {"workflow": "w_b", "constraints": [window]}}
    world.deploy(dags.app(dag("a -> b", nodes=nodes)))
    world.upload(day(1))
    world.settle()
    ends(world, "a")
    lineage.work()
    assert [each for each in lineage.said() if each[0] == "flights.daily"][-1] == ("flights.daily", "FAIL")


def test_h6_elements_hang_below_their_node(world: World, lineage: Lineage) -> None:
    load = {"workflow": "w_load", "each": {"of": "scan", "path": "files"}}
    world.deploy(
        dags.app(dag("scan -> load", nodes={"load": load}), w_load=CLEAN | {"reads": [], "produces": ["weather"]})
    )
    world.upload(day(1))
    world.settle()
    ends(world, "scan", result=FILES)
    world.finish()
    world.settle()
    lineage.work()
    check(lineage)
    node = lineage.of("flights.daily.load")
    assert node["outputs"] == []
    each = [e for e in lineage.outlet.events if e["job"]["name"] == "flights.daily.load.each"]
    assert len({e["run"]["runId"] for e in each}) == 2
    assert {facets(e)["parent"]["run"]["runId"] for e in each} == {node["run"]["runId"]}
    root = lineage.of("flights.daily")["run"]["runId"]
    assert {facets(e)["parent"]["root"]["run"]["runId"] for e in each} == {root}
    assert {tuple(names(e["outputs"])) for e in each if e["eventType"] == "COMPLETE"} == {
        ("s3://lake-bucket/raw/weather",)
    }


def test_h6_a_message_is_no_run_of_a_job(world: World, lineage: Lineage) -> None:
    world.deploy(app({"tell": on(partition(), "notify")}))
    world.upload(day(1))
    world.settle()
    lineage.work()
    assert [run.state for run in world.runs("tell")] == ["SUCCEEDED"]
    assert lineage.said() == []


def test_h6_only_the_namespaces_that_are_named_are_reported(world: World) -> None:
    lineage = Lineage(world, ["other"])
    run_one(world, lineage)
    assert lineage.said() == []


def test_h6_spark_gets_the_run_as_its_parent(world: World, lineage: Lineage) -> None:
    own = {"spark.openlineage.appName": "mine", "spark.executor.cores": "2"}
    world.deploy(app(clean=CLEAN | {"target": EMR | {"spark": own}}))
    world.upload(day(1))
    world.settle()
    lineage.work()
    [run] = world.runs("daily")
    spark, start = run.request.target["spark"], lineage.of("flights.daily", "START")
    assert spark["spark.openlineage.parentRunId"] == start["run"]["runId"]
    assert spark["spark.openlineage.parentJobName"] == start["job"]["name"] == "flights.daily"
    assert spark["spark.openlineage.parentJobNamespace"] == start["job"]["namespace"]
    assert spark["spark.openlineage.appName"] == "mine"
    assert spark["spark.executor.cores"] == "2"


def test_h6_a_run_says_which_run_of_openlineage_it_is(world: World, lineage: Lineage) -> None:
    run_one(world, lineage)
    complete, [run] = lineage.of("flights.daily"), world.runs("daily")
    shown = views.run_in_full(world.ports, [run])["lineage"]
    assert shown == {**{name: complete["job"][own] for name, own in (("namespace", "namespace"), ("job", "name"))},
                     "run_id": complete["run"]["runId"]}  # fmt: skip


def test_h6_without_a_receiver_a_run_has_no_properties() -> None:
    world = World(wake_shards=1, history_shards=1)
    world.deploy(app())
    world.upload(day(1))
    world.settle()
    [run] = world.runs("daily")
    assert run.request.target["spark"] == {}
    assert "lineage" not in views.run_in_full(world.ports, [run])


# -- sending -----------------------------------------------------------------------------------------------------------


def test_h6_a_repeated_batch_has_the_same_events(world: World, lineage: Lineage) -> None:
    world.deploy(app())
    world.upload(day(1))
    world.settle()
    world.finish()
    world.settle()
    changes = list(lineage.changes)
    lineage.work()
    first = list(lineage.outlet.events)
    lineage.restart()
    lineage.outlet.events.clear()
    lineage.changes = changes
    assert lineage.work() == first
    lineage.changes = changes
    assert lineage.work() == []  # this process knows that it has sent them


def test_h6_an_hour_without_the_endpoint_loses_nothing(world: World, lineage: Lineage) -> None:
    lineage.outlet.judge = lambda item: Later("no answer", failed=True)
    run_one(world, lineage)
    assert lineage.said() == []
    doze(world, "1h")
    lineage.work()
    lineage.outlet.judge = lambda item: Sent()
    lineage.restart()
    lineage.work()
    assert [kind for _, kind in lineage.said()] == ["START", "RUNNING", "COMPLETE"]
    assert lineage.letters.kept == []


def test_h6_a_refused_event_is_kept_with_its_reason(world: World, lineage: Lineage) -> None:
    lineage.outlet.judge = lambda item: Refused("HTTP 400") if item.event["eventType"] == "START" else Sent()
    run_one(world, lineage)
    assert [kind for _, kind in lineage.said()] == ["RUNNING", "COMPLETE"]
    [(event, why)] = lineage.letters.kept
    assert (event["eventType"], why) == ("START", "HTTP 400")
    assert lineage.changes == []


def test_h6_an_event_that_is_not_taken_for_half_a_day_is_kept(world: World, lineage: Lineage) -> None:
    lineage.outlet.judge = lambda item: Later("HTTP 403")
    run_one(world, lineage)
    world.clock.pass_by("12h")
    lineage.work()
    assert [event["eventType"] for event, _ in lineage.letters.kept] == ["START", "RUNNING", "COMPLETE"]
    assert lineage.changes == []


def _one_bad(world: World, lineage: Lineage) -> str:
    """Two runs, of which the receiver takes no event of the first. Returns its id in OpenLineage."""
    world.deploy(app())
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    bad = next(subjects.family(PREFIX, c.row).own.run_id for c in lineage.changes if isinstance(c.row, Run))
    lineage.outlet.judge = lambda item: Later("HTTP 500", failed=True) if item.run_id == bad else Sent()
    return bad


def test_h6_one_event_that_fails_holds_up_others_for_minutes(world: World, lineage: Lineage) -> None:
    bad = _one_bad(world, lineage)
    assert len({event["run"]["runId"] for event in lineage.work()}) == 1
    world.clock.pass_by("14m")
    assert lineage.work() == []  # Lambda delivers it again, without anything that would be taken
    assert lineage.letters.kept == []
    world.clock.pass_by("1m")
    lineage.work()
    assert {event["run"]["runId"] for event, _ in lineage.letters.kept} == {bad}
    assert lineage.changes == []


def test_h6_an_error_after_an_outage_makes_no_dead_letter(world: World, lineage: Lineage) -> None:
    lineage.outlet.judge = lambda item: Later("no answer", failed=True)
    run_one(world, lineage)
    world.clock.pass_by("1h")
    _one_bad(world, lineage)
    lineage.work()
    assert lineage.letters.kept == []
    lineage.outlet.judge = lambda item: Sent()
    lineage.work()
    assert lineage.changes == lineage.letters.kept == []


def test_h6_events_that_fail_in_an_outage_fail_not_alone(world: World, lineage: Lineage) -> None:
    world.deploy(app())
    for number in range(1, 12):
        world.upload(day(number))
    world.settle()
    first = subjects.family(PREFIX, lineage.changes[0].row).own.run_id  # type: ignore[arg-type]
    lineage.outlet.judge = lambda item: Sent() if item.run_id == first else Later("HTTP 503", failed=True)
    lineage.work()
    for _ in range(2):
        world.clock.pass_by("20m")
        lineage.work()
    assert lineage.letters.kept == []


def test_h6_what_was_not_tried_is_no_dead_letter(world: World, lineage: Lineage) -> None:
    """An old backlog is sent, and the receiver asks for a pause."""
    lineage.outlet.judge = lambda item: Later("no answer", failed=True)
    run_one(world, lineage)
    world.clock.pass_by("13h")
    silent = Later("not tried", tried=False)
    lineage.outlet.judge = lambda item: Sent() if item.event["eventType"] == "START" else silent
    lineage.work()
    lineage.work()
    assert lineage.letters.kept == []
    world.clock.pass_by("15m")  # it takes nothing else
    lineage.work()
    assert [event["eventType"] for event, _ in lineage.letters.kept] == ["RUNNING", "COMPLETE"]


def test_h6_a_change_that_cannot_be_read_is_given_up(world: World, lineage: Lineage) -> None:
    run_one(world, lineage)
    lineage.restart()
    world.upload(day(2))
    world.settle()
    keys, reader = lineage.changes[0].keys, lineage.reader
    reader.known = _denied  # type: ignore[method-assign]
    lineage.work()
    world.clock.pass_by("14m")
    lineage.work()
    assert lineage.letters.unread == []
    assert lineage.changes != []
    again = list(lineage.changes)
    world.clock.pass_by("1m")
    lineage.work()
    assert lineage.letters.unread[0] == (keys, "RuntimeError: AccessDenied")
    assert lineage.changes == []
    kept, lineage.changes = len(lineage.letters.unread), again
    lineage.work()
    assert lineage.changes == []
    assert len(lineage.letters.unread) == kept


def _denied(run: Run) -> Any:
    raise RuntimeError("AccessDenied")


def test_h6_named_data_that_is_not_kept_is_not_looked_for(
    world: World, lineage: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_one(world, lineage)
    [run] = world.runs("daily")
    event = flow_context.events_of(world.ports, run)[0]
    monkeypatch.setattr(flow_context, "_named", lambda *_: _denied(run))
    asked = replace(run, run_id=f"{run.run_id}x", event=event, named=None)
    assert lineage.reader.known(asked).events == (event,)


def test_h6_a_dag_run_that_timed_out_has_one_end(world: World, lineage: Lineage) -> None:
    world.deploy(dags.app(dag("a -> b", run_timeout="1h")))
    world.upload(day(1))
    world.settle()
    doze(world, "90m")
    lineage.work()
    found = [event for event in lineage.outlet.events if event["job"]["name"] == "flights.daily"]
    assert [event["eventType"] for event in found] == ["START", "RUNNING", "FAIL"]
    assert "timed out" in facets(found[-1])["errorMessage"]["message"]


def test_h6_a_later_write_of_a_node_ends_no_dag_run(world: World, lineage: Lineage) -> None:
    world.deploy(dags.app(dag("a -> b")))
    world.upload(day(1))
    world.settle()
    ends(world, "a")
    ends(world, "b")
    last = next(c for c in reversed(lineage.changes) if c.row.schedule.endswith("b"))
    lineage.work()
    lineage.restart()
    late = replace(last, sequence="9", written=last.written + 16 * MINUTE)
    lineage.changes = [late]
    assert lineage.work() == []
    lineage.restart()
    lineage.changes = [last]
    assert ("flights.daily", "COMPLETE") in [(e["job"]["name"], e["eventType"]) for e in lineage.work()]


def test_h6_the_cost_of_a_run_is_counted(world: World, lineage: Lineage) -> None:
    """Three events a run. Documents are read once in five minutes: here a schedule, a workflow, three datasets."""
    world.deploy(app())
    for number in range(1, 11):
        world.upload(day(number))
    world.settle()
    reads: list[int] = []
    lineage.reader.ports = _counting(world, reads)
    lineage.work()
    world.finish()
    world.settle()
    lineage.work()
    assert len(lineage.outlet.events) == 30
    assert len(reads) == 5
    assert full("daily") in {run.schedule for run in world.runs("daily")}


def _counting(world: World, reads: list[int]) -> Any:
    inner = world.ports.rows

    class Rows:
        def get(self, *key: Any) -> Any:
            reads.append(1)
            return inner.get(*key)

    return world.with_ports(rows=Rows())
