"""The job of the example `hours` on days of 23, 24 and 25 hours, compared with the raw lines."""

from __future__ import annotations

import csv
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from daily_weather import folders, transform, work
from pyspark.sql import SparkSession
from sluice_job import ContextError, Period

from examples.hours.data import ZONE, hours_of, missing, readings, without_a_reading
from examples.hours.expected import expected

pytestmark = pytest.mark.spark

SPRING, AUTUMN = date(2013, 3, 10), date(2013, 11, 3)


def period_of(day: date) -> Period:
    start, end = (datetime(at.year, at.month, at.day, tzinfo=ZONE) for at in (day, day + timedelta(days=1)))
    return Period(start, end, ZONE.key, day.isoformat())


def event(period: Period) -> dict[str, Any]:
    """A partition event with this period."""
    span = {"start": int(period.start.timestamp() * 1000), "end": int(period.end.timestamp() * 1000)}
    return {
        "kind": "partition", "id": "e1", "instant": 0, "dataset": "demo.weather", "path": "s3://lake/x/",
        "partition": {"dt": period.label}, "period": {**span, "zone": period.zone, "label": period.label},
    }  # fmt: skip


def rows_of(folder: str) -> dict[str, dict[str, str]]:
    [file] = Path(folder).glob("part-*.csv")
    return {row["origin"]: row for row in csv.DictReader(file.read_text().splitlines())}


@pytest.mark.parametrize(("day", "hours"), [(SPRING, 23), (AUTUMN, 25)])
def test_h4_a_day_of_any_length_agrees_with_the_raw_lines(run: Any, lake: Any, day: date, hours: int) -> None:
    """The day before lies in the same folders of UTC; one hour comes twice, in files of two names."""
    for at in (day - timedelta(days=1), day):
        for hour, body in readings(at).items():
            lake.put_object(Bucket="lake", Key=f"raw/{hour.folder}/part-0.csv", Body=body)
    twice = next(iter(readings(day)))
    lake.put_object(Bucket="lake", Key=f"raw/{twice.folder}/part-1.csv", Body=readings(day)[twice])
    for hour in missing(day):
        lake.put_object(Bucket="lake", Key=f"raw/{hour.folder}/part-0.csv", Body=without_a_reading(day))

    properties = {"weather": lake.root("raw"), "output": lake.root("daily")}
    summary = run(work, properties, correlation=None, events=[event(period_of(day))])
    wanted = expected([day])
    rows = rows_of(lake.root(f"daily/day={day}"))
    assert {(str(day), origin) for origin in rows} == wanted.keys()
    for origin, row in rows.items():
        want = wanted[str(day), origin]
        assert want.hours == hours
        assert (int(row["hours"]), int(row["readings"])) == (hours, want.readings)
        figures = [float(row[name]) for name in ("mean_temp", "min_temp", "max_temp", "precip")]
        assert figures == pytest.approx([want.mean_temp, want.min_temp, want.max_temp, want.precip], abs=1e-4)
    assert summary["period"] == str(day)
    assert (summary["rows_out"], summary["readings"]) == (3, sum(want.readings for want in wanted.values()))


def test_an_hour_belongs_to_the_day_in_which_it_begins(spark: SparkSession) -> None:
    first, last = hours_of(SPRING)[0], hours_of(SPRING)[-1]
    at = [first - timedelta(seconds=1), first, last, last + timedelta(hours=1)]
    given = [("EWR", f"{each:%Y-%m-%dT%H:%M:%SZ}", str(number), "NA") for number, each in enumerate(at)]
    raw = spark.createDataFrame(given, ["origin", "time_hour", "temp", "precip"])
    [row] = transform(raw, period_of(SPRING)).collect()
    assert (row.hours, row.readings, row.mean_temp, row.min_temp, row.max_temp) == (23, 2, 1.5, 1.0, 2.0)
    assert row.precip is None


def test_a_day_reads_the_days_in_utc_that_it_touches() -> None:
    start = datetime(2013, 3, 10, tzinfo=UTC)
    whole = Period(start, start + timedelta(days=1), "UTC", "2013-03-10")
    found = [[path.split("/")[-3] for path in folders("s3://lake/", period)] for period in (period_of(SPRING), whole)]
    assert found == [["dt=2013-03-10", "dt=2013-03-11"], ["dt=2013-03-10"]]
    assert folders("s3://lake/", whole) == ["s3://lake/origin=*/dt=2013-03-10/hour=*/"]


def test_a_run_without_a_period_says_what_to_do(run: Any, lake: Any) -> None:
    with pytest.raises(ContextError, match="expected one period"):
        run(work, {"weather": lake.root("raw"), "output": lake.root("daily")})
