from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from clean_flights import DUPLICATE, SOURCE, transform, work
from pyspark.sql import Row, SparkSession
from sluice_job import Day

from examples.flights import data

Changes = dict[str, str | None]
DAY = Day(2013, 1, 15)
# 17:15 in New York in winter is 22:15 UTC.
FLIGHT: dict[str, str] = dict.fromkeys(SOURCE, "1") | {
    "year": "2013", "month": "1", "day": "15", "sched_dep_time": "1715", "dep_time": "1720", "dep_delay": "5",
    "arr_time": "1900", "sched_arr_time": "1910", "carrier": "UA", "flight": "7", "tailnum": "N1", "origin": "EWR",
    "dest": "IAH", "time_hour": "2013-01-15T22:00:00Z",
}  # fmt: skip

pandas: Any = importlib.import_module("pandas")  # the package has no types
pytestmark = pytest.mark.spark

Judge = Callable[..., list[Row]]


def local(instant: datetime) -> datetime:
    """A datetime as Spark returns instants to Python: in the time zone of the test machine, without a zone."""
    return instant.astimezone().replace(tzinfo=None, fold=0)


def utc(*parts: int) -> datetime:
    year, month, day, hour, minute = parts
    return local(datetime(year, month, day, hour, minute, tzinfo=UTC))


@pytest.fixture
def judge(spark: SparkSession) -> Judge:
    """Judges one row per given set of changes to ``FLIGHT``, in that order."""

    def transformed(*changes: Changes, day: Day = DAY) -> list[Row]:
        # The position of the row goes into a column that no rule reads.
        rows: list[Changes] = [{**FLIGHT, "distance": str(place), **change} for place, change in enumerate(changes)]
        schema = ", ".join(f"{name} string" for name in SOURCE)
        raw = spark.createDataFrame([tuple(row[name] for name in SOURCE) for row in rows], schema)
        return sorted(transform(raw.coalesce(1), day).collect(), key=lambda row: row.source.distance)

    return transformed


def test_a_good_row_gets_types_and_instants_in_utc(judge: Judge) -> None:
    (row,) = judge({"flight": " 7 ", "arr_delay": "-12.0", "air_time": "NA", "tailnum": ""})

    assert row.reason is None
    assert (row.carrier, row.flight, row.arr_delay, row.air_time, row.tailnum) == ("UA", 7, -12, None, None)
    assert row.scheduled_departure == utc(2013, 1, 15, 22, 15)
    assert row.time_hour == utc(2013, 1, 15, 22, 0)
    assert row.departure == utc(2013, 1, 15, 22, 20)
    assert row.cancelled is False


def test_unusable_rows_are_rejected_with_the_reason(judge: Judge) -> None:
    broken: list[tuple[Changes, str]] = [
        ({"carrier": None, "origin": "NA"}, "missing: carrier, origin"),
        ({"flight": "", "dep_time": "oops"}, "missing: flight"),
        ({"sched_dep_time": "NA"}, "missing: sched_dep_time"),
        ({"dep_time": "oops"}, "malformed: dep_time"),
        ({"dep_time": "1760", "dep_delay": "1.5"}, "malformed: dep_delay, dep_time"),
        ({"sched_dep_time": "2401"}, "malformed: sched_dep_time"),
        ({"time_hour": "yesterday"}, "malformed: time_hour"),
        ({"month": "13"}, "malformed: year, month, day"),
        ({"day": "16", "time_hour": "2013-01-16T22:00:00Z"}, "other day than the partition's"),
        ({"time_hour": "2013-01-15T21:00:00Z"}, "sched_dep_time is not that time_hour in America/New_York"),
    ]
    assert [row.reason for row in judge(*(change for change, _ in broken))] == [reason for _, reason in broken]


def test_a_flight_without_a_departure_time_is_kept_as_cancelled(judge: Judge) -> None:
    (row,) = judge({"dep_time": "NA", "dep_delay": "NA", "arr_time": "NA"})

    assert (row.reason, row.cancelled, row.departure, row.dep_delay) == (None, True, None, None)


def test_midnight_is_2400_or_0_and_belongs_to_the_next_day(judge: Judge) -> None:
    late = {"sched_dep_time": "2355", "time_hour": "2013-01-16T04:00:00Z"}
    rows = judge(
        late | {"flight": "1", "dep_time": "2400", "dep_delay": "5"},
        late | {"flight": "2", "dep_time": "2400", "dep_delay": "NA"},
        late | {"flight": "3", "dep_time": "0", "dep_delay": "NA"},
        {"flight": "4", "sched_dep_time": "2400", "time_hour": "NA", "dep_time": "2350", "dep_delay": "NA"},
    )
    midnight = utc(2013, 1, 16, 5, 0)

    assert [row.reason for row in rows] == [None] * 4
    assert [row.departure for row in rows[:3]] == [midnight] * 3
    assert [row.dep_delay for row in rows] == [5, 5, 5, -10]
    assert rows[3].scheduled_departure == midnight


