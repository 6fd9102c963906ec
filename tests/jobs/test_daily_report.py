from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from daily_report import FLIGHTS_SCHEMA, WEATHER_SCHEMA, transform, work
from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

Flight = tuple[str, bool, int | None, int, int, int]
Weather = tuple[str, str, int, float | None, int, int, int]


def report(spark: SparkSession, flights: list[Flight], weather: list[Weather]) -> list[Row]:
    return transform(
        spark.createDataFrame(flights, FLIGHTS_SCHEMA), spark.createDataFrame(weather, WEATHER_SCHEMA)
    ).collect()


def test_a_report_day_has_its_shares_and_its_mean(spark: SparkSession) -> None:
    delays: list[int | None] = [15, 16, 30, -1, None]
    (row,) = report(spark, [("EWR", delay is None, delay, 2013, 1, 1) for delay in delays], [])

    assert (row.flights, row.cancelled_share, row.mean_dep_delay, row.late_share) == (5, 0.2, 15.0, 0.5)
    assert row.worst_weather_class is None


def test_the_trailing_mean_is_seven_days_weighted_by_departures(spark: SparkSession) -> None:
    # No data from the 2nd to the 6th: the window of the 7th contains the 1st, that of the 8th does not.
    flights: list[Flight] = [("EWR", False, 40, 2013, 1, 1), ("JFK", False, 999, 2013, 1, 7)]
    flights += [("EWR", False, 10, 2013, 1, 7)] * 2 + [("EWR", False, 1, 2013, 1, 8), ("EWR", True, None, 2013, 1, 9)]
    rows = [row for row in report(spark, flights, []) if row.origin == "EWR"]

    assert [row.trailing_7d_mean_dep_delay for row in rows] == [40.0, 20.0, 7.0, 7.0]
    assert rows[-1].mean_dep_delay is None


def test_rows_are_in_the_order_of_day_and_origin(spark: SparkSession) -> None:
    flights: list[Flight] = [("LGA", False, 1, 2013, 10, 1), ("LGA", False, 1, 2013, 9, 30)]
    flights += [("EWR", False, 1, 2013, 10, 1)]
    found = [(str(row.day), row.origin) for row in report(spark, flights, [])]

    assert found == [("2013-09-30", "LGA"), ("2013-10-01", "EWR"), ("2013-10-01", "LGA")]


def test_the_worst_class_has_the_highest_mean_or_no_departure(spark: SparkSession) -> None:
    flights: list[Flight] = [("EWR", False, 1, 2013, 1, 1), ("EWR", False, 1, 2013, 1, 2)]
    weather: list[Weather] = [
        ("EWR", "calm/clear/dry", 9, 5.0, 2013, 1, 1),
        ("EWR", "windy/poor/wet", 3, 50.0, 2013, 1, 1),
        ("EWR", "unknown", 1, 500.0, 2013, 1, 1),
        ("EWR", "windy/poor/wet", 3, 50.0, 2013, 1, 2),
        ("EWR", "windy/poor/heavy", 2, None, 2013, 1, 2),
    ]
    worst = [row.worst_weather_class for row in report(spark, flights, weather)]
    assert worst == ["windy/poor/wet", "windy/poor/heavy"]


def test_without_any_day_an_empty_report_is_written_and_logged(spark: SparkSession, lake: Any, run: Any) -> None:
    properties = {"clean_flights": lake.root("clean/"), "delays_by_weather": lake.root("j/"), "output": lake.root("r/")}
    summary = run(work, properties, correlation=None, events=[{"kind": "time", "id": "t", "instant": 0}])

    assert (summary["days"], summary["rows_in"], summary["rows_out"]) == (0, 0, 0)
    assert "no day of clean flights yet" in summary["note"]
    written = spark.read.parquet(summary["output"])
    assert written.isEmpty() and "worst_weather_class" in written.columns
    assert Path(summary["csv"], "_SUCCESS").exists()


def test_each_report_has_its_own_path_overwritten_by_repetition(spark: SparkSession, lake: Any, run: Any) -> None:
    flights = spark.createDataFrame([("EWR", False, 20, 2013, 1, 1), ("EWR", False, 2, 2013, 1, 2)], FLIGHTS_SCHEMA)
    for day in (1, 2):
        of_day = flights.where(f"day = {day}").drop("year", "month", "day")
        of_day.coalesce(1).write.parquet(lake.root(f"clean/year=2013/month=1/day={day}/"))
    properties = {"clean_flights": lake.root("clean/"), "output": lake.root("report/")}
    first = run(work, properties, logical_start_time=1_000)
    before = lake.files("report/")
    second = run(work, properties, logical_start_time=2_500)
    again = run(work, properties, logical_start_time=2_500)

    assert first["csv"].endswith("/csv/as_of=19700101T000001.000Z/")
    assert second["csv"].endswith("/csv/as_of=19700101T000002.500Z/") and again["csv"] == second["csv"]
    assert (again["days"], again["rows_in"], again["rows_out"]) == (2, 2, 2)
    after = lake.files("report/")
    assert {path: after[path] for path in before} == before
    (file,) = Path(again["csv"]).glob("*.csv")
    lines = list(csv.DictReader(file.read_text().splitlines()))
    assert [(line["day"], line["late_share"]) for line in lines] == [("2013-01-01", "1.0"), ("2013-01-02", "0.0")]
