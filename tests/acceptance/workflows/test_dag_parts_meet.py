"""W18, W19 and W20 together: nodes with elements, branches, and the limits of DAG runs."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.why import Why
from chalicelib.flow.backfills import backfill
from chalicelib.flow.dags import actions as flow
from chalicelib.flow.dags import elements as views_of
from chalicelib.flow.dags import runs as dag_runs
from chalicelib.flow.jobs import elements as of_elements
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.schedules import pauses
from chalicelib.flow.system import dispatch
from chalicelib.ports import Ports
from tests.acceptance.words import day, doze
from tests.acceptance.workflows.test_dag_each import DAILY, FILES, done, living, mapped, starts
from tests.acceptance.workflows.test_dag_limits import ONE, START, TEAM, active, backfilled, notices, states
from tests.support import dags
from tests.support.dags import edge, ends
from tests.support.world import World, full

WINDOW = {"type": "time_window", "start": "22:00", "end": "23:00", "on_unmet": "wait"}
RETRIED = {"retries": {"attempts": 3, "delay": "30m"}}
OVER = {"CANCELLED", "FAILED", "ABORTED", "SUCCEEDED", "BLOCKED", "SKIPPED"}


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def begin(
    world: World,
    *edges: Any,
    load: Any = None,
    nodes: Any = None,
    workflow: Any = None,
    result: Any = FILES,
    days: tuple[int, ...] = (1,),
    **fields: Any,
) -> None:
    """The DAG runs with these ``fields``, and the scan of the first run has handed on its result."""
    document = dags.app({**mapped(*edges, nodes=nodes, **(load or {})), **fields})
    document["workflows"]["w_load"] |= workflow or {}
    world.deploy(document)
    for number in days:
        world.upload(day(number))
        world.settle()
    if days:
        ends(world, "scan", result=result)


def elements_of(world: World, number: int = 0) -> dict[int, str]:
    run = dag_runs.begun(world.ports, DAILY, dags.views(world)[number]["run_id"])
    return {each["index"]: each["state"] for each in views_of.page(world.ports, run, "load", 100, None).items}


def end_run(world: World, how: str) -> None:
    """The first DAG run is cancelled, or its time is over."""
    if how == "cancel":
        run_actions.cancel(world.ports, world.runs(START)[0].run_id, "ann")
        world.settle()
    else:
        doze(world, "2h1m")
    for _ in range(4):
        world.pass_by("11m")


@pytest.mark.parametrize("how", ["cancel", "run_timeout"])
@pytest.mark.parametrize("what", ["run", "queued", "held", "retried", "not begun", "listed"])
def test_w20_the_end_of_a_run_ends_its_elements(world: World, how: str, what: str) -> None:
    queue = {"constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]}
    loads: dict[str, Any] = {
        "queued": queue,
        "held": {"constraints": [WINDOW]},
        "not begun": {"each": {"of": "scan", "path": "files", "concurrency": 1}},
    }
    workflow = RETRIED if what == "retried" else None
    limits: Any = {"concurrency": ONE, "run_timeout": "2h"}
    begin(world, load=loads.get(what), workflow=workflow, days=(1, 2), **limits)
    assert states(world) == ["RUNNING"]
    if what == "retried":
        for index in (0, 1):
            done(world, index, "FAILED")
    before = len(starts(world))
    end_run(world, how)
    assert states(world)[0] == "FAILED"
    nodes = dags.states(world)[0]
    assert nodes == {"scan": "SUCCEEDED", "load": "CANCELLED", "report": "ABORTED"}
    assert set(elements_of(world).values()) <= OVER
    assert living(world) == {}, "no element of the first run is active"
    after = [each.request["dag"]["run_id"] for each in world.targets.emr.runs.values() if "each" in each.request]
    if what != "retried":
        assert len(after) == before, "none began afterwards"
    [first, second] = world.runs(START)
    assert (first.state, second.state) == ("CANCELLED" if how == "cancel" else "FAILED", "RUNNING")
    assert active(world) == 1
    ends(world, "scan", result=FILES)
    if what == "held":
        return
    for index in range(3):
        done(world, index)
    ends(world, "report")
    assert (states(world), active(world)) == (["FAILED", "SUCCEEDED"], 0)


def test_w20_a_newer_run_takes_the_place_of_elements(world: World) -> None:
    load = {"each": {"of": "scan", "path": "files", "concurrency": 2}}
    begin(world, load=load, concurrency={"max": 1, "on_unmet": "cancel_other"})
    world.upload(day(2))
    world.settle()
    for _ in range(3):
        world.pass_by("11m")
    assert [run.state for run in world.runs(START)] == ["CANCELLED", "RUNNING"]
    assert living(world) == {}
    assert [index for index, _ in starts(world)] == [0, 1]


def test_w20_elements_rerun_alone_take_no_place(world: World) -> None:
    begin(world, concurrency=ONE, days=(1,))
    for index, outcome in enumerate(["SUCCESS", "FAILED", "SUCCESS"]):
        done(world, index, outcome)
    assert (states(world), active(world)) == (["FAILED"], 0)
    world.upload(day(2))
    world.settle()
    [first, _] = dags.views(world)
    dag_runs.rerun(world.ports, DAILY, first["run_id"], "from", "load", "tester", "r1", "failed")
    world.settle()
    assert (states(world), active(world)) == (["RUNNING", "RUNNING"], 1)
    assert sorted(living(world)) == [1]
    done(world, 1)
    ends(world, "report")
    assert (states(world), active(world)) == (["SUCCEEDED", "RUNNING"], 1)


@pytest.mark.parametrize("mode", ["full", "delta"])
def test_w19_elements_in_a_branch_run_if_it_is_taken(world: World, mode: str) -> None:
    edges = (
        edge("scan -> load", **{"if": {"mode": ["full"]}}),
        edge("scan -> delta", **{"if": {"mode": ["delta"]}}),
        "load -> report",
        "delta -> report",
    )
    nodes = {"report": {"workflow": "w_report", "when": "none_failed"}}
    begin(world, *edges, nodes=nodes, result={"mode": mode, **FILES}, concurrency=ONE)
    taken = mode == "full"
    found = dags.state(world)
    assert (found["load"], found["delta"]) == (("RUNNING", "SKIPPED") if taken else ("SKIPPED", "STARTING"))
    if taken:
        for index in range(3):
            done(world, index)
    else:
        ends(world, "delta")
    ends(world, "report")
    assert (states(world), active(world)) == (["SUCCEEDED"], 0)
    assert len(starts(world)) == (3 if taken else 0)


def test_w19_a_refused_result_fails_a_limited_run(world: World) -> None:
    begin(world, result={"files": ["x" * 11_000]}, concurrency=ONE, days=(1, 2))
    assert (states(world), active(world)) == (["FAILED", "RUNNING"], 1)
    assert starts(world) == []


def test_w20_a_branch_on_a_node_over_its_time(world: World) -> None:
    """A node that was cancelled has no result. What depends on it never starts."""
    edges = (edge("scan -> load", **{"if": {"files": [{"exists": True}]}}), "load -> report")
    document = dags.app({**mapped(*edges), "run_timeout": "2h", "concurrency": ONE})
    world.deploy(document)
    world.upload(day(1))
    world.settle()
    world.emr_says(dags.living(world)["scan"], "RUNNING")
    end_run(world, "run_timeout")
    assert dags.state(world) == {"scan": "CANCELLED", "load": "ABORTED", "report": "ABORTED"}
    assert (states(world), active(world)) == (["FAILED"], 0)


def test_w20_a_deadline_names_the_node_of_the_elements(world: World) -> None:
    begin(world, deadline={"end_within": "1h"}, notify=[{"on": ["missed_end"], "to": TEAM}])
    doze(world, "1h35m")  # the notice gathers others for half an hour
    [notice] = notices(world)
    assert "node load is RUNNING" in notice["events"][0]["reason"]
    for index in range(3):
        done(world, index)
    ends(world, "report")
    assert (states(world), len(notices(world))) == (["SUCCEEDED"], 1)


def test_w19_failed_elements_run_again_after_an_update(world: World) -> None:
    begin(world, concurrency=ONE, load={"each": {"of": "scan", "path": "files", "concurrency": 2}})
    done(world, 0, "FAILED")
    dags.put(world, {**mapped("load -> report", "scan -> load", "scan -> report"), "concurrency": ONE})
    world.settle()
    assert sorted(living(world)) == [1, 2], "the run goes on with its graph"
    done(world, 1)
    done(world, 2)
    assert (states(world), active(world)) == (["FAILED"], 0)
    dags.rerun(world, "from", "load", elements="failed")
    world.settle()
    assert sorted(living(world)) == [0]
    done(world, 0)
    ends(world, "report")
    assert (states(world), dags.ran(world).count("report")) == (["SUCCEEDED"], 1)


@pytest.mark.parametrize("restart", [False, True])
def test_w19_an_update_keeps_elements_that_wait(world: World, restart: bool) -> None:
    """The workflow changes while elements wait: they run once, with the new definition."""
    load = {"constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]}
    begin(world, load=load, concurrency=ONE)
    document = dags.app({**mapped(**load), "concurrency": ONE})
    document["workflows"]["w_load"]["timeout"] = "3h"
    world.deploy(document)
    if restart:
        document["dags"]["daily"]["nodes"]["load"]["priority"] = 3
        world.deploy(document)
    world.settle()
    for index in range(3):
        assert list(living(world)) == [index]
        done(world, index)
    ends(world, "report")
    assert (states(world), active(world), starts(world)) == (["SUCCEEDED"], 0, [(0, 1), (1, 1), (2, 1)])


def test_w20_a_backfill_counts_elements_until_their_end(world: World) -> None:
    begin(world, days=(), enabled=False, concurrency=ONE)
    for number in (1, 2):
        world.upload(day(number))
    row = backfilled(world, partitions={"dataset": "flights"}, only="all")
    world.settle()
    ends(world, "scan", result=FILES)
    assert states(world) == ["RUNNING"]
    for index, outcome in enumerate(["SUCCESS", "FAILED", "SUCCESS"]):
        done(world, index, outcome)
    world.pass_by("2m")
    assert states(world) == ["FAILED", "RUNNING"]
    ends(world, "scan", result={"files": []})
    ends(world, "report")
    world.pass_by("2m")
    row = backfill.existing(world.ports, full(START), row.id)
    assert (row.state, row.succeeded, row.failed, active(world)) == ("DONE", 1, 1, 0)
    again = backfilled(world, partitions={"dataset": "flights"}, only="failed")
    assert again.total == 1
    world.settle()
    ends(world, "scan", result=FILES)
    for index in range(3):
        done(world, index)
    ends(world, "report")
    world.pass_by("2m")
    assert backfill.existing(world.ports, full(START), again.id).succeeded == 1


def test_w19_elements_have_the_period_of_their_run(world: World) -> None:
    of_period = {"trigger": {"type": "partition", "dataset": "flights", "of": "period"}, "by": [], "per": "day"}
    document = dags.app({**mapped(), **of_period, "concurrency": ONE})
    document["datasets"]["flights"]["period"] = {"each": "day", "format": "year=%Y/month=%m/day=%-d"}
    world.deploy(document)
    world.upload(day(1))
    world.settle()
    ends(world, "scan", result=FILES)
    contexts = [run.request for run in world.targets.emr.runs.values()]
    periods = [context.get("period") for context in contexts]
    assert periods == [periods[0]] * 4 and periods[0] is not None


def test_w18_elements_are_given_the_results_before_them(world: World) -> None:
    begin(world)
    contexts = [run.request for run in world.targets.emr.runs.values()]
    assert [context["upstream"] for context in contexts[1:]]


@pytest.mark.parametrize("queued", [False, True])
def test_w19_a_deleted_dag_ends_its_limited_run(world: World, queued: bool) -> None:
    load: Any = {"constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]} if queued else {}
    begin(world, load=load, concurrency=ONE)
    flow.delete(world.ports, DAILY, "tester")
    world.settle()
    for index in list(living(world)):
        done(world, index)
    for _ in range(3):
        world.pass_by("11m")
    assert set(elements_of_deleted(world)) <= OVER
    assert living(world) == {}
    assert int(world.limit_state("dag:demo.flights.daily").active) == 0


def elements_of_deleted(world: World) -> list[str]:
    return [run.state for run in world.ports.runs.runs("workflow", full("w_load"), 50, None).items]


def test_w19_a_start_timeout_counts_for_each_element(world: World) -> None:
    workflow = {"start_timeout": "10m", "retries": {"attempts": 2, "delay": "30s"}}
    begin(world, workflow=workflow, concurrency=ONE)
    world.emr_says(living(world)[0], "RUNNING")
    for _ in range(3):
        world.pass_by("6m")
    found = elements_of(world)
    assert found[0] == "RUNNING"
    second = [run.request for run in world.targets.emr.runs.values() if run.request["attempt"] == 2]
    assert sorted(each["each"]["index"] for each in second) == [1, 2]
    for index in (0, 1, 2):
        done(world, index)
    ends(world, "report")
    assert (states(world), active(world)) == (["SUCCEEDED"], 0)


def test_w19_elements_that_never_begin_fail_the_node(world: World) -> None:
    begin(world, workflow={"start_timeout": "10m"}, concurrency=ONE)
    for _ in range(4):
        world.pass_by("11m")
    assert dags.state(world) == {"scan": "SUCCEEDED", "load": "FAILED", "report": "BLOCKED"}
    assert (states(world), active(world)) == (["FAILED"], 0)


def test_w19_aborted_elements_send_one_notice(world: World) -> None:
    """Notices tell of the node, once, and not of each element."""
    load = {"constraints": [WINDOW], "timeout": {"after": "1h"}}
    begin(world, load=load, workflow={"notify": [{"on": ["aborted", "failed"], "to": TEAM}]}, concurrency=ONE)
    doze(world, "2h")
    assert (states(world), active(world)) == (["FAILED"], 0)
    told = [event["what"] for notice in notices(world) for event in notice["events"]]
    assert told == ["failed"]


def test_w20_a_paused_dag_keeps_elements_and_its_place(world: World) -> None:
    load = {"each": {"of": "scan", "path": "files", "concurrency": 1}}
    begin(world, load=load, concurrency=ONE, days=(1, 2))
    pauses.pause_dag(world.ports, f"{DAILY}~", "hold", "ann")
    done(world, 0)
    world.pass_by("11m")
    assert (living(world), states(world), active(world)) == ({}, ["RUNNING"], 1)
    pauses.resume_dag(world.ports, f"{DAILY}~", "ann")
    world.settle()
    for index in (1, 2):
        done(world, index)
    ends(world, "report")
    assert (states(world), active(world)) == (["SUCCEEDED", "RUNNING"], 1)


def test_w20_a_drained_dag_ends_its_elements(world: World) -> None:
    """Elements that wait were met before the pause: they run, and so does the rest of the DAG run."""
    load = {"each": {"of": "scan", "path": "files", "concurrency": 1}}
    begin(world, load=load, concurrency=ONE)
    pauses.pause_dag(world.ports, f"{DAILY}~", "drain", "ann")
    world.settle()
    for index in range(3):
        done(world, index)
    ends(world, "report")
    assert (states(world), active(world)) == (["SUCCEEDED"], 0)


def test_w20_a_stop_keeps_elements_and_the_place(world: World) -> None:
    load = {"each": {"of": "scan", "path": "files", "concurrency": 1}}
    begin(world, load=load, concurrency=ONE)
    world.stop()
    done(world, 0)
    world.pass_by("11m")
    assert (living(world), active(world)) == ({}, 1)
    world.start()
    world.settle()
    for index in (1, 2):
        done(world, index)
    ends(world, "report")
    assert (states(world), active(world)) == (["SUCCEEDED"], 0)


def test_w20_a_rerun_of_elements_can_be_cancelled(world: World) -> None:
    begin(world, concurrency=ONE, run_timeout="2h", load={"each": {"of": "scan", "path": "files", "concurrency": 1}})
    for index in range(3):
        done(world, index, "FAILED")
    dags.rerun(world, "from", "load", elements="failed")
    world.settle()
    doze(world, "3h")
    assert sorted(living(world)) == [0], "a re-run has no run_timeout"
    run_actions.cancel(world.ports, dags.views(world)[0]["nodes"]["load"]["run_id"], "ann")
    for _ in range(3):
        world.pass_by("11m")
    assert dags.state(world) == {"scan": "SUCCEEDED", "load": "CANCELLED", "report": "BLOCKED"}
    assert [index for index, _ in starts(world)] == [0, 1, 2, 0]


def test_w4_a_dag_made_again_at_once_runs_its_nodes(world: World) -> None:
    """It is created, deleted and created within one millisecond. The third schedule of a node has a generation of its
    own, later than the clock."""
    document = dags.dag("a -> b")
    world.deploy(dags.app(document))
    for _ in range(2):
        flow.delete(world.ports, DAILY, "tester")
        dags.put(world, document)
    world.upload(day(1))
    world.settle()
    ends(world, "a")
    ends(world, "b")
    assert dags.state(world) == {"a": "SUCCEEDED", "b": "SUCCEEDED"}


def test_w19_a_retry_that_begins_meanwhile_is_cancelled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node is cancelled while an element waits for its next attempt, which begins in that moment."""
    begin(world, workflow={"retries": {"attempts": 2, "delay": "30s"}}, result={"files": ["a"]})
    done(world, 0, "FAILED")
    drop_at = of_elements.drop_at

    def begun_first(ports: Ports, key: tuple[str, int, str], why: Why) -> bool:
        world.clock.pass_by("31s")
        job = ports.rows.get(Job, *key)
        assert job is not None
        dispatch.dispatch(ports, ref_of(job))
        return drop_at(ports, key, why)

    monkeypatch.setattr(of_elements, "drop_at", begun_first)
    run_actions.cancel(world.ports, dags.views(world)[0]["nodes"]["load"]["run_id"], "ann")
    world.settle()
    assert [run.request["attempt"] for run in world.targets.emr.runs.values() if "each" in run.request] == [1, 2]
    assert living(world) == {}, "no poll has to find it"
