"""Re-processing: a partition runs again with everything downstream of it, in order (L21)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.rows.run import Run
from chalicelib.flow.backfills import reprocess, reprocess_view
from tests.acceptance.words import day
from tests.support import dags
from tests.support.answers import read
from tests.support.schedules import BY_DAY, after, at, partitions
from tests.support.world import EMR, World, flights, full

FIRST = {"year": "2013", "month": "01", "day": "1"}
CHAIN = {
    "clean": partitions(by=BY_DAY),
    "join": after("clean", "join", by=BY_DAY),
    "report": after("join", "report", by=BY_DAY),
}


def lake(world: World, schedules: dict[str, Any] = CHAIN, days: int = 1) -> None:
    """The first days of the dataset have been processed to the end."""
    world.deploy(flights(schedules, report={"target": EMR}))
    for number in range(1, days + 1):
        world.upload(day(number))
    work_off(world)


def work_off(world: World, failing: str = "") -> None:
    """All runs end, those of one schedule with a failure, until no work is left."""
    for _ in range(50):
        world.settle()
        living = [run for run in world.targets.emr.runs.values() if run.state in ("SUBMITTED", "RUNNING")]
        for run in living:
            failed = bool(failing) and f".{failing}." in run.name.replace("~", ".")
            world.emr_says(run.id, "FAILED" if failed else "SUCCESS", "the last line")
        if not living:
            return
        world.clock.pass_by("1s")
    raise AssertionError("expected an end, got more runs each time")


def begin(world: World, **asked: Any) -> str:
    return reprocess.begin(world.ports, "demo", requested(**asked), "tester", "r1").id


def requested(**asked: Any) -> Reprocess:
    given = asked if {"run", "fires"} & set(asked) else {"dataset": "flights", **asked}
    if not {"from_", "to", "run", "fires"} & set(given):
        given.setdefault("partition", FIRST)
    return Reprocess.model_validate({key.rstrip("_"): value for key, value in given.items()})


def seen(world: World, reprocess_id: str) -> dict[str, Any]:
    return reprocess_view.reprocess_view(world.ports, reprocess.existing(world.ports, "demo", reprocess_id))


def again(world: World, *names: str) -> list[tuple[str, dict[str, str] | None]]:
    """The runs of the re-processing in the order of their claims, each with its correlation."""
    runs = [run for name in names or CHAIN for run in world.runs(name) if run.backfill is not None]
    ordered: list[Run] = sorted(runs, key=lambda run: run.claimed_at)
    return [(run.schedule.rpartition(".")[2], dict(run.correlation or {}) or None) for run in ordered]


def test_l21_a_partition_runs_again_with_all_downstream(world: World) -> None:
    lake(world)
    reprocess_id = begin(world)
    assert [name for name, _ in again(world)] == []

    work_off(world)

    assert again(world) == [("clean", FIRST), ("join", FIRST), ("report", FIRST)]
    view = seen(world, reprocess_id)
    assert (view["state"], view["total"], view["succeeded"]) == ("DONE", 3, 3)
    assert [len(world.runs(name)) for name in CHAIN] == [2, 2, 2], "each once, and once again"
    assert [world.jobs(name) for name in CHAIN] == [[], [], []], "nothing is left waiting"


def test_l21_a_partition_that_is_not_registered_is_named(world: World) -> None:
    lake(world)
    known, unknown = (
        reprocess.preview(world.ports, "demo", requested(partition=FIRST | {"day": day})).steps for day in ("1", "99")
    )
    assert [step.why.partition("; ")[2] for step in known] == ["", "", ""]
    assert [step.why.partition("; ")[2] for step in unknown] == ["this partition is not registered", "", ""]


def test_l21_a_dry_run_lists_what_would_run_and_why(world: World) -> None:
    lake(world)
    plan = reprocess.preview(world.ports, "demo", requested(dry_run=True))
    view = reprocess_view.plan_view("demo", plan)
    assert [(step["schedule"], step["why"], step["first"]) for step in view["steps"]] == [
        (full("clean"), "counts partitions of demo.flights", [FIRST]),
        (full("join"), f"counts COMPLETED of {full('clean')}, which {full('clean')} runs", [FIRST]),
        (full("report"), f"counts COMPLETED of {full('join')}, which {full('join')} runs", [FIRST]),
    ]
    assert [world.runs(name)[1:] for name in CHAIN] == [[], [], []]
    assert world.ports.jobs.reprocesses("demo") == ()


def test_l21_only_starts_nothing_downstream(world: World) -> None:
    lake(world)
    reprocess_id = begin(world, scope="only")
    work_off(world)
    assert again(world) == [("clean", FIRST)]
    assert seen(world, reprocess_id)["state"] == "DONE"
    assert (world.jobs("join"), len(world.runs("join"))) == ([], 1)


def test_l21_upto_runs_nothing_after_the_workflow(world: World) -> None:
    lake(world)
    begin(world, upto=full("join"))
    work_off(world)
    assert again(world) == [("clean", FIRST), ("join", FIRST)]
    assert (world.jobs("report"), len(world.runs("report"))) == ([], 1)


def test_l21_an_all_of_two_datasets_runs_once_for_one(world: World) -> None:
    """Its other dataset arrived long ago, and does not arrive again."""
    both = [after("clean", "join")["trigger"], {"type": "partition", "dataset": "weather"}]
    schedules = CHAIN | {"join": after("", "join", by=BY_DAY) | {"trigger": {"type": "all", "triggers": both}}}
    lake(world, schedules)
    world.upload(day(1, "weather", "x.csv"))
    work_off(world)
    assert len(world.runs("join")) == 1

    begin(world)
    work_off(world)
    assert again(world) == [("clean", FIRST), ("join", FIRST), ("report", FIRST)]
    assert world.jobs("join") == []


def test_l21_a_range_runs_each_day_at_its_concurrency(world: World) -> None:
    lake(world, days=3)
    reprocess_id = begin(world, from_={"year": 2013, "month": 1, "day": 2}, concurrency=1)
    world.settle()
    assert seen(world, reprocess_id)["running"] == 1
    work_off(world)
    days = [{**FIRST, "day": number} for number in ("2", "3")]
    assert again(world) == [(name, values) for name in CHAIN for values in days]


def test_l21_a_failed_step_skips_what_follows_it(world: World) -> None:
    lake(world, CHAIN | {"beside": after("clean", "clean", by=BY_DAY) | {"workflow": "notify"}})
    reprocess_id = begin(world)
    work_off(world, failing="join")
    view = seen(world, reprocess_id)
    states = {step["schedule"].rpartition(".")[2]: step["state"] for step in view["steps"]}
    assert states == {"clean": "succeeded", "join": "failed", "report": "skipped", "beside": "succeeded"}
    assert view["state"] == "FAILED"
    assert [step["reason"] for step in view["steps"] if step["state"] == "skipped"] == [
        "a step that starts it has not succeeded"
    ]
    assert world.jobs("report") == []


def test_l21_cancelling_ends_the_step_and_starts_no_other(world: World) -> None:
    lake(world, days=2)
    reprocess_id = begin(world, from_={"year": 2013})
    world.settle()
    reprocess.stop(world.ports, "demo", reprocess_id, False, "tester")
    work_off(world)
    view = seen(world, reprocess_id)
    assert (view["state"], view["succeeded"], view["cancelled"]) == ("CANCELLED", 1, 5)
    assert view["reason"] == f"re-processing {reprocess_id} was cancelled by tester"
    assert again(world) == [("clean", FIRST)]


def test_l21_a_repeated_request_begins_one_reprocessing(world: World) -> None:
    lake(world)
    assert begin(world) == begin(world)
    work_off(world)
    assert len(again(world)) == 3
    assert begin(world) == begin(world)
    work_off(world)
    assert len(again(world)) == 3


def test_l21_a_paused_schedule_takes_part_a_disabled_not(world: World) -> None:
    lake(world)
    world.pause("join")
    world.disable("report")
    begin(world)
    work_off(world)
    assert again(world) == [("clean", FIRST), ("join", FIRST)]


def test_l21_a_schedule_deleted_meanwhile_fails_its_step(world: World) -> None:
    lake(world)
    reprocess_id = begin(world)
    world.settle()
    world.delete("join")
    work_off(world)
    view = seen(world, reprocess_id)
    assert [step["state"] for step in view["steps"]] == ["succeeded", "failed", "skipped"]
    assert view["steps"][1]["reason"] == "the schedule was deleted"


def test_l21_a_partition_that_starts_nothing_is_refused(world: World) -> None:
    lake(world)
    with pytest.raises(SluiceError, match="whose partitions start an enabled schedule"):
        begin(world, dataset="weather")
    with pytest.raises(SluiceError, match="exactly the keys year, month, day"):
        begin(world, partition={"day": "1"})
    with pytest.raises(SluiceError, match="a range with a partition of demo.flights"):
        begin(world, from_={"year": 2014})


def test_l21_a_later_event_finds_no_half_match(world: World) -> None:
    """The next day runs as always after a re-processing, once for each schedule."""
    lake(world)
    begin(world)
    work_off(world)
    world.upload(day(2))
    work_off(world)
    assert [len(world.runs(name)) for name in CHAIN] == [3, 3, 3]


# -- a run, the fires of a time range, a run of a DAG ------------------------------------------------------------------

NIGHTLY = at("0 2 * * *")
TWO_DAYS = {"schedule": full("nightly"), "from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z"}


def test_l21_a_run_runs_again_with_what_follows_it(world: World) -> None:
    lake(world, days=2)
    [first, _] = world.runs("join")
    reprocess_id = begin(world, run=first.run_id)
    work_off(world)
    assert again(world) == [("join", FIRST), ("report", FIRST)]
    second = world.runs("join")[-1]
    assert (second.rerun_of, second.event, second.partition) == (first.run_id, first.event, first.partition)
    view = seen(world, reprocess_id)
    assert (view["state"], view["run"], view["dataset"], view["first"]) == ("DONE", first.run_id, None, FIRST)
    assert view["steps"][0]["why"] == f"runs {first.run_id} again"


def test_l21_a_run_of_gathered_events_has_all_of_them_again(world: World) -> None:
    """The run of three partitions gets the same three, and what follows it runs once."""
    lake(world, {"clean": partitions(3), "join": after("clean", "join")}, days=3)
    [first] = world.runs("clean")
    begin(world, run=first.run_id)
    work_off(world)
    second = world.runs("clean")[1]
    assert world.context(second)["events"] == world.context(first)["events"]
    assert len(world.context(second)["events"]) == 3
    assert [len(world.runs("clean")), len(world.runs("join"))] == [2, 2]
    assert (world.jobs("clean"), world.jobs("join")) == ([], [])


def test_l21_only_of_a_run_starts_nothing_downstream(world: World) -> None:
    lake(world)
    begin(world, run=world.runs("clean")[0].run_id, scope="only")
    work_off(world)
    assert again(world) == [("clean", FIRST)]
    assert world.jobs("join") == []


def test_l21_a_range_of_fires_runs_again_with_downstream(world: World) -> None:
    lake(world, {"nightly": NIGHTLY, "join": after("clean", "join"), "byday": after("clean", "join", by=BY_DAY)})
    reprocess_id = begin(world, fires=TWO_DAYS)
    work_off(world)
    assert [iso(run.nominal_at or 0)[:10] for run in world.runs("nightly")] == ["2026-01-01", "2026-01-02"]
    joins = world.runs("join")
    assert [world.context(run)["upstream"]["run_id"] for run in joins] == [run.run_id for run in world.runs("nightly")]
    assert world.runs("byday") == [], "a fire has no day by which to correlate"
    view = seen(world, reprocess_id)
    assert (view["state"], view["total"], view["succeeded"]) == ("DONE", 4, 4)
    assert view["fires"] == {**TWO_DAYS, "from": "2026-01-01T00:00:00.000Z", "to": "2026-01-03T00:00:00.000Z"}
    assert view["first"] == "2026-01-01T02:00:00.000Z"


def test_l21_a_dry_run_of_fires_lists_their_instants(world: World) -> None:
    lake(world, {"nightly": NIGHTLY, "join": after("clean", "join")})
    view = reprocess_view.plan_view("demo", reprocess.preview(world.ports, "demo", requested(fires=TWO_DAYS)))
    instants = ["2026-01-01T02:00:00.000Z", "2026-01-02T02:00:00.000Z"]
    assert [(step["schedule"], step["first"]) for step in view["steps"]] == [
        (full("nightly"), instants),
        (full("join"), instants),
    ]


def test_l21_each_downstream_run_has_the_context_of_its_own_day(world: World) -> None:
    lake(world, days=2)
    begin(world, from_={"year": 2013}, concurrency=2)
    work_off(world)
    for run in [run for run in world.runs("join") if run.backfill]:
        upstream = world.context(run)["upstream"]
        assert upstream["correlation"] == world.context(run)["correlation"] == dict(run.correlation or {})
        assert upstream["run_id"] in {each.run_id for each in world.runs("clean") if each.backfill}


def test_l21_a_run_of_a_dag_runs_again_with_its_nodes(world: World) -> None:
    graph = {"nodes": {"clean": {"workflow": "clean"}, "join": {"workflow": "join"}},
             "edges": [{"from": "clean", "to": "join"}]}  # fmt: skip
    trigger = {"type": "partition", "dataset": "flights"}
    world.deploy(flights({}) | {"dags": {"daily": {**graph, "trigger": trigger, "by": BY_DAY, "enabled": True}}})
    world.upload(day(1))
    work_off(world)
    [first] = world.runs("daily~")
    reprocess_id = begin(world, run=first.run_id)
    minutes(world)
    second = world.runs("daily~")[1]
    assert second.correlation == first.correlation == FIRST
    assert len(world.targets.emr.runs) == 4, "two nodes, twice"
    assert seen(world, reprocess_id)["state"] == "DONE"


def test_l21_the_fires_of_a_dag_run_it_again(world: World) -> None:
    graph = {"nodes": {"clean": {"workflow": "clean"}}, "enabled": True}
    time = {"type": "time", "expression": "0 2 * * *"}
    world.deploy(flights({}) | {"dags": {"nightly": {**graph, "trigger": time}}})
    reprocess_id = begin(world, fires=TWO_DAYS)
    minutes(world)
    assert [iso(run.nominal_at or 0)[:10] for run in world.runs("nightly~")] == ["2026-01-01", "2026-01-02"]
    assert len(world.targets.emr.runs) == 2
    view = seen(world, reprocess_id)
    assert (view["state"], view["fires"]["schedule"]) == ("DONE", full("nightly"))


def test_l21_a_node_of_a_dag_is_no_start(world: World) -> None:
    graph = {"nodes": {"clean": {"workflow": "clean"}}, "enabled": True}
    world.deploy(flights({}) | {"dags": {"daily": {**graph, "trigger": {"type": "partition", "dataset": "flights"}}}})
    world.upload(day(1))
    work_off(world)
    node = next(run.name.rpartition("-")[0] for run in world.targets.emr.runs.values())
    with pytest.raises(SluiceError, match=r"a run outside DAGs, or one of a DAG's start"):
        begin(world, run=node)


def test_l21_a_start_that_cannot_run_again_is_refused(world: World) -> None:
    lake(world, CHAIN | {"nightly": NIGHTLY})
    world.upload(day(2))
    world.settle()
    living = world.runs("clean")[-1].run_id
    refused = {
        "run that has ended": {"run": living},
        "no run": {"run": "demo.flights.clean.1.nothing"},
        "no schedule": {"fires": {**TWO_DAYS, "schedule": full("nobody")}},
        "a schedule with a time": {"fires": {**TWO_DAYS, "schedule": full("clean")}},
        "in the past": {"fires": {**TWO_DAYS, "to": "2036-01-01T00:00:00Z"}},
        "of the namespace demo": {"fires": {**TWO_DAYS, "schedule": "other.flights.nightly"}},
    }
    for words, asked in refused.items():
        with pytest.raises(SluiceError, match=words):
            begin(world, **asked)


# -- nothing is left waiting for what does not come --------------------------------------------------------------------


def test_l21_no_half_of_a_match_waits_downstream(world: World) -> None:
    """The first time, each of these joined several events. The re-processing of one day brings one of them again."""
    cleaned = after("clean", "join")["trigger"]
    weather = {"type": "partition", "dataset": "weather"}
    lake(world, {
        "clean": partitions(by=BY_DAY),
        "both": after("clean", "join", by=BY_DAY) | {"trigger": {"type": "all", "triggers": [cleaned, weather]}},
        "three": after("clean", "join") | {"trigger": {**cleaned, "count": 3}},
        "calm": after("clean", "join", by=BY_DAY) | {"trigger": {"type": "quiet", "of": cleaned, "after": "10m"}},
        "silent": after("clean", "join") | {"trigger": {"type": "absent", "of": cleaned, "within": "2h"}},
    }, days=3)  # fmt: skip
    names = ("both", "three", "calm")
    for number in (1, 2, 3):
        world.upload(day(number, "weather", "x.csv"))
    world.clock.pass_by("11m")
    world.tick()
    work_off(world)
    assert [len(world.runs(name)) for name in names] == [3, 1, 3]
    waiting = world.jobs("silent")

    begin(world)
    work_off(world)
    assert dict(again(world, *names)) == {"both": FIRST, "three": None, "calm": FIRST}
    assert [len(world.runs(name)) for name in names] == [4, 2, 4]
    assert [world.jobs(name) for name in names] == [[], [], []]
    assert world.jobs("silent") == waiting, "it watches the feed, and neither runs again nor starts to wait"


# -- a DAG as a step ---------------------------------------------------------------------------------------------------

JOINED_AND_WEATHER = [after("join", "x")["trigger"], {"type": "partition", "dataset": "weather"}]
OF_NODES = {
    "after_join": after("join", "report", by=BY_DAY),
    "both": after("join", "notify", by=BY_DAY) | {"trigger": {"type": "all", "triggers": JOINED_AND_WEATHER}},
}


def dag_lake(world: World) -> str:
    """A DAG, and two schedules that wait for the workflow of its last node, have run for a day. Returns its run."""
    nodes = {"clean": {"workflow": "clean"}, "join": {"workflow": "join"}, "mend": {"workflow": "mend"}}
    edges = [{"from": "clean", "to": "join"}, {"from": "join", "to": "mend", "on": ["FAILED"]}]
    graph = {"nodes": nodes, "edges": edges, "trigger": {"type": "partition", "dataset": "flights"}, "by": BY_DAY}
    schedules = {**OF_NODES, "mended": after("mend", "report", by=BY_DAY)}
    document = flights(schedules, report={"target": EMR}, mend={"target": EMR})
    world.deploy({**document, "dags": {"daily": {**graph, "enabled": True}}})
    world.upload(day(1))
    world.upload(day(1, "weather", "x.csv"))
    minutes(world)
    assert [len(world.runs(name)) for name in OF_NODES] == [1, 1]
    return world.runs("daily~")[0].run_id


def minutes(world: World, failing: str = "") -> None:
    """Runs end and minutes pass: the step of a DAG is checked once in each."""
    for _ in range(4):
        work_off(world, failing)
        world.clock.pass_by("61s")
        world.tick()


@pytest.mark.parametrize("start", ["partition", "run"])
def test_l21_what_follows_the_nodes_of_a_dag_runs_again(world: World, start: str) -> None:
    """Once, after the nodes, with the correlation of the first time. No half of a match waits for the other dataset."""
    first = dag_lake(world)
    asked = {"run": first} if start == "run" else {}
    reprocess_id = begin(world, **asked)
    steps = [(step["schedule"], step["after"]) for step in seen(world, reprocess_id)["steps"]]
    assert steps == [(full("daily~"), []), (full("after_join"), [0]), (full("both"), [0])]
    world.settle()
    assert world.runs("daily~")[1].state == "RUNNING", "the DAG has begun"
    assert seen(world, reprocess_id)["steps"][0]["state"] == "running", "its nodes have not ended"

    minutes(world)
    view = seen(world, reprocess_id)
    assert (view["state"], view["steps"][1]["why"]) == (
        "DONE", f"counts COMPLETED of {full('join')}, which node join of {full('daily')} runs",
    )  # fmt: skip
    assert again(world, *OF_NODES) == [(name, FIRST) for name in OF_NODES]
    assert [world.jobs(name) for name in OF_NODES] == [[], []]
    assert world.runs("mended") == [], "no run failed"


def test_l21_only_of_a_dag_starts_nothing_after_its_nodes(world: World) -> None:
    dag_lake(world)
    reprocess_id = begin(world, scope="only")
    minutes(world)
    assert seen(world, reprocess_id)["state"] == "DONE"
    assert [len(world.runs(name)) for name in ("daily~", *OF_NODES)] == [2, 1, 1]
    assert [world.jobs(name) for name in OF_NODES] == [[], []]


def test_l21_a_failed_node_skips_what_follows_its_dag(world: World) -> None:
    dag_lake(world)
    reprocess_id = begin(world)
    minutes(world, failing="clean")
    view = seen(world, reprocess_id)
    assert (view["state"], [step["state"] for step in view["steps"]]) == ("FAILED", ["failed", "skipped", "skipped"])
    assert [len(world.runs(name)) for name in OF_NODES] == [1, 1]


def test_l21_cancelling_the_step_of_a_dag_leaves_its_nodes(world: World) -> None:
    dag_lake(world)
    reprocess_id = begin(world)
    world.settle()
    reprocess.stop(world.ports, "demo", reprocess_id, False, "tester")
    minutes(world)
    assert seen(world, reprocess_id)["state"] == "CANCELLED"
    assert [len(world.runs(name)) for name in OF_NODES] == [1, 1]


@pytest.mark.parametrize("later", [False, True])
def test_l21_cancelling_with_runs_ends_the_nodes_of_a_dag(world: World, later: bool) -> None:
    """Also a node that a cancelled one starts, and also if a first cancel has left the runs alone."""
    edges = ["clean -> join", dags.edge("clean -> mend", on=["KILLED"])]
    nodes = {"clean": {"workflow": "clean"}, "join": {"workflow": "join"}, "mend": {"workflow": "notify"}}
    world.deploy(dags.app(dags.dag(*edges, nodes=nodes)))
    world.upload(day(1))
    minutes(world)
    reprocess_id = begin(world)
    world.settle()
    if later:
        reprocess.stop(world.ports, "demo", reprocess_id, False, "tester")
    reprocess.stop(world.ports, "demo", reprocess_id, True, "tester")
    assert seen(world, reprocess_id)["running"] == 1, "until the target reports the end of the run"
    minutes(world)
    view = seen(world, reprocess_id)
    assert (view["state"], view["cancelled"], view["ended_at"] is None) == ("CANCELLED", 1, False)
    first, second = dags.states(world)
    assert first["join"] == "SUCCEEDED"
    assert second == {"clean": "CANCELLED", "join": "ABORTED", "mend": "ABORTED"}
    nodes_view = dags.views(world)[1]["nodes"]
    assert f"was cancelled by re-processing {reprocess_id}" in nodes_view["join"]["why"]
    assert [job for name in nodes for job in world.jobs(f"daily~{name}")] == []


def test_w17_cancelling_with_runs_starts_no_join(world: World) -> None:
    """The nodes with rules would run after a cancelled one. But the whole run of the DAG is cancelled."""
    nodes = {"clean": {"workflow": "clean"}, "join": {"workflow": "join"}}
    rules = {"tidy": {"workflow": "notify", "when": "all_done"}, "alarm": {"workflow": "notify", "when": "one_failed"}}
    edges = ("clean -> join", "join -> tidy", "clean -> alarm")
    world.deploy(dags.app(dags.dag(*edges, nodes=nodes | rules)))
    world.upload(day(1))
    minutes(world)
    reprocess_id = begin(world)
    world.settle()
    reprocess.stop(world.ports, "demo", reprocess_id, True, "tester")
    minutes(world)
    assert seen(world, reprocess_id)["state"] == "CANCELLED"
    first, second = dags.states(world)
    assert first == {"clean": "SUCCEEDED", "join": "SUCCEEDED", "tidy": "SUCCEEDED", "alarm": "SKIPPED"}
    assert second == {"clean": "CANCELLED", "join": "ABORTED", "tidy": "ABORTED", "alarm": "ABORTED"}


def test_l21_a_new_day_of_the_dag_counts_after_it_ran_again(world: World) -> None:
    dag_lake(world)
    begin(world)
    minutes(world)
    world.upload(day(2))
    world.upload(day(2, "weather", "x.csv"))
    minutes(world)
    assert [len(world.runs(name)) for name in ("daily~", *OF_NODES)] == [3, 3, 3]


def test_l21_a_failed_step_shows_its_runs_with_their_errors(world: World) -> None:
    lake(world)
    reprocess_id = begin(world)
    work_off(world, failing="join")

    row = reprocess.existing(world.ports, "demo", reprocess_id)
    clean, join, report = read(reprocess_view.shown_view(world.ports, row))["steps"]

    [failed] = [run for run in world.runs("join") if run.state == "FAILED"]
    assert join["failures"] == [
        {"run_id": failed.run_id, "partition": FIRST, "reason": "the last line", "code": "target_failed"}
    ]
    assert (clean["failures"], report["failures"]) == ([], [])
    listed = reprocess_view.reprocess_view(world.ports, row)["steps"]
    assert [step["failures"] for step in listed] == [[], None, []]


def test_l21_the_error_of_a_failed_run_comes_from_its_log(world: World) -> None:
    lake(world)
    reprocess_id = begin(world, scope="only")
    world.settle()
    world.finish("FAILED", "exit code 1")
    world.settle()
    folder = "logs/demo/applications/00app/jobs/jr00004/SPARK_DRIVER"
    world.payloads.logs[f"{folder}/stderr.gz"] = "Traceback (most recent call last):\n  File x\nKeyError: 'flights'\n"

    row = reprocess.existing(world.ports, "demo", reprocess_id)

    [failed] = read(reprocess_view.shown_view(world.ports, row))["steps"][0]["failures"]
    assert failed["reason"] == "exit code 1: KeyError: 'flights'"
