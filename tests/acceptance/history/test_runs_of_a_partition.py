"""The page of a partition: every run that used it, also by a backfill or a re-processing, and who made it (L22)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.backfills.request import Backfill
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.backfills import backfill
from chalicelib.flow.views import partitions, used
from tests.acceptance.schedules.test_reprocess import FIRST, begin, work_off
from tests.acceptance.words import day
from tests.support.schedules import BY_DAY
from tests.support.schedules import partitions as on
from tests.support.world import EMR, World, flights, full

DAYS = [FIRST | {"day": str(number)} for number in (1, 2, 3)]


def lake(world: World, by: list[str] = BY_DAY, **clean: Any) -> None:
    schedules = {"clean": on(by=by), "join": on(workflow="join", dataset="weather", by=BY_DAY)}
    world.deploy(flights(schedules, clean={"target": EMR, **clean}))
    for number in (1, 2, 3):
        world.upload(day(number))
        work_off(world)


def page(world: World, values: dict[str, str] = FIRST, name: str = "demo.flights") -> Any:
    row = world.ports.rows.get(Definition, "dataset", name)
    assert row is not None
    return partitions.one(world.ports, name, Dataset.model_validate(row.document), values)


def backfilled(world: World, request: str, *days: dict[str, str], name: str = "clean") -> None:
    asked = Backfill.model_validate({"partitions": {"values": list(days)}})
    backfill.begin(world.ports, full(name), asked, "tester", request)
    work_off(world)


def test_l22_a_partition_shows_runs_of_backfills_newest_first(world: World) -> None:
    lake(world)
    backfilled(world, "b1", *DAYS[:2])
    world.clock.pass_by("1m")
    reprocess_id = begin(world)
    work_off(world)
    runs = page(world)["runs"]
    assert [run["backfill"] for run in runs] == [f"{reprocess_id}.0", runs[1]["backfill"], None]
    assert [run["run_id"] for run in runs] == [
        run.run_id
        for run in sorted(world.runs("clean"), key=lambda run: -run.claimed_at)
        if dict(run.partition or {}) == FIRST
    ]
    assert len(page(world, DAYS[1])["runs"]) == 2
    assert len(page(world, DAYS[2])["runs"]) == 1
    assert page(world)["at_least"] is False


def test_l22_a_month_of_a_backfill_used_each_of_its_days(world: World) -> None:
    lake(world, ["year", "month"])
    backfilled(world, "b1", *DAYS)
    for values in DAYS:
        assert [run["backfill"] is None for run in page(world, values)["runs"]] == [False, True]


def test_l22_a_missing_partition_shows_the_run_of_its_backfill(world: World) -> None:
    lake(world)
    backfilled(world, "b1", FIRST | {"day": "9"})
    view = page(world, FIRST | {"day": "9"})
    assert (view["ready_at"], len(view["runs"])) == (None, 1)


def test_l22_a_job_of_a_backfill_that_waits_is_shown(world: World) -> None:
    lake(world)
    world.pause("clean")
    backfill.begin(
        world.ports, full("clean"), Backfill.model_validate({"partitions": {"values": DAYS[:1]}}), "tester", "b1"
    )
    view = page(world)
    assert (len(view["runs"]), [job["schedule"] for job in view["waiting"]]) == (1, [full("clean")])


def test_l22_a_run_that_ran_again_is_shown_by_its_partition(world: World) -> None:
    lake(world)
    first = min(world.runs("clean"), key=lambda run: run.claimed_at)
    reprocess_id = begin(world, run=first.run_id)
    work_off(world)
    assert [run["backfill"] for run in page(world)["runs"]] == [f"{reprocess_id}.0", None]


@pytest.mark.parametrize("product", ["weather", {"dataset": "weather", "register": "on_success"}])
def test_l22_a_partition_shows_the_runs_that_made_it(world: World, product: Any) -> None:
    lake(world, produces=[product])
    made = page(world, FIRST, "demo.weather")["made_by"]
    [run] = [run for run in world.runs("clean") if dict(run.partition or {}) == FIRST]
    assert [(each["run_id"], each["state"]) for each in made] == [(run.run_id, "SUCCEEDED")]
    begin(world)
    work_off(world)
    again = page(world, FIRST, "demo.weather")["made_by"]
    assert [each["backfill"] is None for each in again] == [False, True]
    assert page(world)["made_by"] == []


def test_l22_reads_of_a_page_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(world, produces=["weather"])
    backfilled(world, "b1", *DAYS)
    monkeypatch.setattr(used, "MAX_PARTS", 0)
    view = page(world)
    assert (len(view["runs"]), view["at_least"]) == (1, True)
    monkeypatch.setattr(used, "MAX_WORKFLOWS", 0)
    view = page(world, FIRST, "demo.weather")
    assert (view["made_by"], view["at_least"]) == ([], True)
