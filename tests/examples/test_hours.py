"""The example `hours` without Spark: the same files in the same order, on the service in memory."""

from __future__ import annotations

import importlib
import io
from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from examples.flights import data
from examples.hours.data import ORIGINS, Hour, hours_of, missing, readings
from examples.hours.expected import Expected, expected
from examples.hours.run import (
    DAYS,
    LATE,
    LONG,
    SHORT,
    TWICE,
    USUAL,
    WAITING,
    agree,
    arrivals,
    late,
    missing_of,
    without_readings,
)
from sluice import documents
from tests.support.answers import explain
from tests.support.world import World

pandas: Any = importlib.import_module("pandas")  # the package has no types
APP = Path(__file__).parents[2] / "examples" / "hours" / "app.yaml"
VALUES = {"namespace": "demo", "prefix": "demo/", "lake": "lake", "code": "s3://control/code/"}
SCHEDULE = "demo.hours.daily"


def deliver(world: World, files: Iterable[tuple[str, bytes]]) -> None:
    for key, body in files:
        world.upload(f"demo/raw/weather/{key}", size=len(body))
    world.settle()


def days_run(world: World) -> dict[str, float]:
    """The length in hours of the period of each run, by its day. Each day has one run."""
    runs = world.runs(SCHEDULE)
    found = {}
    for run in runs:
        period = world.context(run)["period"]
        found[period["label"]] = (period["end"] - period["start"]) / 3_600_000
    assert len(found) == len(runs)
    return found


def waiting(world: World) -> dict[str, set[str]]:
    return missing_of(explain.why_schedule(world.ports, SCHEDULE)["jobs"])


def folders(hours: Iterable[Hour]) -> set[str]:
    return {hour.folder for hour in hours}


def test_t25_days_of_real_hours_run_when_they_are_complete(world: World) -> None:
    world.deploy(documents.load(str(APP), VALUES), app="hours")
    deliver(world, arrivals())
    assert days_run(world) == {str(USUAL): 24}
    gaps = {str(day): folders(missing(day)) for day in (LONG, WAITING)}
    assert waiting(world) == {str(SHORT): {LATE.folder}, **gaps}

    deliver(world, [late()])
    assert days_run(world) == {str(USUAL): 24, str(SHORT): 23}
    assert waiting(world) == gaps
    deliver(world, without_readings())
    assert days_run(world) == {str(USUAL): 24, str(SHORT): 23, str(LONG): 25}
    assert waiting(world) == {str(WAITING): gaps[str(WAITING)]}


@pytest.mark.parametrize(("day", "hours"), [(SHORT, 23), (USUAL, 24), (LONG, 25), (WAITING, 24)])
def test_the_source_has_the_hours_that_the_example_says(day: date, hours: int) -> None:
    assert len(hours_of(day)) == hours
    assert len(readings(day)) + len(missing(day)) == hours * len(ORIGINS)
    assert len(missing(day)) == {LONG: 3, WAITING: 1}.get(day, 0)


def test_the_hours_arrive_shuffled_one_twice_and_one_late() -> None:
    keys = [key for key, _ in arrivals()]
    folders = Counter(key.rpartition("/")[0] for key in keys)
    assert keys != sorted(keys)
    assert len(set(keys)) == len(keys)
    assert [folder for folder, count in folders.items() if count == 2] == [TWICE.folder]
    there = {hour.folder for day in DAYS for hour in readings(day)}
    assert {*folders, late()[0].rpartition("/")[0]} == there
    assert LATE.folder not in folders


def test_the_expected_rows_agree_with_pandas() -> None:
    table = pandas.read_csv(io.BytesIO(data.weather_csv(LONG)))
    for (_, origin), want in expected([LONG]).items():
        own = table[table.origin == origin]
        figures = (own.temp.mean(), own.temp.min(), own.temp.max(), own.precip.sum())
        assert want[:2] == (25, len(own)) == (25, 24)
        assert want[2:] == pytest.approx(figures)


@pytest.mark.parametrize("wrong", ["hours", "readings", "mean_temp", "min_temp", "max_temp", "precip"])
def test_a_row_with_one_wrong_value_is_detected(wrong: str) -> None:
    want = Expected(25, 24, 50.123, 41.0, 59.0, 0.3)
    row = {name: str(value) for name, value in want._asdict().items()}
    assert agree(row, want)
    assert not agree(row | {wrong: str(getattr(want, wrong) + 1)}, want)
