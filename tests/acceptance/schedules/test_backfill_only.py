"""Backfills of what is missing or has failed, beside work that is in flight (L23)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.backfills import periods
from tests.acceptance.words import concurrency, day, on, partition
from tests.acceptance.words import time as at
from tests.support.backfills import about, begin, counts, preview, ran, seen, stop
from tests.support.world import EMR, World, flights

BY = ["year", "month", "day"]
ALL: dict[str, Any] = {"partitions": {}}
DAYS = {"from_": "2026-02-20T00:00:00Z", "to": "2026-02-25T00:00:00Z"}


def states(world: World, name: str, **asked: Any) -> dict[str, str]:
    """What became of each day of a range so far, as a dry run shows it. A star marks what would run."""
    found = {}
    for each in preview(world, name, **asked)["entries"]:
        text = each["entry"] if isinstance(each["entry"], str) else each["entry"]["day"]
        found[text[8:10] if "T" in text else text] = each["state"] + ("*" if each["runs"] else "")
    return found


def register(world: World, *numbers: int) -> None:
    for number in numbers:
        world.upload(day(number))
        world.settle()


def mixed(world: World) -> None:
    """Days 10 to 14: succeeded, failed, running, waiting for a slot, and never run."""
    world.deploy(flights({}))
    register(world, 14)
    world.deploy(flights({"clean": on(partition(), "clean", concurrency(1), by=BY)}))
    for number, state in ((10, "SUCCESS"), (11, "FAILED")):
        register(world, number)
        world.finish(state)
        world.settle()
    register(world, 12, 13)


@pytest.mark.parametrize(
    ("only", "runs"), [("all", {"10", "11", "14"}), ("missing", {"14"}), ("failed", {"11"})]
)  # fmt: skip
def test_l23_a_backfill_runs_the_missing_or_failed_alone(world: World, only: str, runs: set[str]) -> None:
    mixed(world)
    now = {"10": "succeeded", "11": "failed", "12": "running", "13": "waiting", "14": "missing"}
    assert states(world, "clean", **ALL, only=only) == {
        each: state + ("*" if each in runs else "") for each, state in now.items()
    }
    before = len(world.runs("clean"))
    backfill = begin(world, "clean", **ALL, only=only, concurrency=5)
    view = seen(world, "clean", backfill)
    assert (view["only"], view["total"], view["left_alone"]) == (only, len(runs), 2)
    assert [entry["day"] for entry in view["in_flight"]] == ["12", "13"]
    while world.finish():
        world.settle()
    assert {about(run).rpartition("/")[2] for run in ran(world, "clean") if run.backfill == backfill} == runs
    assert len(world.runs("clean")) == before + 1 + len(runs), "day 13 ran once, and what ran at first did not again"


def test_l23_a_dry_run_says_what_each_entry_waits_for(world: World) -> None:
    mixed(world)
    entries = {each["entry"]["day"]: each for each in preview(world, "clean", **ALL)["entries"]}
    assert entries["13"]["code"] == "limit"
    assert entries["13"]["why"].text == "waits for a slot of workflow demo.flights.clean: 1 of 1 in use"
    [failed] = [run for run in world.runs("clean") if run.state == "FAILED"]
    assert (entries["11"]["run_id"], entries["14"]["run_id"]) == (failed.run_id, None)
    assert preview(world, "clean", **ALL)["now"] == dict.fromkeys(
        ("missing", "waiting", "running", "succeeded", "failed"), 1
    )


def test_l23_the_days_of_another_backfill_are_left_alone(world: World) -> None:
    world.deploy(flights({"nightly": on(at("0 2 * * *"), "clean")}))
    first = begin(world, "nightly", from_="2026-02-22T00:00:00Z", to="2026-02-24T00:00:00Z")
    world.settle()
    assert states(world, "nightly", **DAYS) == {
        "20": "missing*", "21": "missing*", "22": "running", "23": "waiting", "24": "missing*",
    }  # fmt: skip
    second = begin(world, "nightly", "b2", **DAYS, concurrency=3)
    while world.finish():
        world.settle()
    assert (counts(world, "nightly", first), counts(world, "nightly", second)) == ({"succeeded": 2}, {"succeeded": 3})
    assert sorted(about(run)[8:] for run in ran(world, "nightly")) == ["20", "21", "22", "23", "24"]
    with pytest.raises(SluiceError, match="a range with an entry that is missing, got '5 succeeded'"):
        begin(world, "nightly", "b3", **DAYS, only="missing")


def test_l23_what_a_cancelled_backfill_left_is_missing(world: World) -> None:
    world.deploy(flights({"nightly": on(at("0 2 * * *"), "clean")}))
    first = begin(world, "nightly", **DAYS)
    world.settle()
    stop(world, "nightly", first)
    world.settle()
    world.finish("FAILED")
    world.settle()
    assert states(world, "nightly", **DAYS, only="missing") == {
        "20": "failed", "21": "missing*", "22": "missing*", "23": "missing*", "24": "missing*",
    }  # fmt: skip


def test_l23_an_attempt_that_is_retried_is_in_flight(world: World) -> None:
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "10m"}}
    world.deploy(flights({"nightly": on(at("0 2 * * *"), "clean")}, clean=retried))
    begin(world, "nightly", from_="2026-02-22T00:00:00Z", to="2026-02-23T00:00:00Z")
    world.settle()
    world.finish("FAILED")
    world.settle()
    assert states(world, "nightly", **DAYS)["22"] == "running"


def test_l23_the_newest_run_of_a_day_decides(world: World) -> None:
    world.deploy(flights({"nightly": on(at("0 2 * * *"), "clean")}))
    for request, only, state in (("a", "all", "FAILED"), ("b", "failed", "SUCCESS")):
        begin(world, "nightly", request, from_="2026-02-22T00:00:00Z", to="2026-02-23T00:00:00Z", only=only)
        world.settle()
        world.clock.pass_by("1m")
        world.finish(state)
        world.settle()
    assert states(world, "nightly", **DAYS)["22"] == "succeeded*"


def test_l23_without_by_no_run_names_its_partition(world: World) -> None:
    world.deploy(flights({"clean": on(partition(count=2), "clean")}))
    register(world, 10)
    with pytest.raises(SluiceError, match="a schedule with by") as refused:
        begin(world, "clean", **ALL, only="missing")
    assert (refused.value.field, refused.value.hint) == (
        "only", "add by: [year, month, day] to the schedule, or leave out only",
    )  # fmt: skip
    assert states(world, "clean", **ALL) == {"10": "missing*"}


def test_l23_runs_that_were_not_read_are_not_missing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed(world)
    monkeypatch.setattr(periods, "MAX_ATTEMPTS", 1)
    with pytest.raises(SluiceError, match="entries that begin after"):
        begin(world, "clean", **ALL, only="missing")
    assert states(world, "clean", **ALL)["12"] == "running", "what is in flight is among the newest"
