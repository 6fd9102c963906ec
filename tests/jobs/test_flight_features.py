from __future__ import annotations

import importlib
import io
import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import build_features
import pytest
from features_report import signals
from features_report import work as report
from flight_features import FEATURES, GROUPS, RAW, WINDOW_DAYS, transform
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from sluice_job import ContextError, RunContext

from examples.features.expected import expected
from examples.flights import data

pandas: Any = importlib.import_module("pandas")  # the package has no types
pytestmark = pytest.mark.spark

DAY = date(2013, 2, 9)  # the snow storm: more than half of the flights have no data
NIGHT = 1_360_483_200_000  # 2013-02-10 03:00 in New York
COLUMNS = [part.split()[0] for part in RAW.split(", ")]


def upload(lake: Any, *days: date) -> None:
    for day in days:
        data.upload_day(lake, "lake", "raw/", day, kinds=("flights",), parts=1)


def properties(lake: Any) -> dict[str, str]:
    return {"flights": lake.root("raw/flights/"), "output": lake.root("features/")}


def built(spark: SparkSession, lake: Any, day: date) -> list[Row]:
    return spark.read.parquet(data.partition_key(lake.root("features/"), day)).collect()


def flights(spark: SparkSession, *given: dict[str, Any]) -> Any:
    """Raw flights of 2013-01; missing fields are null."""
    rows = [tuple({"year": 2013, "month": 1, **one}.get(name) for name in COLUMNS) for one in given]
    return spark.createDataFrame(rows, RAW)


def test_h4_the_features_of_a_real_day_agree_with_pandas(spark: SparkSession, lake: Any, run: Any) -> None:
    days = [DAY - timedelta(days=ago) for ago in range(WINDOW_DAYS + 2)]
    upload(lake, *days)  # one day more than the window, which must not count
    summary = run(build_features.work, properties(lake), logical_start_time=NIGHT, correlation=None, events=[])
    ours = built(spark, lake, DAY)

    table = pandas.concat(pandas.read_csv(io.BytesIO(data.flights_csv(day))) for day in days)
    table["date"] = pandas.to_datetime(table[["year", "month", "day"]]).dt.date
    week = table[(table.date < DAY) & (table.date >= DAY - timedelta(days=WINDOW_DAYS))].copy()
    week["cancelled"], week["late"] = week.dep_time.isna(), (week.dep_delay > 15).where(week.dep_delay.notna())
    today = table[table.date == DAY]
    assert (summary["day"], summary["rows_out"]) == ("2013-02-09", len(today))
    assert len(ours) == len(today) and summary["cancelled"] == today.dep_time.isna().sum() == 393
    for group, keys in GROUPS.items():
        of = week.dropna(subset=list(keys)).groupby(list(keys))
        wanted = {
            key if isinstance(key, tuple) else (key,): (len(rows), rows.dep_delay.mean(), rows.cancelled.mean(), late)
            for key, rows in of
            if (late := rows.late.astype(float).mean()) is not None
        }
        for row in ours:
            own = tuple(row[key] for key in keys)
            got = tuple(row[f"{group}_{name}"] for name in ("flights", "mean_delay", "cancelled_share", "late_share"))
            if None in own:
                assert got == (None,) * 4
                continue
            want = wanted.get(own, (0, math.nan, math.nan, math.nan))
            plain = tuple(math.nan if value is None else value for value in got)
            assert plain == pytest.approx(want, abs=1e-4, nan_ok=True), (group, own)

    # The report's counts equal the counts of the example.
    summary = run(report, {"features": lake.root("features/"), "output": lake.root("report/")}, correlation=None)
    rows, counted = spark.read.csv(lake.root("report/days"), header=True).collect(), expected([DAY])
    assert (summary["rows_in"], {(row.date, row.origin) for row in rows}) == (684, set(counted))
    for row in rows:
        one = counted[row.date, row.origin]
        assert (int(row.flights), int(row.known_aircraft), int(row.route_flights)) == one[:3]
        assert float(row.route_mean_delay) == pytest.approx(one.route_mean_delay, abs=1e-3)


