from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import clean_flights
import pytest
from delays_by_weather import FLIGHTS_SCHEMA, SOURCE, transform, work
from pyspark.sql import Row, SparkSession

from examples.flights import data

HOUR = dict.fromkeys(SOURCE, "1") | {
    "origin": "EWR", "wind_speed": "10.3", "visib": "10", "precip": "0", "time_hour": "2013-01-01T10:00:00Z",
}  # fmt: skip
AT = datetime(2013, 1, 1, 10, tzinfo=UTC)

pandas: Any = importlib.import_module("pandas")  # the package has no types
pytestmark = pytest.mark.spark

Flight = tuple[str, datetime, bool, int | None]
Group = Callable[[list[Flight], list[dict[str, str]]], dict[tuple[str, str], Row]]


@pytest.fixture
def group(spark: SparkSession) -> Group:
    """Joins given flights with one weather row per given set of changes to ``HOUR``; by origin and class."""

    def transformed(flights: list[Flight], changes: list[dict[str, str]]) -> dict[tuple[str, str], Row]:
        weather = [tuple((HOUR | change)[name] for name in SOURCE) for change in changes]
        raw = spark.createDataFrame(weather, ", ".join(f"{name} string" for name in SOURCE))
        rows = transform(spark.createDataFrame(flights, FLIGHTS_SCHEMA).coalesce(1), raw.coalesce(1)).collect()
        return {(row.origin, row.weather_class): row for row in rows}

    return transformed


def test_a_class_has_its_counts_quantiles_and_cancelled_share(group: Group) -> None:
    flights: list[Flight] = [("EWR", AT, False, delay) for delay in (0, 10, 50)] + [("EWR", AT, True, None)]
    ((key, row),) = group(flights, [{}]).items()

    assert key == ("EWR", "calm/clear/dry")
    assert (row.flights, row.departed, row.cancelled, row.cancelled_share) == (4, 3, 1, 0.25)
    assert (row.mean_dep_delay, row.p50_dep_delay, row.p90_dep_delay) == (20.0, 10.0, pytest.approx(42.0))


def test_measures_are_put_into_bands_or_are_unknown(group: Group) -> None:
    readings = [
        ({"wind_speed": "14.9", "visib": "10", "precip": "0"}, "calm/clear/dry"),
        ({"wind_speed": "15.0", "visib": "9", "precip": "0.01"}, "breezy/hazy/wet"),
        ({"wind_speed": "25.0", "visib": "2.5", "precip": "0.1"}, "windy/poor/heavy"),
        ({"wind_speed": "NA", "visib": "3", "precip": "0.09"}, "unknown/hazy/wet"),
        ({"wind_speed": "1048.36058", "visib": "10", "precip": "0"}, "unknown/clear/dry"),
    ]
    hours = [change | {"time_hour": f"2013-01-01T{hour:02}:00:00Z"} for hour, (change, _) in enumerate(readings)]
    flights: list[Flight] = [("EWR", AT.replace(hour=hour), False, hour) for hour in range(len(readings))]

    found = {row.mean_dep_delay: label for (_, label), row in group(flights, hours).items()}
    assert found == {float(hour): label for hour, (_, label) in enumerate(readings)}


def test_a_flight_without_weather_is_kept_as_unknown(group: Group) -> None:
    later = AT.replace(hour=11)
    flights: list[Flight] = [("EWR", AT, False, 1), ("JFK", AT, False, 2), ("EWR", later, True, None)]
    rows = group(flights, [{}])

    assert set(rows) == {("EWR", "calm/clear/dry"), ("JFK", "unknown"), ("EWR", "unknown")}
    assert rows["EWR", "unknown"].mean_dep_delay is None
    assert rows["JFK", "unknown"].wind == "unknown"


def test_an_hour_reported_twice_counts_once_by_the_worse_reading(group: Group) -> None:
    rows = group([("EWR", AT, False, 1)], [{"visib": "2"}, {"visib": "10"}, {"visib": "2"}])

    assert [(label, row.flights) for (_, label), row in rows.items()] == [("calm/poor/dry", 1)]


