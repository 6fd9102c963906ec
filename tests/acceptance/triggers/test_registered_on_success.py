"""`register: on_success`: a run that has succeeded is a partition of what its workflow produces (L22)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.event import NewestPartition, Partition
from chalicelib.core.rows.run import Run
from chalicelib.flow.definitions import store, workflows
from chalicelib.flow.ingest import objects
from chalicelib.flow.schedules import actions
from chalicelib.flow.views import lineage
from chalicelib.flow.views.views import run_view
from tests.acceptance.schedules.test_reprocess import FIRST, again, begin, minutes, seen, work_off
from tests.acceptance.words import day
from tests.support.schedules import BY_DAY, after, at, partitions
from tests.support.world import EMR, SQS, World, flights, full

DAILY = {"bucket": "lake", "prefix": "daily/", "keys": BY_DAY, "ready": {"done_flag": "_SUCCESS"}}
REGISTERS = {"target": EMR, "produces": [{"dataset": "daily", "register": "on_success"}]}
SCHEDULES = {
    "clean": partitions(by=BY_DAY),
    "join": partitions(workflow="join", dataset="daily", by=BY_DAY),
}
AT_FIVE = {"type": "time", "expression": "0 5 * * *"}
ONE = ("demo.daily", ("2013", "01", "1"))


def deploy(world: World, schedules: dict[str, Any] | None = None, **daily: Any) -> None:
    document = flights(SCHEDULES if schedules is None else schedules, clean=REGISTERS)
    document["datasets"]["daily"] = DAILY | daily
    world.deploy(document)


def ran(world: World, *names: str) -> list[int]:
    return [len(world.runs(name)) for name in names or SCHEDULES]


def last(world: World, name: str) -> Run:
    return max(world.runs(name), key=lambda run: run.claimed_at)


def test_l22_a_run_that_succeeded_registers_its_partition(world: World) -> None:
    deploy(world)
    world.upload(day(1))
    world.settle()
    assert world.ports.rows.get(Partition, *ONE) is None
    work_off(world)
    row = world.ports.rows.get(Partition, *ONE)
    assert row is not None
    assert (row.event.path, row.wake_at) == ("s3://lake-bucket/daily/year=2013/month=01/day=1/", None)
    assert world.ports.rows.get(NewestPartition, "demo.daily") is not None
    [made], [used] = world.runs("clean"), world.runs("join")
    assert (row.event.run_id, dict(used.correlation or {})) == (made.run_id, FIRST)
    assert run_view(made)["registered"] == [{"dataset": "demo.daily", "partition": FIRST, "why": ""}]
    assert "registered" not in run_view(used)


def test_l22_the_lineage_leads_through_the_registered_data(world: World) -> None:
    deploy(world)
    world.upload(day(1))
    work_off(world)
    [made], [used] = world.runs("clean"), world.runs("join")
    edge = {"from": made.run_id, "to": used.run_id, "text": "partition"}
    assert lineage.lineage(world.ports, used.run_id, 1, 0)["edges"] == [edge]
    assert lineage.lineage(world.ports, made.run_id, 0, 1)["edges"] == [edge]


def test_l22_a_run_that_failed_registers_nothing(world: World) -> None:
    deploy(world)
    world.upload(day(1))
    work_off(world, failing="clean")
    assert (world.ports.rows.get(Partition, *ONE), ran(world)) == (None, [1, 0])
    assert run_view(last(world, "clean")).get("registered") is None


def test_l22_the_flag_and_the_end_of_a_run_count_once(world: World) -> None:
    deploy(world)
    world.upload(day(1))
    world.settle()
    world.upload("daily/year=2013/month=01/day=1/_SUCCESS")
    work_off(world)
    world.upload("daily/year=2013/month=01/day=1/_SUCCESS")
    work_off(world)
    assert ran(world) == [1, 1]
    assert run_view(last(world, "clean"))["registered"][0]["partition"] == FIRST


def test_l22_a_second_success_for_a_day_counts_once(world: World) -> None:
    deploy(world)
    world.upload(day(1))
    work_off(world)
    world.run_now("clean", "again")
    work_off(world)
    assert ran(world, "join") == [1]


def test_l22_what_lacks_a_key_is_on_record(world: World) -> None:
    deploy(world)
    world.run_now("clean")
    work_off(world)
    why = "a run for nothing names no year, month, day, which a partition of demo.daily has"
    assert run_view(last(world, "clean"))["registered"] == [{"dataset": "demo.daily", "partition": None, "why": why}]
    assert ran(world) == [1, 0]


def test_l22_a_number_that_is_registered_with_a_zero_is_told(world: World) -> None:
    deploy(world)
    world.upload("daily/year=2013/month=01/day=01/_SUCCESS")
    world.upload(day(1))
    work_off(world)
    [note] = run_view(last(world, "clean"))["registered"]
    assert note["why"] == "year=2013/month=01/day=01 of demo.daily is registered, which is the same"
    assert ran(world) == [1, 1]


def test_l22_a_period_is_registered_as_its_format_writes_it(world: World) -> None:
    deploy(world, period={"each": "day", "format": "year=%Y/month=%m/day=%d"})
    world.upload(day(1))
    work_off(world)
    assert world.ports.rows.get(Partition, "demo.daily", ("2013", "01", "01")) is not None
    assert dict(last(world, "join").correlation or {}) == FIRST | {"day": "01"}


def test_l22_a_dataset_that_is_gone_is_told(world: World) -> None:
    deploy(world, {"clean": SCHEDULES["clean"]})
    world.upload(day(1))
    world.settle()
    workflows.put(world.ports, full("clean"), {"target": EMR}, "tester")
    store.delete(world.ports, "dataset", "demo.daily")
    work_off(world)
    assert run_view(last(world, "clean"))["registered"][0]["why"] == "dataset demo.daily was deleted"


def test_l22_the_workflow_at_the_claim_decides(world: World) -> None:
    """The run writes what the code of its claim writes. A put in between is for the next run."""
    deploy(world)
    world.upload(day(1))
    world.settle()
    workflows.put(world.ports, full("clean"), {"target": EMR}, "tester")
    world.upload(day(2))
    work_off(world)
    assert (world.ports.rows.get(Partition, *ONE) is not None, ran(world)) == (True, [2, 1])


def test_l22_a_lost_hint_of_registered_data_is_sent_again(world: World) -> None:
    deploy(world)
    world.upload(day(1))
    world.settle()
    [run] = world.targets.emr.runs.values()
    world.emr_says(run.id, "SUCCESS")
    world.hints.sent.clear()
    world.settle()
    assert ran(world) == [1, 0]
    world.clock.pass_by("61s")
    world.tick()
    work_off(world)
    assert ran(world) == [1, 1]


def test_l22_a_reprocessing_registers_and_starts_nothing_twice(world: World) -> None:
    """The day failed, so its product is not registered. The plan runs the schedule that counts it."""
    deploy(world)
    world.upload(day(1))
    work_off(world, failing="clean")
    reprocess_id = begin(world)
    work_off(world)
    assert again(world, *SCHEDULES) == [("clean", FIRST), ("join", FIRST)]
    assert (ran(world), world.jobs("join"), seen(world, reprocess_id)["state"]) == ([2, 1], [], "DONE")
    row = world.ports.rows.get(Partition, *ONE)
    assert row is not None
    objects.resume(world.ports, row)
    world.upload(day(2))
    work_off(world)
    assert ran(world) == [3, 2]


def test_l22_only_of_a_reprocessing_starts_nothing_by_its_data(world: World) -> None:
    deploy(world)
    world.upload(day(1))
    work_off(world, failing="clean")
    begin(world, scope="only")
    work_off(world)
    assert (ran(world), world.ports.rows.get(Partition, *ONE) is not None) == ([2, 0], True)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (at("0 5 * * *"), "got []"),
        (partitions(by=["year", "month"]), "got ['year', 'month']"),
        (partitions(dataset="weather"), ""),
        (partitions(), ""),
        (after("join", "clean"), ""),
    ],
)
def test_l22_a_schedule_that_cannot_name_the_day_is_refused(
    world: World, schedule: dict[str, Any], expected: str
) -> None:
    if not expected:
        return deploy(world, {"one": schedule})
    with pytest.raises(SluiceError) as raised:
        deploy(world, {"one": schedule})
    assert raised.value.field == "schedules.one.by"
    keys = "expected the keys year, month, day of demo.daily, of which demo.flights.clean registers partitions"
    assert raised.value.message == f"{keys}, {expected}"
    return None


def daily_dag(by: list[str]) -> dict[str, Any]:
    trigger = {"type": "partition", "dataset": "flights"}
    dag = {"nodes": {"one": {"workflow": "clean"}}, "trigger": trigger, "by": by, "enabled": True}
    document = flights({"join": SCHEDULES["join"]}, clean=REGISTERS)
    document["datasets"]["daily"] = DAILY
    return {**document, "dags": {"graph": dag}}


def test_l22_a_node_registers_the_partition_of_its_dag(world: World) -> None:
    with pytest.raises(SluiceError, match="the keys year, month, day of demo.daily") as raised:
        world.deploy(daily_dag(["year"]))
    assert raised.value.field == "dags.graph.by"
    world.deploy(daily_dag(BY_DAY))
    world.upload(day(1))
    minutes(world, failing="one")
    assert ran(world, "join") == [0]
    begin(world)
    minutes(world)
    assert (ran(world, "join"), world.ports.rows.get(Partition, *ONE) is not None) == ([1], True)
    world.upload(day(2))
    minutes(world)
    assert ran(world, "join") == [2]


@pytest.mark.parametrize(
    ("target", "dataset", "message"),
    [
        (SQS, "daily", "expected a target that reports how its runs end"),
        (EMR, "table", "expected a dataset of format files, got 'the table demo.table'"),
    ],
)
def test_l22_register_needs_an_end_and_files(world: World, target: Any, dataset: str, message: str) -> None:
    deploy(world)
    table = {"bucket": "lake-bucket", "prefix": "table/", "format": "iceberg", "single_writer": True}
    store.put(world.ports, "dataset", "demo.table", table, "tester")
    document = {"target": target, "produces": [{"dataset": dataset, "register": "on_success"}]}
    with pytest.raises(SluiceError, match=message) as raised:
        workflows.put(world.ports, full("other"), document, "tester")
    assert raised.value.field == "produces.0.register"


def test_l22_the_day_of_a_run_names_its_partition_in_any_format(world: World) -> None:
    """The run has the label of its day. The dataset writes it into three keys."""
    hours = {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H", "zone": "Europe/Paris"}
    days = {"each": "day", "format": "year=%Y/month=%m/day=%-d", "zone": "Europe/Paris"}
    of_period = {"type": "partition", "dataset": "clicks", "of": "period"}
    made = {"workflow": "clean", "per": "day", "zone": "Europe/Paris", "enabled": True, "trigger": of_period}
    document = flights({"clean": made}, clean=REGISTERS)
    document["datasets"]["clicks"] = {"bucket": "lake", "prefix": "clicks/", "keys": ["dt", "hour"], "period": hours}
    document["datasets"]["daily"] = {**DAILY, "period": days}
    world.deploy(document)
    for hour in range(24):
        world.upload(f"clicks/dt=2026-03-01/hour={hour:02}/part-0")
    world.settle()
    work_off(world)
    assert world.ports.rows.get(Partition, "demo.daily", ("2026", "03", "1")) is not None


# -- a partition that is made again ------------------------------------------------------------------------------------

AGAIN = {"ready": {}, "rewritten": "again"}


def run_again(world: World, request: str) -> None:
    """The first day is run now and worked off."""
    world.clock.pass_by("1m")
    actions.run_now(world.ports, full("clean"), {}, request, None, FIRST)
    work_off(world)


def test_l22_each_success_for_a_known_day_counts_once(world: World) -> None:
    deploy(world, **AGAIN)
    world.upload(day(1))
    work_off(world)
    for number in (1, 2):
        run_again(world, f"r{number}")
        assert ran(world) == [number + 1, number + 1]
    events = [event for run in world.runs("join") for event in world.context(run)["events"]]
    assert len({event["id"] for event in events}) == 3
    assert {event["path"] for event in events} == {"s3://lake-bucket/daily/year=2013/month=01/day=1/"}
    edges = [lineage.lineage(world.ports, run.run_id, 1, 0)["edges"] for run in world.runs("join")]
    assert {edge["from"] for [edge] in edges} == {run.run_id for run in world.runs("clean")}


@pytest.mark.parametrize("daily", [{"ready": {}}, {"rewritten": "again"}], ids=["ignored", "told by a flag"])
def test_l22_a_known_day_counts_again_where_runs_tell_it(world: World, daily: dict[str, Any]) -> None:
    deploy(world, **daily)
    world.upload(day(1))
    work_off(world)
    run_again(world, "r1")
    assert ran(world) == [2, 1]


def test_l22_a_failed_run_makes_no_day_again(world: World) -> None:
    deploy(world, **AGAIN)
    world.upload(day(1))
    work_off(world)
    actions.run_now(world.ports, full("clean"), {}, "r1", None, FIRST)
    work_off(world, failing="clean")
    assert ran(world) == [2, 1]


def test_l22_the_objects_of_a_run_and_its_end_count_once(world: World) -> None:
    """The first object registers the day while its run goes on. A later run makes the day again."""
    deploy(world, **AGAIN)
    world.upload(day(1))
    world.settle()
    world.upload("daily/year=2013/month=01/day=1/part-0")
    work_off(world)
    assert ran(world) == [1, 1]
    world.upload("daily/year=2013/month=01/day=1/part-0", etag="b")
    work_off(world)
    assert ran(world) == [1, 1]
    run_again(world, "r1")
    assert ran(world) == [2, 2]


def test_l22_two_runs_of_one_day_at_a_time_count_both(world: World) -> None:
    deploy(world, **AGAIN)
    for request in ("r1", "r2"):
        actions.run_now(world.ports, full("clean"), {}, request, None, FIRST)
    world.settle()
    for run in list(world.targets.emr.runs.values()):
        world.emr_says(run.id, "SUCCESS")
        world.settle()
    work_off(world)
    assert ran(world) == [2, 2]


@pytest.mark.parametrize(("late", "runs"), [("again", 2), ("ignore", 1)])
def test_l22_a_day_that_is_made_again_is_late_for_its_week(world: World, late: str, runs: int) -> None:
    week = {"type": "partition", "dataset": "daily", "of": {"periods": 1, "ending": "period"}}
    follower = {"workflow": "join", "enabled": True, "per": "day", "late": late, "trigger": week}
    period = {"each": "day", "format": "year=%Y/month=%m/day=%d"}
    deploy(world, {"clean": SCHEDULES["clean"], "join": follower}, **AGAIN, period=period)
    world.upload(day(1))
    work_off(world)
    run_again(world, "r1")
    assert ran(world) == [2, runs]
    late_ones = [record.reason.text for record in world.records("join")]
    assert len(late_ones) == 2 - runs and all("is late" in text for text in late_ones)


def test_l22_a_reprocessing_of_a_known_day_counts_once(world: World) -> None:
    """The plan starts the schedule that counts the day, so the end of its run does not."""
    deploy(world, **AGAIN)
    world.upload(day(1))
    work_off(world)
    reprocess_id = begin(world)
    work_off(world)
    assert again(world, *SCHEDULES) == [("clean", FIRST), ("join", FIRST)]
    assert (ran(world), seen(world, reprocess_id)["state"]) == ([2, 2], "DONE")


def test_l22_a_loop_through_a_day_that_is_made_again_is_refused(world: World) -> None:
    deploy(world, {**SCHEDULES, "back": after("clean", "join", by=BY_DAY)}, **AGAIN)
    loop = {"target": EMR, "produces": [{"dataset": "flights", "register": "on_success"}]}
    with pytest.raises(SluiceError, match="expected triggers without a cycle") as raised:
        workflows.put(world.ports, full("join"), loop, "tester")
    assert raised.value.code == "cycle"


# -- the put of a workflow ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "named"),
    [
        (flights({"one": at("0 5 * * *")}), "demo.flights.one"),
        (flights({}) | {"dags": {"graph": {"nodes": {"one": {"workflow": "clean"}}, "trigger": AT_FIVE}}}, "graph"),
    ],
    ids=["schedule", "dag"],
)
def test_l22_a_workflow_whose_schedules_name_no_day_is_refused(
    world: World, document: dict[str, Any], named: str
) -> None:
    document["datasets"]["daily"] = DAILY
    world.deploy(document)
    with pytest.raises(SluiceError) as raised:
        workflows.put(world.ports, full("clean"), REGISTERS, "tester")
    assert (raised.value.code, raised.value.field) == ("invalid", "produces")
    assert f"got {named if named.startswith('demo') else full(named)}: " in raised.value.message
    assert "the keys year, month, day of demo.daily" in raised.value.message
    world.deploy(flights({"one": partitions(by=BY_DAY)}) | {"datasets": document["datasets"]})
    workflows.put(world.ports, full("clean"), REGISTERS, "tester")
    workflows.put(world.ports, full("clean"), {**REGISTERS, "priority": 7}, "tester")


def test_l22_a_schedule_of_another_app_is_asked_too(world: World) -> None:
    document = flights({})
    document["datasets"]["daily"] = DAILY
    world.deploy(document)
    world.deploy({"schedules": {"one": at("0 5 * * *", workflow="demo.flights.clean")}}, app="other")
    registers = flights({}, clean=REGISTERS) | {"datasets": document["datasets"]}
    with pytest.raises(SluiceError, match="got demo.other.one: ") as raised:
        world.deploy(registers)
    assert raised.value.field == "workflows.clean.produces"
