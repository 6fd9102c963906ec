"""A re-processing follows the data that workflows produce (L22): in order, once each, and nothing is left waiting."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.flow.backfills import reprocess, reprocess_view
from tests.acceptance.schedules.test_reprocess import FIRST, again, begin, minutes, requested, seen, work_off
from tests.acceptance.words import day
from tests.support.schedules import BY_DAY, after, partitions
from tests.support.world import EMR, World, flights

MONTHLY = {"bucket": "lake", "prefix": "monthly/", "keys": ["year", "month"]}
SCHEDULES = {
    "clean": partitions(by=BY_DAY),
    "join": partitions(workflow="join", dataset="weather", by=BY_DAY),
    "sum": partitions(workflow="sum", dataset="monthly", by=["year", "month"]),
}
NAMES = tuple(SCHEDULES)


def deploy(world: World, schedules: dict[str, Any] | None = None, **weather: Any) -> None:
    """`clean` writes a day of `weather`; that starts `join`, which writes its month; that starts `sum`."""
    workflows = {
        "clean": {"target": EMR, "reads": ["flights"], "produces": ["weather"]},
        "join": {"target": EMR, "reads": ["weather"], "produces": ["monthly"]},
        "sum": {"target": EMR},
    }
    document = flights(SCHEDULES if schedules is None else schedules, **workflows)
    document["datasets"] |= {"monthly": MONTHLY, "weather": document["datasets"]["weather"] | weather}
    world.deploy(document)


def first_time(world: World, *days: int, name: str = "x.csv") -> None:
    """The data of these days, as the jobs write it."""
    for number in days:
        world.upload(day(number))
        work_off(world)
        world.upload(day(number, "weather", name))
        work_off(world)
    world.upload("monthly/year=2013/month=01/sum.csv")
    work_off(world)


def left_out(world: World, **asked: Any) -> dict[str, str]:
    view = reprocess_view.plan_view("demo", reprocess.preview(world.ports, "demo", requested(**asked)))
    return {each["schedule"].removeprefix("demo.flights."): each["why"] for each in view["not_followed"]}


def test_l22_a_reprocessing_follows_data_through_workflows(world: World) -> None:
    deploy(world)
    first_time(world, 1)
    assert [len(world.runs(name)) for name in NAMES] == [1, 1, 1]
    reprocess_id = begin(world)
    work_off(world)
    month = {"year": "2013", "month": "01"}
    assert again(world, *NAMES) == [("clean", FIRST), ("join", FIRST), ("sum", month)]
    assert (seen(world, reprocess_id)["state"], left_out(world)) == ("DONE", {})
    assert [world.jobs(name) for name in NAMES] == [[], [], []]
    run = next(run for run in world.runs("join") if run.backfill)
    assert run.event is not None
    assert (run.event.kind, run.event.path) == ("partition", "s3://lake-bucket/raw/weather/year=2013/month=01/day=1/")
    assert [step["why"] for step in seen(world, reprocess_id)["steps"]] == [
        "counts partitions of demo.flights",
        "counts partitions of demo.weather, which demo.flights.clean produces",
        "counts partitions of demo.monthly, which demo.flights.join produces",
    ]


def test_l22_a_month_of_several_days_runs_again_once(world: World) -> None:
    deploy(world, {**SCHEDULES, "join": SCHEDULES["join"] | {"by": ["year", "month"]}})
    first_time(world, 1, 2)
    ran = len(world.runs("join"))
    begin(world, from_={"year": "2013"})
    work_off(world)
    assert [name for name, _ in again(world, *NAMES)] == ["clean", "clean", "join", "sum"]
    assert len(world.runs("join")) == ran + 1
    event = next(run.event for run in world.runs("join") if run.backfill)
    assert event is not None
    assert dict(event.partition or {}) == FIRST | {"day": "2"}


def test_l22_data_and_status_of_one_run_start_a_schedule_once(world: World) -> None:
    """The two have different values, so each of them alone would be a step."""
    both = [after("join", "x")["trigger"], {"type": "partition", "dataset": "monthly"}]
    deploy(
        world, SCHEDULES | {"sum": {"workflow": "sum", "trigger": {"type": "any", "triggers": both}, "enabled": True}}
    )
    first_time(world, 1)
    before = len(world.runs("sum"))
    begin(world)
    work_off(world)
    assert [name for name, _ in again(world, *NAMES)] == ["clean", "join", "sum"]
    assert (len(world.runs("sum")), world.jobs("sum")) == (before + 1, [])


def test_l22_a_later_day_finds_no_half_of_a_match(world: World) -> None:
    both = [after("clean", "x")["trigger"], {"type": "partition", "dataset": "weather"}]
    joined = {"workflow": "join", "by": BY_DAY, "trigger": {"type": "all", "triggers": both}, "enabled": True}
    deploy(world, SCHEDULES | {"join": joined})
    first_time(world, 1)
    begin(world)
    work_off(world)
    first_time(world, 2)
    assert [len(world.runs(name)) for name in ("clean", "join")] == [3, 3]
    assert [world.jobs(name) for name in NAMES] == [[], [], []]


@pytest.mark.parametrize(
    ("weather", "why"),
    [
        (
            {"rewritten": "again", "ready": {"done_flag": "_SUCCESS"}},
            "a partition of demo.weather that is written again starts it by itself",
        ),
        (
            {"keys": [*BY_DAY, "hour"]},
            "a run for year=2013/month=01/day=1 names no hour, which a partition of demo.weather has",
        ),
        ({}, "partition 2013/01/1 of demo.weather is not registered, and starts it by itself when it comes"),
    ],
)
def test_l22_a_dry_run_names_what_it_does_not_follow(world: World, weather: dict[str, Any], why: str) -> None:
    deploy(world, **weather)
    world.upload(day(1))
    work_off(world)
    assert left_out(world) == {"join": why}
    begin(world)
    work_off(world)
    assert [name for name, _ in again(world, *NAMES)] == ["clean"]


def test_l22_data_that_is_written_again_counts_once(world: World) -> None:
    """The plan leaves the schedule to the second flag: together they would start it twice."""
    deploy(world, rewritten="again", ready={"done_flag": "_SUCCESS"})
    first_time(world, 1, name="_SUCCESS")
    begin(world)
    work_off(world)
    world.clock.pass_by("1h")
    world.upload(day(1, "weather", "_SUCCESS"))
    work_off(world)
    assert [len(world.runs(name)) for name in ("clean", "join")] == [2, 2]


def test_l22_a_schedule_on_bytes_is_named(world: World) -> None:
    size = {"workflow": "notify", "trigger": {"type": "size", "dataset": "weather", "bytes": "1GB"}, "enabled": True}
    deploy(world, SCHEDULES | {"large": size})
    first_time(world, 1)
    assert left_out(world) == {"large": "counts the bytes of demo.weather, and starts by itself when they come"}
    assert left_out(world, scope="only") == {}


def test_l22_upto_ends_at_a_workflow_that_data_starts(world: World) -> None:
    deploy(world)
    first_time(world, 1)
    begin(world, upto="demo.flights.join")
    work_off(world)
    assert [name for name, _ in again(world, *NAMES)] == ["clean", "join"]


def test_l22_what_a_node_of_a_dag_produces_is_followed(world: World) -> None:
    nodes = {"one": {"workflow": "clean"}, "two": {"workflow": "notify"}}
    graph = {"nodes": nodes, "edges": [{"from": "one", "to": "two"}], "by": BY_DAY, "enabled": True}
    document = flights({"join": SCHEDULES["join"]}, clean={"target": EMR, "produces": ["weather"]})
    world.deploy({**document, "dags": {"daily": {**graph, "trigger": {"type": "partition", "dataset": "flights"}}}})
    world.upload(day(1))
    minutes(world)
    world.upload(day(1, "weather", "x.csv"))
    minutes(world)
    assert len(world.runs("join")) == 1
    begin(world)
    minutes(world)
    assert [name for name, _ in again(world, "daily~", "join")] == ["daily~", "join"]
