"""W19: what the workflow of a node with ``each`` promises to others counts by the node, once, and not by each element:
``fresh``, ``within``, the data that it produces, a re-processing. Its deadline counts for each element."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.rows.event import Partition
from chalicelib.flow.dags import elements as views_of
from chalicelib.flow.dags import runs as dag_runs
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.views.views import run_view
from sluice.operations.rules import recounted
from tests.acceptance.schedules import test_reprocess as reprocess
from tests.acceptance.words import day, doze
from tests.acceptance.workflows.test_dag_each import DAILY, FILES, done, living, mapped, rerun
from tests.acceptance.workflows.test_dag_limits import TEAM, notices
from tests.acceptance.workflows.test_incidents import incidents, left
from tests.core.notices.test_pagerduty import RULE
from tests.support import dags
from tests.support.dags import ends
from tests.support.schedules import BY_DAY, partitions
from tests.support.world import World, full

LIMIT = "workflow:demo.flights.w_load"
FRESH = {"type": "fresh", "workflows": ["w_load"], "within": "1h", "on_unmet": "wait"}
MADE = ("demo.made", ("2013", "01", "1"))


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def begin(world: World, schedules: Any = None, workflow: Any = None, result: Any = FILES, **load: Any) -> None:
    """The scan of the first day has handed on its list. The dataset ``made`` is what the workflow of load may make."""
    document = dags.app(mapped(*load.pop("edges", ()), **load), schedules)
    document["workflows"]["w_load"] |= workflow or {}
    document["datasets"]["made"] = {"bucket": "lake", "prefix": "made/", "keys": BY_DAY, "rewritten": "again"}
    world.deploy(document)
    world.upload(day(1))
    world.settle()
    ends(world, "scan", result=result)


def success(world: World) -> Any:
    return world.limit_state(LIMIT).last_success_at


def test_w19_fresh_asks_for_the_end_of_all_elements(world: World) -> None:
    """A schedule outside waits for load: it starts with the last element, not with the first one."""
    begin(world, {"after": partitions(workflow="join", constraints=[FRESH])})
    done(world, 0)
    world.pass_by("5m")
    assert (success(world), world.runs("after")) == (None, [])
    [job] = world.jobs("after")
    assert "w_load has not succeeded yet" in job.reason.text
    done(world, 1)
    assert world.runs("after") == []
    done(world, 2)
    assert (success(world), len(world.runs("after"))) == (world.clock.now(), 1)


def test_w19_a_node_that_failed_is_not_fresh(world: World) -> None:
    begin(world)
    for index, outcome in enumerate(["SUCCESS", "FAILED", "SUCCESS"]):
        done(world, index, outcome)
    assert success(world) is None
    [failed] = [
        run
        for run in world.ports.runs.runs("workflow", full("w_load"), 9, None).items
        if run.state == "FAILED" and run.element
    ]
    run_actions.rerun(world.ports, failed.run_id, "alone")
    world.settle()
    done(world, 1)
    assert success(world) is None, "a run of one element by itself is no success of the node"
    rerun(world, "from", "failed")
    done(world, 1)
    assert success(world) == world.clock.now()


def test_w19_an_empty_list_is_fresh(world: World) -> None:
    begin(world, result={"files": []})
    assert success(world) == world.clock.now()


def test_w19_a_repair_counts_the_success_of_the_node(world: World) -> None:
    """After a restore, the limit of the workflow is counted again, from the runs that there are."""
    begin(world)
    done(world, 0)
    world.clock.pass_by("5m")
    runs = lambda: list(world.ports.runs.runs("workflow", full("w_load"), 9, None).items)  # noqa: E731
    limits = {LIMIT: world.limit_state(LIMIT)}
    assert recounted.recounted(limits, runs(), {}).get(LIMIT, limits[LIMIT]).last_success_at is None
    done(world, 1)
    done(world, 2)
    lost = {LIMIT: limits[LIMIT]}
    assert recounted.recounted(lost, runs(), {})[LIMIT].last_success_at == success(world)


@pytest.mark.parametrize("waits", ["30m", "90m"])
def test_w19_within_counts_from_the_end_of_the_node(world: World, waits: str) -> None:
    """report needs a success of load within an hour. Its elements took hours, and it waits for a window."""
    window = {"type": "time_window", "start": "16:00", "end": "23:00", "on_unmet": "wait"}
    edges = ("scan -> load", dags.edge("load -> report", within="1h"))
    begin(world, edges=edges, nodes={"report": {"workflow": "w_report", "constraints": [window]}})
    done(world, 0)
    doze(world, "3h30m" if waits == "30m" else "2h30m")
    done(world, 1)
    done(world, 2)
    doze(world, waits)
    assert dags.state(world)["report"] == ("STARTING" if waits == "30m" else "ABORTED")


def test_w19_within_is_asked_once_for_the_list(world: World) -> None:
    """load needs a success of scan within an hour: elements that begin later count with the node."""
    edges = (dags.edge("scan -> load", within="1h"), "load -> report")
    begin(world, edges=edges, each={"concurrency": 1})
    done(world, 0)
    doze(world, "3h")
    done(world, 1)
    assert sorted(living(world)) == [2]
    done(world, 2)
    assert dags.state(world)["load"] == "SUCCEEDED"


REGISTERS = {"produces": [{"dataset": "made", "register": "on_success"}]}
USES = {"use": partitions(workflow="join", dataset="made", by=BY_DAY)}


def test_w19_the_node_registers_its_data_once(world: World) -> None:
    """The partition is that of the DAG run. It is there when all elements are done."""
    begin(world, USES, REGISTERS)
    for index, outcome in enumerate(["SUCCESS", "FAILED", "SUCCESS"]):
        done(world, index, outcome)
    assert (world.ports.rows.get(Partition, *MADE), world.runs("use")) == (None, [])
    rerun(world, "from", "failed")
    done(world, 1)
    row = world.ports.rows.get(Partition, *MADE)
    [used] = world.runs("use")
    whole = dags.views(world)[0]["nodes"]["load"]["run_id"]
    assert row is not None and row.event.run_id == whole
    [run] = world.ports.runs.attempts(whole)
    assert [each["partition"] for each in run_view(run)["registered"]] == [used.correlation]
    for run in world.ports.runs.runs("workflow", full("w_load"), 9, None).items:
        assert run.element is None or "registered" not in run_view(run)


def test_w19_data_that_is_made_again_is_told_once(world: World) -> None:
    """The node runs again whole: the dataset has ``rewritten: again``, so one more event comes, and not one for each
    element."""
    begin(world, USES, REGISTERS)
    for index in range(3):
        done(world, index)
    assert len(world.runs("use")) == 1
    world.finish()
    world.settle()
    dags.rerun(world, "from", "load")
    world.settle()
    for index in range(3):
        done(world, index)
    assert len(world.runs("use")) == 2


def test_w19_a_reprocessing_runs_what_follows_once(world: World) -> None:
    begin(world, USES, REGISTERS)
    for index in range(3):
        done(world, index)
    ends(world, "report")
    world.finish()
    world.settle()
    plan = reprocess.begin(world, partition={"year": "2013", "month": "01", "day": "1"})
    world.settle()
    ends(world, "scan", result={"files": ["a", "b"]})
    done(world, 0)
    assert len(world.runs("use")) == 1
    done(world, 1)
    ends(world, "report")
    for _ in range(3):
        world.pass_by("2m")
        world.finish()
        world.settle()
    assert (reprocess.seen(world, plan)["state"], len(world.runs("use"))) == ("DONE", 2)
    assert [view["state"] for view in dags.views(world)] == ["SUCCEEDED"] * 2


def test_w19_a_node_that_ends_well_ends_misses_of_elements(world: World) -> None:
    begin(world, workflow={"deadline": {"end_within": "1h"}, "notify": [{**RULE, "on": ["missed_end"]}]})
    doze(world, "1h2m")
    assert [action for action, _ in incidents(world)] == ["trigger"]
    for _ in range(3):
        world.finish()
        world.settle()
        world.pass_by("6m")
    assert [action for action, _ in incidents(world)][-1] == "resolve"
    assert left(world) == 0


def test_w19_the_deadline_counts_for_each_element(world: World) -> None:
    """Two of three elements are late. Each of them sends one notice, and the node sends none."""
    late = {"deadline": {"end_within": "1h"}, "notify": [{"on": ["missed_end"], "to": TEAM}]}
    begin(world, workflow=late)
    done(world, 0)
    for span in ("1h2m", "31m", "31m", "31m"):
        doze(world, span)
    events = [event for notice in notices(world) for event in notice["events"]]
    told = {event["id"]: event["reason"] for event in events}
    [run] = [dag_runs.begun(world.ports, DAILY, view["run_id"]) for view in dags.views(world)]
    found = {each["run_id"]: each["index"] for each in views_of.page(world.ports, run, "load", 9, None).items}
    assert sorted(found[run_id] for run_id in told) == [1, 2]
    assert {event["id"]: event["element"] for event in events} == {run_id: found[run_id] for run_id in told}
    assert set(told.values()) == {"not ended by 2026-03-02T13:00:00.000Z: the run is STARTING"}
