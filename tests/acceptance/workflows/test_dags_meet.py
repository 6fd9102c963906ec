"""W4: DAGs and the other features of Sluice: re-runs, deletes, pools, priorities, retries, workers."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.history import lines
from chalicelib.core.instants import HOUR
from chalicelib.flow.dags import actions as flow
from chalicelib.flow.dags import runs as dag_runs
from chalicelib.flow.runs import actions
from chalicelib.flow.schedules import actions as schedule_actions
from tests.acceptance.words import doze
from tests.acceptance.workflows.test_dags import begin
from tests.acceptance.workflows.test_notices import notices, tells, whats
from tests.support import dags
from tests.support.clock import NOON
from tests.support.dags import dag, edge, ends, ran, rerun, state, views
from tests.support.pull_workers import PULLED, PullWorker
from tests.support.schedules import partitions
from tests.support.world import EMR, SQS, World, full


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def run_of(world: World, node: str) -> Any:
    """The run of a node in the only run of the DAG."""
    [view] = views(world)
    return world.ports.runs.attempts(view["nodes"][node]["run_id"])[-1]


def test_w15_a_node_run_rerun_alone_belongs_to_no_dag_run(world: World) -> None:
    """As with ``only``: its downstream nodes have run, and do not run once more."""
    world.deploy(dags.app(dag("a -> b", "b -> c")))
    begin(world)
    for node in ("a", "b", "c"):
        ends(world, node)
    first = run_of(world, "b")

    again = actions.rerun(world.ports, first.run_id, "r1")
    world.settle()
    ends(world, "b")
    assert ran(world) == ["a", "b", "c", "b"]
    assert world.ports.runs.attempts(again)[-1].state == "SUCCEEDED"
    assert state(world) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "SUCCEEDED"}
    world.pass_by("5m")
    assert [job for name in flow.owned(world.ports, full("daily")) for job in world.jobs(name)] == []


def test_w15_a_rerun_of_the_start_of_a_dag_begins_a_new_dag_run(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    begin(world)
    ends(world, "a")
    ends(world, "b")
    world.clock.pass_by("1s")
    [view] = views(world)
    actions.rerun(world.ports, view["run_id"], "r1")
    world.settle()
    ends(world, "a")
    ends(world, "b")
    assert [each["state"] for each in views(world)] == ["SUCCEEDED", "SUCCEEDED"]
    assert views(world)[1]["partition"] == view["partition"]


def test_w4_runs_of_a_deleted_dag_are_shown_as_they_are(world: World) -> None:
    world.deploy(dags.app(dag("a -> b", "b -> c")))
    begin(world, 1)
    ends(world, "a")
    flow.delete(world.ports, full("daily"), "tester")
    assert views(world)[0]["state"] == "RUNNING"
    world.finish()
    world.settle()
    [view] = views(world)
    assert (view["state"], state(world)) == ("FAILED", {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "BLOCKED"})
    assert view["nodes"]["c"]["why"] == "the DAG was deleted before this node was reached"


def test_w4_a_recreated_dag_keeps_the_history_but_none_of_runs(world: World) -> None:
    document = dag("a -> b")
    world.deploy(dags.app(document))
    begin(world, 1)
    ends(world, "a")
    ends(world, "b")
    world.clock.pass_by("1s")
    begin(world, 2)
    world.clock.pass_by("1s")
    flow.delete(world.ports, full("daily"), "tester")
    world.clock.pass_by("1s")
    assert dags.put(world, document) == "created"
    ends(world, "a")
    assert ran(world) == ["a", "b", "a"], "nothing follows a node of a DAG that was deleted"
    assert [view["state"] for view in views(world)] == ["SUCCEEDED", "FAILED"]
    with pytest.raises(SluiceError, match="a graph that still exists"):
        dag_runs.rerun(world.ports, full("daily"), views(world)[0]["run_id"], "all", None, "tester", "r1")

    begin(world, 3)
    ends(world, "a")
    ends(world, "b")
    assert [view["state"] for view in views(world)] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]


def test_w4_a_rerun_after_days_is_in_time_if_it_starts_at_once(world: World) -> None:
    """Deadlines count from the re-run: its upstreams ended long ago."""
    late = {"start_within": "10m", "end_within": "1h", "from": "nominal"}
    answer = {"target": EMR, "deadline": late, "notify": [tells("missed_start", "missed_end")]}
    world.deploy(dags.app(dag("a -> b"), w_b=answer))
    begin(world)
    ends(world, "a")
    ends(world, "b", "FAILED")
    world.clock.pass_by("3d")
    world.pass_by("2m")
    rerun(world, "from", "b")
    world.settle()
    world.pass_by("5m")
    ends(world, "b")
    world.pass_by("5m")
    assert notices(world) == []


def test_h5_a_manual_rerun_has_no_deadline_in_the_past(world: World) -> None:
    late = {"start_within": "10m", "end_within": "1h"}
    answer = {"target": EMR, "deadline": late, "notify": [tells("missed_start", "missed_end")]}
    world.deploy(dags.app(dag("a -> b"), w_a=answer))
    begin(world)
    ends(world, "a", "FAILED")
    world.clock.pass_by("3d")
    world.pass_by("2m")
    again = actions.rerun(world.ports, run_of(world, "a").run_id, "r1")
    world.settle()
    world.pass_by("5m")
    assert notices(world) == []
    assert lines.waited(world.ports.runs.attempts(again)[0]) == 0, "nor has it waited since then"


def test_w4_priority_is_inherited_along_the_edges_of_a_dag(world: World) -> None:
    """``up`` leads to an urgent node, two edges on. It goes before a job whose priority is above its own."""
    one = [{"type": "concurrency", "max": 1, "group": "g", "on_unmet": "wait"}]
    nodes = {
        "plain": {"workflow": "w_plain", "constraints": one, "priority": 6},
        "up": {"workflow": "w_up", "constraints": one, "priority": 2},
        "last": {"workflow": "w_last", "priority": 9},
    }
    document = dags.app(dag("plain -> tail", "up -> middle", "middle -> last", nodes=nodes))
    going = {"workflow": "clean", "trigger": {"type": "event", "event": "go"}, "constraints": one, "enabled": True}
    world.deploy({**document, "schedules": {"going": going}})
    world.post("go")
    world.settle()
    begin(world)
    [view] = views(world)
    assert view["nodes"]["up"]["why"].endswith("; priority 9, inherited from demo.flights.daily/last")
    assert "inherited_priority" not in view["nodes"]["plain"]["why"]
    world.finish()
    world.settle()
    assert set(dags.living(world)) == {"up"}


def test_w4_all_nodes_have_the_instant_of_dag_run_in_reruns_too(world: World) -> None:
    world.deploy(dags.app(dag("a -> b", trigger={"type": "time", "expression": "0 0 * * *"}, by=[])))
    world.pass_by("12h1m")
    ends(world, "a")
    ends(world, "b")
    world.clock.pass_by("3d")
    rerun(world, "from", "b")
    world.settle()
    answer = [run.request["logical_start_time"] for run in world.targets.emr.runs.values()]
    assert answer == [NOON + 12 * HOUR] * 3


def test_w4_a_page_of_dag_runs_is_bounded_and_can_be_continued(world: World) -> None:
    world.deploy(dags.app(dag("a -> b")))
    for number in range(1, dag_runs.MAX_SHOWN + 3):
        begin(world, number)
        world.clock.pass_by("1s")
    first = dag_runs.page(world.ports, full("daily"), 500, None)
    assert len(first.items) == dag_runs.MAX_SHOWN
    rest = dag_runs.page(world.ports, full("daily"), 500, first.cursor)
    assert (len(rest.items), rest.cursor) == (2, None)


def test_w4_nodes_share_a_pool_and_a_rerun_is_numbered(world: World) -> None:
    pooled = {"target": EMR, "pool": "small"}
    document = dags.app(dag("a -> d", "b -> d", "c -> d"), w_a=pooled, w_b=pooled, w_c=pooled)
    world.deploy({**document, "pools": {"small": {"size": 1, "unit": "slots"}}})
    begin(world)
    for _ in range(3):
        [node] = dags.living(world)
        waiting = [answer for answer in views(world)[0]["nodes"].values() if answer["state"] == "WAITING"]
        assert all("pool demo.small" in answer["why"] or answer["why"].startswith("waits for") for answer in waiting)
        ends(world, node)
    ends(world, "d")
    assert views(world)[0]["state"] == "SUCCEEDED"
    rerun(world, "only", "d")
    world.settle()
    ends(world, "d")
    assert [run.number for run in (run_of(world, "a"), run_of(world, "d"))] == [1, 2]


def test_w4_a_node_fails_after_the_last_attempt_of_its_retries(world: World) -> None:
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
    once = {"target": EMR, "retries": {"attempts": 2, "delay": "30s", "on": ["lost"]}}
    tidy = edge("a -> tidy", on=["FAILED"])
    world.deploy(dags.app(dag("a -> b", tidy), w_a=retried, w_b=once))
    begin(world)
    ends(world, "a", "FAILED")
    assert state(world) == {"a": "RETRYING", "b": "PENDING", "tidy": "PENDING"}
    world.pass_by("31s")
    ends(world, "a")
    ends(world, "b", "FAILED")
    assert state(world) == {"a": "SUCCEEDED", "b": "FAILED", "tidy": "SKIPPED"}
    assert ran(world) == ["a", "a", "b"]


def test_w4_a_node_may_be_the_work_of_a_pull_worker(world: World) -> None:
    pulled = {"target": PULLED, "retries": {"attempts": 2, "delay": "10s"}}
    world.deploy(dags.app(dag("a -> b", "b -> c"), w_b=pulled))
    begin(world)
    ends(world, "a")
    ann = PullWorker(world, "ann")
    [lease] = ann.claim()
    assert lease["context"]["dag"]["node"] == "b"
    ann.beat()
    world.pass_by("3m")
    assert state(world)["b"] in ("RETRYING", "STARTING"), "its worker died"
    world.pass_by("1m")
    ann.claim()
    ann.beat()
    ann.succeed()
    world.settle()
    ends(world, "c")
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w4_a_last_node_may_be_a_message_which_a_rerun_repeats(world: World) -> None:
    world.deploy(dags.app(dag("a -> b"), w_b={"target": SQS}))
    begin(world)
    ends(world, "a")
    assert (views(world)[0]["state"], len(world.targets.queue.messages)) == ("SUCCEEDED", 1)
    rerun(world, "only", "b")
    world.settle()
    assert len({run_id for run_id, _ in world.targets.queue.messages}) == 2


def test_w9_a_failed_or_aborted_node_is_notified_by_its_workflow(world: World) -> None:
    answer = {"target": EMR, "notify": [tells("failed", "aborted")]}
    world.deploy(dags.app(dag(edge("a -> c", within="2h"), "b -> c"), w_b=answer, w_c=answer))
    begin(world)
    ends(world, "a")
    world.clock.pass_by("3h")
    ends(world, "b")
    world.pass_by("2s")
    [notice] = notices(world)
    assert (whats(notice), notice["workflow"]) == (["aborted"], "demo.flights.w_c")
    assert notice["events"][0]["reason"] == views(world)[0]["nodes"]["c"]["why"].removeprefix("aborted: ")


def test_w2_putting_dag_reads_no_waiting_job_of_other_schedules() -> None:
    """Its nodes wait only for runs of their own DAG, and pass priority to no other jobs. So long queues
    cost nothing.
    """

    def calls(waiting: int) -> int:
        world = World(wake_shards=1, history_shards=1)
        one = [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]
        nodes = {name: {"workflow": "clean"} for name in "abcd"}
        document = dags.app(dag("a -> b", "b -> c", "c -> d", nodes=nodes), {"s": partitions(constraints=one)})
        world.deploy({**document, "dags": {}})
        for number in range(waiting + 1):
            schedule_actions.run_now(world.ports, full("s"), {}, f"r{number}")
            world.settle()
        assert world.limit_state("workflow:demo.flights.clean").waiters == waiting
        made: list[int] = []
        world.tables.before_call = lambda: made.append(1)
        assert dags.put(world, document["dags"]["daily"]) == "created"
        return len(made)

    assert calls(1) == calls(20)


def test_w9_a_successful_rerun_ends_the_alarm_of_waiting_nodes(world: World) -> None:
    document = dags.app(dag("a -> c", "b -> c"), w_c={"target": EMR, "notify": [tells("aborted")]})
    world.deploy(document)
    begin(world)
    ends(world, "a")
    ends(world, "b", "FAILED")
    rerun(world, "from", "b")
    world.settle()
    ends(world, "b")
    ends(world, "c")
    doze(world, "25h")
    assert (views(world)[0]["state"], notices(world)) == ("SUCCEEDED", [])