def test_the_hour_skipped_in_spring_is_invalid_and_others_adjoin(judge: Judge) -> None:
    sunday = {"month": "3", "day": "10", "dep_time": "NA", "time_hour": "NA"}
    before, skipped, after = judge(
        sunday | {"sched_dep_time": "130"},
        sunday | {"sched_dep_time": "230"},
        sunday | {"sched_dep_time": "330"},
        day=Day(2013, 3, 10),
    )
    assert skipped.reason is not None
    assert before.scheduled_departure == utc(2013, 3, 10, 6, 30)
    assert after.scheduled_departure == utc(2013, 3, 10, 7, 30)


def test_the_hour_repeated_in_autumn_is_resolved_by_time_hour(judge: Judge) -> None:
    sunday = {"month": "11", "day": "3", "sched_dep_time": "130", "dep_time": "NA"}
    rows = judge(
        sunday | {"time_hour": "2013-11-03T05:00:00Z"},
        sunday | {"time_hour": "2013-11-03T06:00:00Z"},
        day=Day(2013, 11, 3),
    )
    assert [row.reason for row in rows] == [None, None]
    assert [row.scheduled_departure for row in rows] == [utc(2013, 11, 3, 5, 30), utc(2013, 11, 3, 6, 30)]


def test_of_duplicate_rows_departed_ones_then_fuller_ones_stay(judge: Judge) -> None:
    cancelled, thin, full, other = judge(
        {"dep_time": "NA", "dep_delay": "NA"}, {"air_time": "NA"}, {"air_time": "50"}, {"origin": "JFK"}
    )
    assert [row.reason for row in (cancelled, thin)] == [DUPLICATE, DUPLICATE]
    assert (full.reason, other.reason) == (None, None)


def test_a_real_snow_day_loses_and_gains_no_flight(spark: SparkSession, lake: Any, run: Any) -> None:
    theirs = pandas.read_csv(io.BytesIO(data.flights_csv(date(2013, 2, 8))))
    data.upload_day(lake, "lake", "raw/", date(2013, 2, 8))
    properties = {"flights": lake.root("raw/flights/"), "output": lake.root("clean/flights/")}

    summary = run(work, properties, correlation={"year": "2013", "month": "2", "day": "8"})
    ours = spark.read.parquet(lake.root("clean/flights/year=2013/month=2/day=8/")).collect()

    figures = {name: summary[name] for name in ("rows_in", "rows_out", "rejected", "duplicates", "cancelled")}
    assert figures == {"rows_in": 930, "rows_out": 930, "rejected": 0, "duplicates": 0, "cancelled": 472}
    assert len(theirs) == 930 and theirs.dep_time.isna().sum() == 472
    assert sum(row.dep_delay or 0 for row in ours) == theirs.dep_delay.sum()
    assert sum(row.arr_delay or 0 for row in ours) == theirs.arr_delay.sum()
    hours = [local(datetime.fromisoformat(text)) for text in theirs.time_hour]
    expected = zip(theirs.carrier, theirs.flight, theirs.origin, hours, strict=True)
    assert {(r.carrier, r.flight, r.origin, r.time_hour) for r in ours} == set(expected)


def test_a_repeated_run_overwrites_only_its_own_day(spark: SparkSession, lake: Any, run: Any) -> None:
    properties = {"flights": lake.root("raw/flights/"), "output": lake.root("clean/flights/")}
    data.upload_day(lake, "lake", "raw/", date(2013, 1, 1), kinds=["flights"])
    run(work, properties)
    for neighbour in ("clean/flights/year=2013/month=1/day=2/", "clean/rejected/flights/year=2013/month=1/day=2/"):
        lake.put_object(Bucket="lake", Key=f"{neighbour}_SUCCESS", Body=b"")
    others = lake.files("clean/")

    # Ten rows this time, one of which names no carrier.
    header, first, *rest = data.flights_csv(date(2013, 1, 1)).splitlines(keepends=True)
    folder = "raw/flights/year=2013/month=1/day=1/"
    body = b"".join([header, first.replace(b",UA,", b",,"), *rest[:9]])
    lake.put_object(Bucket="lake", Key=f"{folder}part-00000.csv", Body=body)
    lake.put_object(Bucket="lake", Key=f"{folder}part-00001.csv", Body=header)
    summary = run(work, properties)

    assert (summary["rows_in"], summary["rows_out"], summary["rejected"]) == (10, 9, 1)
    after = lake.files("clean/")
    assert {path for path in others if others[path] == after.get(path)} == {path for path in others if "day=2" in path}
    assert spark.read.parquet(lake.root("clean/flights/year=2013/month=1/day=1/")).count() == 9
    assert lake.root("clean/flights/year=2013/month=1/day=1/_SUCCESS") in after
    (refused,) = spark.read.json(lake.root("clean/rejected/flights/year=2013/month=1/day=1/")).collect()
    assert (refused.reason, refused.flight, refused.dep_time) == ("missing: carrier", "1545", "517")


def test_the_input_is_the_partition_of_the_event_without_a_root(lake: Any, run: Any, document: Any) -> None:
    data.upload_day(lake, "lake", "elsewhere/", date(2013, 1, 1), kinds=["flights"], parts=1)
    path = lake.root("elsewhere/flights/year=2013/month=1/day=1")
    event = document()["events"][0] | {"path": path}

    assert run(work, {"output": lake.root("clean/flights/")}, events=[event])["rows_in"] == 842
