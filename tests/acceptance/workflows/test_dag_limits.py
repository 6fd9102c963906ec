"""W20: the runs of a DAG have a limit, a deadline and a timeout, until they end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.core.backfills.request import Backfill as BackfillRequest
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.backfill import Backfill
from chalicelib.flow.backfills import backfill
from chalicelib.flow.dags import actions as flow
from chalicelib.flow.dags import runs
from chalicelib.flow.jobs.actions import withdraw
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.views import explain_dag
from tests.acceptance.words import day, doze, reasons
from tests.support import dags
from tests.support.answers import read
from tests.support.dags import dag, ends, living, ran, rerun, views
from tests.support.world import World, full

TEAM = {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:team"}
ONE = {"max": 1, "on_unmet": "wait"}
START = "daily~"


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def begin(world: World, *numbers: int) -> None:
    for number in numbers or (1,):
        world.upload(day(number))
        world.settle()


def deploy(world: World, *edges: Any, nodes: dict[str, Any] | None = None, **fields: Any) -> None:
    world.deploy(dags.app(dag(*(edges or ("a -> b",)), nodes=nodes, **fields)))


def states(world: World) -> list[str]:
    return [view["state"] for view in views(world)]


def active(world: World) -> int:
    return int(world.limit_state("dag:demo.flights.daily").active)


def shown(world: World, run_id: str) -> Any:
    return read(runs.find(world.ports, full("daily"), run_id))


def why(world: World) -> str:
    return str(read(explain_dag.why_dag(world.ports, full("daily")))["why"])


def notices(world: World) -> list[Any]:
    sent = zip(world.targets.queue.messages, world.targets.queue.data, strict=True)
    return [json.loads(str(data["text"])) for (run_id, _), data in sent if ".~notice-" in run_id and data is not None]


# -- concurrency -------------------------------------------------------------------------------------------------------


def test_w20_a_run_waits_until_the_run_before_has_ended(world: World) -> None:
    deploy(world, concurrency=ONE)
    begin(world, 1, 2)
    assert states(world) == ["RUNNING"]
    ends(world, "a")
    assert (states(world), active(world)) == (["RUNNING"], 1), "not the first node ends a run, but the last"
    ends(world, "b")
    assert (states(world), active(world)) == (["SUCCEEDED", "RUNNING"], 1)
    ends(world, "a")
    ends(world, "b")
    assert (states(world), active(world)) == (["SUCCEEDED", "SUCCEEDED"], 0)
    assert [run.state for run in world.runs(START)] == ["SUCCEEDED", "SUCCEEDED"]


def test_w20_a_waiting_run_says_what_it_waits_for(world: World) -> None:
    deploy(world, concurrency=ONE)
    begin(world, 1, 2)
    [job] = world.jobs(START)
    view = shown(world, job.job_id)
    assert (view["state"], view["started_at"]) == ("WAITING", None)
    assert "DAG demo.flights.daily: 1 of 1" in view["why"]
    assert view["nodes"]["a"]["state"] == "PENDING"
    assert "DAG demo.flights.daily: 1 of 1" in why(world)


def test_w20_a_run_that_waits_is_not_run_again(world: World) -> None:
    deploy(world, concurrency=ONE)
    begin(world, 1, 2)
    [job] = world.jobs(START)
    with pytest.raises(SluiceError, match="a DAG run that has begun, got one that waits: .*1 of 1") as refused:
        runs.rerun(world.ports, full("daily"), job.job_id, "all", None, "ada", "r-1")
    assert refused.value.code == "conflict"


def test_w20_another_run_is_aborted_on_record(world: World) -> None:
    deploy(world, concurrency={"max": 1})
    begin(world, 1, 2)
    assert states(world) == ["RUNNING"]
    [reason] = reasons(world, START)
    assert reason.startswith("ABORTED: at most 1 run of the workflow at a time, else abort: 1 of 1 in use")


def test_w20_a_newer_run_can_take_the_place(world: World) -> None:
    deploy(world, concurrency={"max": 1, "on_unmet": "cancel_other"})
    begin(world, 1, 2)
    world.pass_by("1m")
    assert states(world) == ["FAILED", "RUNNING"]
    assert [run.state for run in world.runs(START)] == ["CANCELLED", "RUNNING"]
    assert views(world)[0]["nodes"]["a"]["state"] == "CANCELLED"
    assert ran(world) == ["a", "a"]


@pytest.mark.parametrize("end", ["failed", "blocked", "cancelled", "aborted", "skipped", "dropped"])
def test_w20_each_end_of_a_run_frees_its_place(world: World, end: str) -> None:
    window = {"type": "time_window", "start": "03:00", "end": "03:01", "on_unmet": "abort"}
    late = {"type": "time_window", "start": "03:00", "end": "03:01", "on_unmet": "wait"}
    nodes = {
        "aborted": {"b": {"workflow": "w_b", "constraints": [window]}},
        "dropped": {"b": {"workflow": "w_b", "constraints": [late]}},
        "skipped": {"b": {"workflow": "w_b", "when": "one_failed"}},
    }
    deploy(world, nodes=nodes.get(end), concurrency=ONE)
    begin(world, 1, 2)
    if end in ("failed", "blocked"):
        ends(world, "a", "FAILED")
    elif end == "cancelled":
        run_actions.cancel(world.ports, world.runs(START)[0].run_id, "ann")
        world.pass_by("1m")
    else:
        ends(world, "a")
    if end == "dropped":
        graph = flow.dag_view(world.ports, full("daily"))["schedules"]
        [job] = world.jobs(next(name for name in graph if name.endswith("~b")))
        withdraw(world.ports, job.job_id, "ann")
        world.settle()
    states_of = {"skipped": ["SUCCEEDED", "RUNNING"]}
    assert states(world) == states_of.get(end, ["FAILED", "RUNNING"])
    assert active(world) == 1


def test_w20_a_cancelled_run_ends_all_its_nodes(world: World) -> None:
    nodes = {"z": {"workflow": "w_z", "when": "all_done"}}
    deploy(world, "a -> b", "x -> c", "c -> z", nodes=nodes, concurrency=ONE)
    begin(world)
    ends(world, "x")
    run_actions.cancel(world.ports, world.runs(START)[0].run_id, "ann")
    world.pass_by("15m")
    found = dags.state(world)
    assert found["x"] == "SUCCEEDED" and not {*found.values()} & {"RUNNING", "STARTING", "PENDING", "WAITING"}
    assert [run.state for run in world.runs(START)] == ["CANCELLED"]
    assert active(world) == 0


def test_w20_a_deleted_dag_frees_its_places(world: World) -> None:
    deploy(world, concurrency=ONE)
    begin(world)
    flow.delete(world.ports, full("daily"), "ann")
    world.clock.pass_by("1s")
    deploy(world, concurrency=ONE)
    begin(world, 2)
    assert len(views(world)) == 1, "a node of the deleted DAG still runs"
    ends(world, "a")
    world.pass_by("11m")
    assert states(world)[-1] == "RUNNING"


def test_w20_a_rerun_takes_no_place(world: World) -> None:
    """A person who runs a part again decides when: the re-run waits for no place, and holds none."""
    deploy(world, concurrency=ONE)
    begin(world)
    ends(world, "a", "FAILED")
    assert active(world) == 0
    rerun(world, "from", "a")
    world.settle()
    assert (states(world), active(world)) == (["RUNNING"], 0)
    begin(world, 2)
    assert states(world) == ["RUNNING", "RUNNING"]
    ends(world, "a")
    ends(world, "a")
    ends(world, "b")
    ends(world, "b")
    assert states(world) == ["SUCCEEDED", "SUCCEEDED"]
    assert why(world).startswith("nothing waits") or "failed" not in why(world)


def test_w20_the_limit_holds_through_a_change_of_the_graph(world: World) -> None:
    deploy(world, concurrency=ONE)
    begin(world)
    dags.put(world, dag("b -> a", concurrency=ONE))
    begin(world, 2)
    assert states(world) == ["RUNNING"]
    ends(world, "a")
    ends(world, "b")
    assert states(world) == ["SUCCEEDED", "RUNNING"]
    assert list(living(world)) == ["b"]


def test_w20_a_greater_limit_starts_what_waits(world: World) -> None:
    deploy(world, concurrency=ONE)
    begin(world, 1, 2, 3)
    deploy(world, concurrency={"max": 3, "on_unmet": "wait"})
    world.settle()
    assert states(world) == ["RUNNING"] * 3
    assert reasons(world, START) == [], "a changed limit drops no waiting run"


# -- backfills ---------------------------------------------------------------------------------------------------------


def backfilled(world: World, concurrency: int = 1, **fields: Any) -> Backfill:
    request = BackfillRequest.model_validate({**fields, "concurrency": concurrency})
    return backfill.begin(world.ports, full(START), request, "ann", str(fields))


def test_w20_a_backfill_counts_runs_until_their_end(world: World) -> None:
    """Ten days with concurrency 1: one DAG run at a time."""
    deploy(world, enabled=False)
    for number in range(1, 6):
        world.upload(day(number))
    row = backfilled(world, partitions={"dataset": "flights"}, only="all")
    world.settle()
    most = 0
    for _ in range(5):
        assert states(world).count("RUNNING") == 1
        most = max(most, len(living(world)))
        ends(world, "a")
        ends(world, "b")
        world.pass_by("2m")
    row = backfill.existing(world.ports, full(START), row.id)
    assert (most, row.state, row.succeeded) == (1, "DONE", 5)


def test_w20_a_backfill_shows_runs_that_failed(world: World) -> None:
    deploy(world, enabled=False)
    for number in (1, 2):
        world.upload(day(number))
    row = backfilled(world, concurrency=2, partitions={"dataset": "flights"}, only="all")
    world.settle()
    ends(world, "a", "FAILED")
    ends(world, "a")
    ends(world, "b")
    world.pass_by("2m")
    row = backfill.existing(world.ports, full(START), row.id)
    assert (row.state, row.succeeded, row.failed) == ("DONE", 1, 1)
    again = backfilled(world, partitions={"dataset": "flights"}, only="failed")
    assert again.total == 1


@pytest.mark.parametrize("limited", [False, True])
def test_w20_a_run_that_was_rerun_well_is_not_failed(world: World, limited: bool) -> None:
    deploy(world, **({"concurrency": ONE} if limited else {}))
    begin(world, 1)
    ends(world, "a", "FAILED")
    rerun(world, "from", "a")
    world.settle()
    ends(world, "a")
    ends(world, "b")
    world.settle()
    with pytest.raises(SluiceError, match="1 succeeded"):
        backfilled(world, partitions={"dataset": "flights"}, only="failed")


# -- deadline ----------------------------------------------------------------------------------------------------------


def late_by_clock(world: World, **fields: Any) -> None:
    clock = {"trigger": {"type": "time", "expression": "0 13 * * *"}, "by": []}
    notify = [{"on": ["missed_end", "failed"], "to": TEAM}]
    deploy(world, **{**clock, "deadline": {"end_within": "2h"}, "notify": notify, **fields})
    doze(world, "1h1m")


def test_w20_a_node_that_hangs_makes_the_run_late(world: World) -> None:
    late_by_clock(world)
    [view] = views(world)
    assert (view["end_by"], view["late"]) == ("2026-03-02T15:00:00.000Z", False)
    doze(world, "2h1m")
    [notice] = notices(world)
    assert (notice["workflow"], notice["events"][0]["schedule"]) == ("demo.flights.daily", "demo.flights.daily")
    [event] = notice["events"]
    assert event["what"] == "missed_end"
    said = "not ended by 2026-03-02T15:00:00.000Z: the run is RUNNING; node a is STARTING, node b is PENDING"
    assert event["reason"] == said
    assert views(world)[0]["late"] is True
    ends(world, "a")
    ends(world, "b")
    world.pass_by("6m")
    assert len(notices(world)) == 1, "one notice for each run"
    assert views(world)[0]["late"] is True


def test_w20_a_run_that_ends_in_time_is_not_late(world: World) -> None:
    late_by_clock(world)
    ends(world, "a")
    ends(world, "b")
    doze(world, "3h")
    assert (notices(world), views(world)[0]["late"]) == ([], False)


def test_w20_a_deadline_of_data_counts_from_its_arrival(world: World) -> None:
    deploy(world, deadline={"end_within": "1h"})
    begin(world)
    assert views(world)[0]["end_by"] == "2026-03-02T13:00:00.000Z"


def test_w20_a_failed_run_is_told_with_its_node(world: World) -> None:
    late_by_clock(world)
    ends(world, "a", "FAILED")
    world.pass_by("1m")
    [notice] = notices(world)
    [event] = notice["events"]
    assert (event["what"], event["schedule"]) == ("failed", "demo.flights.daily")
    assert event["reason"].startswith("node a is FAILED: ")


# -- timeout -----------------------------------------------------------------------------------------------------------


def test_w20_a_run_over_its_time_is_ended(world: World) -> None:
    nodes = {"z": {"workflow": "w_z", "when": "all_done"}}
    deploy(world, "a -> b", "b -> z", nodes=nodes, run_timeout="2h", concurrency=ONE)
    begin(world, 1, 2)
    world.emr_says(living(world)["a"], "RUNNING")
    doze(world, "2h1m")
    world.pass_by("11m")
    first = world.runs(START)[0]
    assert (first.state, first.outcome) == ("FAILED", "timed_out")
    assert first.reason.text == "timed out: the run took longer than 2h and was cancelled"
    nodes_of = {name: node["state"] for name, node in views(world)[0]["nodes"].items()}
    assert nodes_of == {"a": "CANCELLED", "b": "ABORTED", "z": "ABORTED"}
    assert (states(world), active(world)) == (["FAILED", "RUNNING"], 1)


def test_w20_a_run_that_ends_in_time_is_not_cancelled(world: World) -> None:
    deploy(world, run_timeout="2h")
    begin(world)
    doze(world, "1h")
    ends(world, "a")
    ends(world, "b")
    doze(world, "3h")
    assert [run.state for run in world.runs(START)] == ["SUCCEEDED"]


def test_w20_the_timeout_of_the_trigger_is_another(world: World) -> None:
    """``timeout`` is how long a run may wait to begin, ``run_timeout`` how long it may take."""
    deploy(world, timeout={"after": "30m"}, run_timeout="2h", concurrency=ONE)
    begin(world, 1, 2)
    world.pass_by("31m")
    assert states(world) == ["RUNNING"]
    [reason] = reasons(world, START)
    assert reason.startswith("ABORTED: not launched within its timeout of 30m")


# -- what is left of a death -------------------------------------------------------------------------------------------


def test_w20_an_end_that_nobody_told_of_is_found(world: World) -> None:
    """The hint of the last node's end is lost, and so is its announcement."""
    deploy(world, concurrency=ONE)
    begin(world, 1, 2)
    ends(world, "a")
    from dataclasses import replace

    from chalicelib.core.writes import Replace

    world.emr_says(living(world)["b"], "SUCCESS")
    [run] = world.ports.runs.runs("workflow", full("w_b"), 5, None).items
    world.ports.ledger.commit([Replace(replace(run, announce=(), wake_at=None, rev=run.rev + 1))])
    world.hints.sent.clear()
    world.clock.wait_until(world.clock.now() + 11 * MINUTE)
    world.tick()
    world.settle()
    assert states(world) == ["SUCCEEDED", "RUNNING"]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("concurrency", {"max": 0}, "concurrency.max: expected"),
        ("concurrency", {"max": 1, "on_unmet": "skip"}, "concurrency.on_unmet: expected"),
        ("run_timeout", "10s", "run_timeout: expected a timeout from 1m to 30d, or never, got '10s'"),
        ("deadline", {}, "deadline: expected start_within, end_within, or both"),
    ],
)
def test_w20_wrong_limits_are_refused(field: str, value: Any, message: str) -> None:
    from pydantic import ValidationError

    from chalicelib.core.errors import from_validation

    with pytest.raises((ValidationError, SluiceError)) as found:
        NewDag.model_validate(dag("a -> b", **{field: value}))
    error = found.value if isinstance(found.value, SluiceError) else from_validation(found.value, NewDag)
    assert f"{error.field}: {error.message}".startswith(message)