def test_h4_a_flight_feature_uses_only_the_seven_days_before(spark: SparkSession) -> None:
    jfk = {"origin": "JFK", "dest": "LAX", "tailnum": "N1", "hour": 9, "dep_time": 900}
    rows = flights(
        spark,
        jfk | {"day": 1, "dep_delay": 1000},
        jfk | {"day": 2, "dep_delay": 30},
        jfk | {"day": 8, "dep_delay": 10},
        jfk | {"day": 8, "dep_delay": None, "dep_time": None},
        jfk | {"day": 9, "dep_delay": 500},
        jfk | {"day": 9, "dep_delay": 700, "tailnum": None},
    )
    first, second = sorted(transform(rows, date(2013, 1, 9), date(2013, 1, 9)).collect(), key=lambda row: row.dep_delay)

    assert (first.route_flights, first.route_mean_delay, first.route_late_share) == (3, 20.0, 0.5)
    assert first.route_cancelled_share == pytest.approx(1 / 3, abs=1e-4)
    assert (first.aircraft_flights, second.aircraft_flights) == (3, None)
    assert (first.late, second.airport_hour_flights) == (True, 3)


def test_h4_the_first_day_has_no_week_and_is_built(spark: SparkSession, lake: Any, run: Any) -> None:
    upload(lake, date(2013, 1, 1))
    summary = run(build_features.work, {**properties(lake), "day": "2013-01-01"}, correlation=None)

    rows = built(spark, lake, date(2013, 1, 1))
    assert (summary["rows_out"], summary["known_aircraft"]) == (842, 0)
    assert {(row.route_flights, row.route_mean_delay) for row in rows} == {(0, None)}


def test_h4_without_its_own_day_a_night_fails(lake: Any, run: Any) -> None:
    upload(lake, DAY - timedelta(days=1))
    with pytest.raises(AnalysisException, match="year=2013/month=2/day=9"):
        run(build_features.work, {**properties(lake), "day": "2013-02-09"}, correlation=None)


def test_h4_a_night_built_twice_has_the_same_rows_once(spark: SparkSession, lake: Any, run: Any) -> None:
    upload(lake, DAY, DAY - timedelta(days=1))
    for day in ("2013-02-08", "2013-02-09"):
        run(build_features.work, {**properties(lake), "day": day}, correlation=None)
    kept, before = lake.files("features/year=2013/month=2/day=8/"), built(spark, lake, DAY)
    run(build_features.work, {**properties(lake), "day": "2013-02-09"}, correlation=None)

    assert built(spark, lake, DAY) == before
    assert len(list(Path(lake.root("features/year=2013/month=2/day=9/")).glob("*.parquet"))) == 1
    assert lake.files("features/year=2013/month=2/day=8/") == kept


def test_h4_the_day_is_the_one_before_the_night_in_its_zone(document: Any) -> None:
    def about(**changes: Any) -> str:
        return str(build_features.day_of(RunContext.parse(document(**changes), str)))

    assert about(logical_start_time=NIGHT) == "2013-02-09"
    assert about(logical_start_time=1_360_465_200_000) == "2013-02-08"  # 22:00 on the 9th, which is the 10th in UTC
    assert about(logical_start_time=1_360_465_200_000, properties={"zone": "UTC"}) == "2013-02-09"
    assert about(properties={"day": "2013-03-01"}) == "2013-03-01"
    for wrong in ({"day": "yesterday"}, {"zone": "Mars/Olympus"}):
        with pytest.raises(ContextError, match="correct the properties"):
            about(properties=wrong)


def test_h4_a_signal_is_the_correlation_and_delays_at_both_ends(spark: SparkSession) -> None:
    table = ", ".join([*(f"{name} double" for name in FEATURES), "dep_delay int", "late boolean"])
    given = [(*([float(n)] * (len(FEATURES) - 1)), None, n * 10, n > 7) for n in range(1, 11)]
    first, *_, last = signals(spark.createDataFrame([*given, (*[9.0] * len(FEATURES), None, None)], table))

    assert first == (FEATURES[0], 10, 1.0, 0.0, 1.0)
    assert last == (FEATURES[-1], 0, None, None, None)
