"""W19: a node with ``each`` runs once for each element of a list in the result of the node before it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.dags import elements
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.run import Run
from chalicelib.flow.dags import actions as flow
from chalicelib.flow.dags import elements as views_of
from chalicelib.flow.dags import runs as dag_runs
from chalicelib.flow.jobs import actions as job_actions
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.schedules import pauses
from chalicelib.flow.views import explain_dag
from tests.acceptance.words import day, doze
from tests.support import dags
from tests.support.dags import dag, ends, state
from tests.support.world import World, full

DAILY = full("daily")
FILES = {"files": ["a.csv", "b.csv", "c.csv"]}


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def mapped(*edges: Any, each: dict[str, Any] | None = None, nodes: Any = None, **load: Any) -> dags.Document:
    """scan hands on a list, load runs for each element, report follows."""
    own = {"workflow": "w_load", "each": {"of": "scan", "path": "files", **(each or {})}, **load}
    return dag(*(edges or ("scan -> load", "load -> report")), nodes={"load": own, **(nodes or {})})


def begin(world: World, result: Any = FILES, **fields: Any) -> None:
    """The DAG runs, and scan has handed on its result."""
    world.deploy(dags.app(mapped(**fields)))
    world.upload(day(1))
    world.settle()
    ends(world, "scan", result=result)


def living(world: World) -> dict[int, str]:
    """The elements whose runs are active at EMR, with the id of each there."""
    active = [run for run in world.targets.emr.runs.values() if run.state in ("SUBMITTED", "RUNNING")]
    return {run.request["each"]["index"]: run.id for run in active if "each" in run.request}


def done(world: World, index: int, outcome: str = "SUCCESS") -> None:
    run_id = living(world)[index]
    world.emr_says(run_id, "RUNNING")
    world.emr_says(run_id, outcome)
    world.settle()


def shown(world: World) -> dags.Document:
    return dag_runs.view(world.ports, dag_runs.begun(world.ports, DAILY, dags.views(world)[0]["run_id"]), in_full=True)


def listed(world: World, limit: int = 100, cursor: str | None = None) -> list[tuple[int, str]]:
    run = dag_runs.begun(world.ports, DAILY, dags.views(world)[0]["run_id"])
    return [(each["index"], each["state"]) for each in views_of.page(world.ports, run, "load", limit, cursor).items]


def rerun(world: World, what: Any, chosen: Any, request: str = "r1", node: str = "load") -> None:
    [view] = dags.views(world)
    dag_runs.rerun(world.ports, DAILY, view["run_id"], what, node, "tester", request, chosen)
    world.settle()


def starts(world: World) -> list[tuple[int, int]]:
    """The index and the round of each element that was started, in order."""
    contexts = [run.request for run in world.targets.emr.runs.values()]
    return [(each["each"]["index"], each["dag"]["round"]) for each in contexts if "each" in each]


def test_w19_a_node_runs_once_for_each_element(world: World) -> None:
    begin(world)
    assert state(world) == {"scan": "SUCCEEDED", "load": "RUNNING", "report": "PENDING"}
    given = [run.request["each"] for run in world.targets.emr.runs.values() if "each" in run.request]
    assert given == [{"index": n, "count": 3, "value": value} for n, value in enumerate(FILES["files"])]
    for index in (1, 0):
        done(world, index)
        assert state(world)["report"] == "PENDING", "the node is done when all are"
    done(world, 2)
    assert state(world) == {"scan": "SUCCEEDED", "load": "SUCCEEDED", "report": "STARTING"}
    ends(world, "report")
    assert dags.views(world)[0]["state"] == "SUCCEEDED"
    assert starts(world) == [(0, 1), (1, 1), (2, 1)]


def test_w19_an_element_is_any_json_value(world: World) -> None:
    values = ["text", 7, 1.5, None, True, {"file": "a", "rows": [1, 2.5]}, []]
    begin(world, {"files": values})
    contexts = [run.request["each"]["value"] for run in world.targets.emr.runs.values() if "each" in run.request]
    assert contexts == values


def test_w19_the_whole_result_may_be_the_list(world: World) -> None:
    begin(world, ["x", "y"], each={"path": None})
    assert sorted(living(world)) == [0, 1]


def test_w19_a_path_leads_into_objects(world: World) -> None:
    begin(world, {"new": {"files": ["x"]}}, each={"path": "new.files"})
    assert sorted(living(world)) == [0]


def test_w19_an_empty_list_is_a_success_of_none(world: World) -> None:
    begin(world, {"files": []})
    assert state(world) == {"scan": "SUCCEEDED", "load": "SUCCEEDED", "report": "STARTING"}
    load = shown(world)["nodes"]["load"]
    assert (load["elements"], load["why"].text) == (
        {"count": 0, "succeeded": 0, "failed": 0},
        "0 of 0 elements succeeded",
    )


@pytest.mark.parametrize(
    ("result", "each", "why"),
    [
        ({"files": [0] * 1001}, {}, "at most 1,000 elements in files of the result of scan, got 1,001"),
        (
            {"files": [1, 2, 3]},
            {"max": 2},
            "expected at most 2 elements in files of the result of scan, got 3; raise max",
        ),
        ({"files": "a.csv"}, {}, 'expected a list in files of the result of scan, got "a.csv"'),
        ({"paths": []}, {}, "got no files: there is an object with paths; correct the path"),
        ([1], {}, "got no files: there is [1]; correct the path"),
        (None, {}, "its run has no result; let its program hand one on"),
    ],
)
def test_w19_a_list_that_does_not_fit_fails_the_node(world: World, result: Any, each: Any, why: str) -> None:
    begin(world, result, each=each)
    view = shown(world)
    assert why in view["nodes"]["load"]["why"].text
    assert (view["state"], view["nodes"]["load"]["state"], view["nodes"]["report"]["state"]) == (
        "FAILED",
        "FAILED",
        "BLOCKED",
    )
    assert starts(world) == [], "nothing was started"


def test_w19_a_refused_result_is_the_reason(world: World) -> None:
    begin(world, {"files": ["x" * 11_000]})
    why = shown(world)["nodes"]["load"]["why"].text
    assert "its result was not kept: expected a result of at most 10,000 bytes of JSON" in why
    assert starts(world) == []


def test_w19_a_failed_element_fails_the_node_after_all(world: World) -> None:
    begin(world)
    done(world, 0, "FAILED")
    assert state(world)["load"] == "RUNNING", "the others go on"
    done(world, 1)
    done(world, 2, "FAILED")
    view = shown(world)
    assert view["state"] == "FAILED"
    assert view["nodes"]["load"]["why"].text == "2 of 3 elements failed: load[0], load[2]"
    assert view["nodes"]["report"]["state"] == "BLOCKED"
    [failure] = explain_dag.why_dag(world.ports, DAILY)["failures"]
    assert failure["next"].endswith("--from 'load[failed]'"), "what has succeeded need not run again"
    assert listed(world) == [(0, "FAILED"), (2, "FAILED"), (1, "SUCCEEDED")]


def test_w19_so_many_elements_are_under_way_at_once(world: World) -> None:
    begin(world, {"files": list("abcde")}, each={"concurrency": 2})
    assert sorted(living(world)) == [0, 1]
    done(world, 1)
    assert sorted(living(world)) == [0, 2]
    counts = shown(world)["nodes"]["load"]["elements"]
    assert counts == {"count": 5, "succeeded": 1, "failed": 0, "running": 2, "waiting": 2}
    active = [(0, "STARTING"), (2, "STARTING")]
    assert listed(world) == [*active, (3, "PENDING"), (4, "PENDING"), (1, "SUCCEEDED")]
    for index in (0, 2, 3, 4):
        done(world, index)
    assert state(world)["load"] == "SUCCEEDED"
    assert [index for index, _ in starts(world)] == [0, 1, 2, 3, 4]


def test_w19_limits_of_the_node_count_elements(world: World) -> None:
    """A concurrency of the workflow is one for elements, in the order of the list; the node itself needs no slot."""
    begin(world, {"files": list("abcd")}, constraints=[{"type": "concurrency", "max": 1, "on_unmet": "wait"}])
    for index in range(4):
        assert list(living(world)) == [index]
        done(world, index)
    assert state(world)["load"] == "SUCCEEDED"


def test_w19_retries_count_for_each_element(world: World) -> None:
    document = dags.app(mapped())
    document["workflows"]["w_load"]["retries"] = {"attempts": 2, "delay": "30s"}
    world.deploy(document)
    world.upload(day(1))
    world.settle()
    ends(world, "scan", result={"files": ["a", "b"]})
    done(world, 0, "FAILED")
    done(world, 1)
    assert state(world)["load"] == "RUNNING"
    doze(world, "1m")
    again = list(world.targets.emr.runs.values())[-1].request
    assert (again["each"]["index"], again["each"]["value"], again["attempt"]) == (0, "a", 2)
    done(world, 0)
    assert state(world)["load"] == "SUCCEEDED"


def test_w19_a_cancelled_job_of_an_element_is_an_end(world: World) -> None:
    window = {"type": "time_window", "start": "22:00", "end": "23:00", "on_unmet": "wait"}
    begin(world, {"files": ["a", "b"]}, constraints=[window], timeout={"after": "1h"})
    assert state(world)["load"] == "RUNNING"
    first, _ = _jobs(world)
    job_actions.withdraw(world.ports, first.job_id, "ann")
    world.settle()
    assert listed(world) == [(0, "ABORTED"), (1, "WAITING")]
    doze(world, "2h")
    assert state(world)["load"] == "FAILED"
    assert listed(world) == [(0, "ABORTED"), (1, "ABORTED")]


def _jobs(world: World) -> list[Any]:
    graph = flow.dag_view(world.ports, DAILY)["schedules"]
    return world.jobs(next(name for name in graph if name.endswith("~load")))


def test_w19_the_node_is_cancelled_with_its_elements(world: World) -> None:
    begin(world, {"files": list("abcde")}, each={"concurrency": 2})
    done(world, 0)
    run_actions.cancel(world.ports, dags.views(world)[0]["nodes"]["load"]["run_id"], "ann")
    world.settle()
    for run_id in living(world).values():
        world.emr_says(run_id, "CANCELLED")
    world.settle()
    assert state(world) == {"scan": "SUCCEEDED", "load": "CANCELLED", "report": "BLOCKED"}
    assert [index for index, _ in starts(world)] == [0, 1, 2], "no further one began"


def test_w19_a_deleted_dag_begins_no_further_element(world: World) -> None:
    begin(world, {"files": list("abcd")}, each={"concurrency": 2})
    flow.delete(world.ports, DAILY, "tester")
    world.settle()
    done(world, 0)
    done(world, 1)
    whole = _whole(world)
    assert (whole.state, [index for index, _ in starts(world)]) == ("FAILED", [0, 1])
    assert "the DAG was deleted before the others began" in whole.reason.text


def test_w19_a_paused_dag_holds_the_elements_that_wait(world: World) -> None:
    begin(world, {"files": list("abc")}, each={"concurrency": 1})
    pauses.pause_dag(world.ports, f"{DAILY}~", "hold", "ann")
    done(world, 0)
    assert living(world) == {}
    assert listed(world) == [(1, "WAITING"), (2, "PENDING"), (0, "SUCCEEDED")]
    pauses.resume_dag(world.ports, f"{DAILY}~", "ann")
    world.settle()
    for index in (1, 2):
        done(world, index)
    assert state(world)["load"] == "SUCCEEDED"


def test_w19_failed_elements_run_again_alone(world: World) -> None:
    begin(world)
    done(world, 0, "FAILED")
    done(world, 1)
    done(world, 2, "FAILED")
    rerun(world, "from", [2])
    assert sorted(living(world)) == [2]
    done(world, 2)
    assert shown(world)["nodes"]["load"]["why"].text == "1 of 3 elements failed: load[0]"
    rerun(world, "from", "failed", "r2")
    assert sorted(living(world)) == [0]
    done(world, 0)
    assert state(world) == {"scan": "SUCCEEDED", "load": "SUCCEEDED", "report": "STARTING"}
    assert starts(world) == [(0, 1), (1, 1), (2, 1), (2, 2), (0, 3)]
    assert listed(world) == [(0, "SUCCEEDED"), (1, "SUCCEEDED"), (2, "SUCCEEDED")]
    values = {run.request["each"]["value"] for run in world.targets.emr.runs.values() if "each" in run.request}
    assert values == set(FILES["files"])


def test_w19_an_element_run_again_alone_reaches_no_other_node(world: World) -> None:
    begin(world)
    done(world, 0, "FAILED")
    done(world, 1)
    done(world, 2)
    rerun(world, "only", "failed")
    done(world, 0)
    assert state(world) == {"scan": "SUCCEEDED", "load": "SUCCEEDED", "report": "BLOCKED"}


def test_w19_a_rerun_of_an_elements_run_changes_no_node(world: World) -> None:
    begin(world, {"files": ["a"]})
    done(world, 0, "FAILED")
    [failed] = world.ports.runs.attempts(elements.id_of(_whole(world).run_id, 0))
    run_actions.rerun(world.ports, failed.run_id, "again")
    world.settle()
    context = list(world.targets.emr.runs.values())[-1].request
    assert (context["each"], context["rerun_of"]) == ({"index": 0, "count": 1, "value": "a"}, failed.run_id)
    done(world, 0)
    assert state(world)["load"] == "FAILED"


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([3], "expected an element from load[0] to load[2], got load[3]"),
        ("failed", "expected elements of load that failed, got none"),
    ],
)
def test_w19_a_rerun_names_elements_that_there_are(world: World, chosen: Any, message: str) -> None:
    begin(world)
    for index in range(3):
        done(world, index)
    ends(world, "report")
    with pytest.raises(SluiceError, match=re.escape(message)):
        rerun(world, "from", chosen)


def test_w19_a_rerun_of_the_node_before_reads_the_list_anew(world: World) -> None:
    begin(world, {"files": ["a", "b"]})
    done(world, 0, "FAILED")
    done(world, 1)
    [view] = dags.views(world)
    dag_runs.rerun(world.ports, DAILY, view["run_id"], "from", "scan", "tester", "r1")
    world.settle()
    ends(world, "scan", result={"files": ["x", "y", "z"]})
    values = [run.request["each"]["value"] for run in world.targets.emr.runs.values() if "each" in run.request]
    assert values == ["a", "b", "x", "y", "z"]
    for index in range(3):
        done(world, index)
    assert state(world)["load"] == "SUCCEEDED"


def test_w19_joins_see_the_one_state_of_the_node(world: World) -> None:
    nodes = {"tidy": {"workflow": "w_tidy", "when": "all_done"}, "alarm": {"workflow": "w_alarm", "when": "one_failed"}}
    world.deploy(dags.app(mapped("scan -> load", "load -> tidy", "load -> alarm", nodes=nodes)))
    world.upload(day(1))
    world.settle()
    ends(world, "scan", result=FILES)
    done(world, 0, "FAILED")
    assert {state(world)[node] for node in nodes} == {"PENDING"}, "not before all are done"
    done(world, 1)
    done(world, 2)
    assert state(world) == {"scan": "SUCCEEDED", "load": "FAILED", "tidy": "STARTING", "alarm": "STARTING"}
    assert dags.ran(world).count("tidy") == dags.ran(world).count("alarm") == 1


def test_w19_a_schedule_outside_hears_of_the_node_once(world: World) -> None:
    """The statuses of elements reach nobody: a trigger on the workflow counts the node."""
    heard = {
        "workflow": "clean",
        "enabled": True,
        "coalesce": False,
        "trigger": {"type": "program_status", "workflow": "w_load", "statuses": ["COMPLETED"]},
    }
    world.deploy(dags.app(mapped(), {"outside": heard}))
    world.upload(day(1))
    world.settle()
    ends(world, "scan", result=FILES)
    for index in (0, 1):
        done(world, index)
    assert world.runs("outside") == []
    done(world, 2)
    assert len(world.runs("outside")) == 1


def test_w19_an_approval_is_asked_once(world: World) -> None:
    begin(world, constraints=[{"type": "approval", "role": "lead"}])
    [whole] = _jobs(world)
    assert state(world)["load"] == "WAITING"
    job_actions.approve(world.ports, whole.job_id, "arn:aws:sts::000000000000:assumed-role/lead/ann")
    world.settle()
    assert sorted(living(world)) == [0, 1, 2], "the elements ask nobody"


def _whole(world: World) -> Run:
    """The run of the node load."""
    return world.ports.runs.attempts(dags.views(world)[0]["nodes"]["load"]["run_id"])[-1]


@pytest.mark.parametrize(
    ("edges", "load", "message"),
    [
        (("scan -> check", "check -> load"), {}, r"a node directly before load \(check\), got 'scan'"),
        (
            ("scan -> load",),
            {"when": "always"},
            "a rule that waits for all nodes before a node with each, got 'always'",
        ),
        (("scan -> load",), {"each": {"of": "scan", "max": 1001}}, "less than or equal to 1000|at most 1,?000"),
        (("scan -> load",), {"each": {"of": "scan", "concurrency": 0}}, "greater than or equal to 1|at least 1"),
    ],
)
def test_w19_a_document_that_cannot_be(world: World, edges: Any, load: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        world.deploy(dags.app(mapped(*edges, **load)))


def test_w19_elements_of_elements_are_refused(world: World) -> None:
    nodes = {"parse": {"workflow": "w_parse", "each": {"of": "load"}}}
    with pytest.raises(ValidationError, match="a node without each: the elements of one have a result each"):
        world.deploy(dags.app(mapped("scan -> load", "load -> parse", nodes=nodes)))


def test_w19_no_branch_asks_for_a_result_of_elements(world: World) -> None:
    with pytest.raises(ValidationError, match="no if after a node with each"):
        world.deploy(dags.app(mapped("scan -> load", dags.edge("load -> report", **{"if": {"mode": ["full"]}}))))


def test_w19_a_target_that_reports_no_end_has_no_elements(world: World) -> None:
    queue = {"target": {"type": "sqs", "queue_url": "https://sqs.eu-west-1.amazonaws.com/000000000000/q"}}
    with pytest.raises(SluiceError, match="the node is done when each element is"):
        world.deploy(dags.app(mapped("scan -> load"), w_load=queue))


def test_w19_no_schedule_has_each(world: World) -> None:
    world.deploy(dags.app(mapped()))
    document = {"workflow": "clean", "trigger": {"type": "partition", "dataset": "flights"}, "each": {"of": "scan"}}
    with pytest.raises(SluiceError, match="no each: only a node of a DAG has a list before it"):
        world.put("own", document)


def test_w19_the_run_of_the_node_needs_no_permit(world: World) -> None:
    begin(world)
    whole = _whole(world)
    assert (whole.permits, whole.target_kind, whole.state) == ((), "each", "RUNNING")


def test_w19_a_rerun_says_where_it_may_begin(world: World) -> None:
    """The node before it cannot run either: the hint names the one that can."""
    begin(world, {"files": ["a"]})
    done(world, 0, "FAILED")
    with pytest.raises(SluiceError) as refused:
        rerun(world, "from", None, node="report")
    assert (refused.value.message, refused.value.hint) == (
        "expected a node whose upstreams have ended as it needs, got report: it needs load COMPLETED, which is FAILED",
        "begin from load",
    )
    with pytest.raises(SluiceError, match=re.escape("a node with each (load), got 'report'")):
        rerun(world, "from", "failed", node="report")


def test_w20_why_names_a_run_of_the_dag_once(world: World) -> None:
    begin(world)
    [view] = dags.views(world)
    said = explain_dag.why_dag(world.ports, DAILY)["why"].text
    active = "node load is running: 0 of 3 elements succeeded; node report is pending: waits for load"
    assert said.startswith(f"run {view['run_id']}, {active}")
    assert said.count(view["run_id"]) == 1