def test_hours_around_the_spring_gap_join_their_own_weather(group: Group) -> None:
    # Local 1 and 3 o'clock on 2013-03-10 follow each other. A lookup by local hour would find the wrong hour for 3.
    clear = {"hour": "1", "time_hour": "2013-03-10T06:00:00Z"}
    hours = [clear, {"hour": "3", "time_hour": "2013-03-10T07:00:00Z", "visib": "1"}]
    instants = [datetime(2013, 3, 10, hour, tzinfo=UTC) for hour in (6, 7)]
    flights: list[Flight] = [("EWR", instant, False, instant.hour) for instant in instants]

    found = {label: row.mean_dep_delay for (_, label), row in group(flights, hours).items()}
    assert found == {"calm/clear/dry": 6.0, "calm/poor/dry": 7.0}


def test_a_real_day_agrees_with_pandas(spark: SparkSession, lake: Any, run: Any) -> None:
    day = {"year": "2013", "month": "2", "day": "12"}  # the day of the 1048 mph
    data.upload_day(lake, "lake", "raw/", date(2013, 2, 12))
    clean = {"flights": lake.root("raw/flights/"), "output": lake.root("clean/flights/")}
    run(clean_flights.work, clean, correlation=day)
    properties = {
        "clean_flights": lake.root("clean/flights"),
        "weather": lake.root("raw/weather"),
        "output": lake.root("joined/delays"),
    }
    # Only the upstream event has the day, as for a run that another run's completion starts.
    upstream = {"schema": 1, "run_id": "r0", "attempt": 1, "schedule": "s", "workflow": "w", "logical_start_time": 0}
    upstream |= {"properties": {}, "correlation": day, "events": [], "manifest": None, "upstream": None}
    summary = run(work, properties, correlation=None, events=[], upstream=upstream)
    ours = spark.read.parquet(lake.root("joined/delays/year=2013/month=2/day=12/")).collect()

    keys = ["origin", "time_hour"]
    tables = (data.flights_csv(date(2013, 2, 12)), data.weather_csv(date(2013, 2, 12)))
    flights, weather = (pandas.read_csv(io.BytesIO(table)) for table in tables)
    joined = flights.merge(weather[[*keys, "wind_speed", "visib", "precip"]], on=keys, how="left")
    wind = pandas.cut(joined.wind_speed, [-1, 14.999, 24.999, 200], labels=["calm", "breezy", "windy"])
    visib = pandas.cut(joined.visib, [-1, 2.999, 9.999, 99], labels=["poor", "hazy", "clear"])
    precip = pandas.cut(joined.precip, [-1, 0, 0.0999, 99], labels=["dry", "wet", "heavy"])
    joined["label"] = [
        "unknown" if pandas.isna(v) else f"{'unknown' if pandas.isna(w) else w}/{v}/{p}"
        for w, v, p in zip(wind, visib, precip, strict=True)
    ]
    groups = joined.groupby(["origin", "label"]).dep_delay
    figures = {
        key: (len(delays), delays.isna().mean(), delays.mean(), delays.quantile(0.5), delays.quantile(0.9))
        for key, delays in groups
    }
    assert {(row.origin, row.weather_class) for row in ours} == set(figures)
    for row in ours:
        got = (row.flights, row.cancelled_share, row.mean_dep_delay, row.p50_dep_delay, row.p90_dep_delay)
        assert got == pytest.approx(figures[row.origin, row.weather_class], nan_ok=True), row
    assert (summary["rows_in"], summary["rows_out"]) == (len(flights), len(figures))


def test_the_last_day_has_no_weather_at_all_and_succeeds(lake: Any, run: Any) -> None:
    day = {"year": "2013", "month": "12", "day": "31"}
    data.upload_day(lake, "lake", "raw/", date(2013, 12, 31))
    run(clean_flights.work, {"flights": lake.root("raw/flights/"), "output": lake.root("clean/")}, correlation=day)
    properties = {"clean_flights": lake.root("clean/"), "weather": lake.root("raw/weather/"), "output": lake.root("j/")}
    summary = run(work, properties, correlation=day)

    assert (summary["rows_in"], summary["rows_out"], summary["unknown_weather"]) == (776, 3, 776)
