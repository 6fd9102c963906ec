"""The data of a run that a user started for a partition: a run-now, and a backfill of a schedule with two inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core.backfills.request import Backfill
from chalicelib.core.history.durations import waited
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.run import Run
from chalicelib.flow.backfills import backfill
from chalicelib.flow.schedules import actions
from tests.support.world import World, full

FIRST = {"day": "2026-03-01"}
LEAVES = {name: {"type": "partition", "dataset": name} for name in ("orders", "rates")}


def shop(world: World, trigger: Mapping[str, Any]) -> None:
    """Orders and rates have come for the first day; the schedule was deployed afterwards, so it has not run."""
    datasets = {name: {"bucket": "lake-bucket", "prefix": f"{name}/", "keys": ["day"]} for name in LEAVES}
    app: dict[str, Any] = {
        "namespace": "demo",
        "app": "flights",
        "datasets": datasets,
        "workflows": {"work": {"target": {"type": "emr_serverless", "entry_point": "s3://code/work.py"}}},
    }
    world.deploy(app)
    for name in LEAVES:
        world.upload(f"{name}/day=2026-03-01/part.csv")
    world.settle()
    schedule = {"workflow": "work", "enabled": True, "by": ["day"], "trigger": dict(trigger)}
    world.deploy({**app, "schedules": {"clean": schedule}})


def run_for(world: World, day: Mapping[str, str]) -> Run:
    actions.run_now(world.ports, full("clean"), {}, "r1", partition=day)
    world.settle()
    [run] = world.runs("clean")
    return run


def events(world: World, run: Run) -> list[tuple[str, str | None]]:
    return [(event["kind"], event.get("path")) for event in world.context(run)["events"]]


def test_l11_a_run_for_a_partition_gets_the_path_of_its_data(world: World) -> None:
    shop(world, LEAVES["orders"])
    run = run_for(world, FIRST)
    assert events(world, run) == [("run_now", None), ("partition", "s3://lake-bucket/orders/day=2026-03-01/")]


def test_l11_a_run_for_an_unknown_partition_gets_its_path(world: World) -> None:
    shop(world, LEAVES["orders"])
    run = run_for(world, {"day": "2019-01-01"})
    assert events(world, run)[1:] == [("partition", "s3://lake-bucket/orders/day=2019-01-01/")]


def test_l11_a_run_of_a_join_gets_the_inputs_that_are_there(world: World) -> None:
    shop(world, {"type": "all", "triggers": list(LEAVES.values())})
    run = run_for(world, FIRST)
    paths = ["s3://lake-bucket/orders/day=2026-03-01/", "s3://lake-bucket/rates/day=2026-03-01/"]
    assert [path for _, path in events(world, run)[1:]] == paths
    assert run.partition == FIRST


def test_l11_a_join_gets_no_input_that_has_not_come(world: World) -> None:
    shop(world, {"type": "all", "triggers": list(LEAVES.values())})
    run = run_for(world, {"day": "2019-01-01"})
    assert events(world, run) == [("run_now", None)]


def test_l12_a_backfilled_join_gets_its_other_input_too(world: World) -> None:
    shop(world, {"type": "all", "triggers": list(LEAVES.values())})
    asked = {"partitions": {"dataset": "orders", "values": [FIRST]}}
    backfill.begin(world.ports, full("clean"), Backfill.model_validate(asked), "tester", "r1")
    world.settle()
    [run] = world.runs("clean")
    paths = ["s3://lake-bucket/orders/day=2026-03-01/", "s3://lake-bucket/rates/day=2026-03-01/"]
    assert events(world, run) == [("partition", path) for path in paths]


def joined(world: World) -> Run:
    """A join of a dataset and a workflow, whose run for the first day has succeeded, is backfilled for that day."""
    upstream = {"type": "program_status", "workflow": "convert"}
    schedules = {
        "convert": {"workflow": "convert", "enabled": True, "by": ["day"], "trigger": LEAVES["rates"]},
        "clean": {
            "workflow": "work",
            "enabled": True,
            "by": ["day"],
            "trigger": {"type": "all", "triggers": [LEAVES["orders"], upstream]},
        },
    }
    emr = {"target": {"type": "emr_serverless", "entry_point": "s3://code/work.py"}}
    datasets = {name: {"bucket": "lake-bucket", "prefix": f"{name}/", "keys": ["day"]} for name in LEAVES}
    workflows = {"work": emr, "convert": emr}
    world.deploy(
        {"namespace": "demo", "app": "flights", "datasets": datasets, "workflows": workflows, "schedules": schedules}
    )
    for number in ("01", "02"):
        world.upload(f"rates/day=2026-03-{number}/part.csv")
        world.settle()
        world.clock.pass_by("1s")
    asked = {"partitions": {"values": [FIRST]}}
    for job_run in list(world.targets.emr.runs):
        world.emr_says(job_run, "SUCCESS")
    world.settle()
    backfill.begin(world.ports, full("clean"), Backfill.model_validate(asked), "tester", "r1")
    world.settle()
    [run] = world.runs("clean")
    return run


def test_l12_a_backfilled_join_gets_the_status_of_its_upstream(world: World) -> None:
    run = joined(world)

    context = world.context(run)

    first, second = world.runs("convert")
    of_day = first if first.partition == FIRST else second
    assert [(event["kind"], event.get("run_id")) for event in context["events"]] == [
        ("partition", None),
        ("program_status", of_day.run_id),
    ]
    assert context["upstream"]["run_id"] == of_day.run_id
    assert run.partition == FIRST


def test_h1_a_backfilled_run_has_not_waited_since_its_data_came(world: World) -> None:
    shop(world, LEAVES["orders"])
    world.clock.pass_by("9d")
    asked = {"partitions": {"values": [FIRST]}}
    backfill.begin(world.ports, full("clean"), Backfill.model_validate(asked), "tester", "r1")
    world.settle()
    [run] = world.runs("clean")
    assert waited(run) < SECOND
