"""Figures per day and origin over all clean days so far, as Parquet and as a CSV for people.

Properties: ``clean_flights``, ``output``; optionally ``delays_by_weather``. See ``jobs/README.md``.
"""

from __future__ import annotations

import datetime
import sys
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from sluice_job import RunContext, run_job

DAY = "year int, month int, day int"
FLIGHTS_SCHEMA = f"origin string, cancelled boolean, dep_delay int, {DAY}"
WEATHER_SCHEMA = f"origin string, weather_class string, flights bigint, mean_dep_delay double, {DAY}"

LATE_MINUTES = 15
TRAILING_DAYS = 7
ROUNDED = 4


def transform(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """One row per day and origin, in that order; ``weather`` may be empty or lack days.

    Columns: day, origin, flights, cancelled_share, mean_dep_delay (minutes), late_share (of the departed, over 15
    minutes late), trailing_7d_mean_dep_delay (all departures of the 7 calendar days that end with this one), and
    worst_weather_class, null where no weather is known. Shares are 0 to 1.
    """
    day = F.make_date("year", "month", "day").alias("day")
    delay = F.col("dep_delay")
    per_day = flights.groupBy(day, "origin").agg(
        F.count(F.lit(1)).alias("flights"),
        F.avg(F.col("cancelled").cast("int")).alias("cancelled_share"),
        F.avg(delay).alias("mean_dep_delay"),
        F.avg((delay > LATE_MINUTES).cast("int")).alias("late_share"),
        F.sum(delay).alias("delay_sum"),
        F.count(delay).alias("departed"),
    )
    # A range of dates, not of rows: a missing day must not extend the week.
    week = Window.partitionBy("origin").orderBy(F.unix_date("day")).rangeBetween(1 - TRAILING_DAYS, 0)
    trailing = F.sum("delay_sum").over(week) / F.sum("departed").over(week)
    named = f"trailing_{TRAILING_DAYS}d_mean_dep_delay"
    measures = ["cancelled_share", "mean_dep_delay", "late_share", named]
    return (
        per_day.withColumn(named, trailing)
        .join(F.broadcast(_worst(weather)), ["day", "origin"], "left")
        .select("day", "origin", "flights", *(F.round(m, ROUNDED).alias(m) for m in measures), "worst_weather_class")
        .coalesce(1)
        .sortWithinPartitions("day", "origin")
    )


def _worst(weather: DataFrame) -> DataFrame:
    """The weather class with the highest mean delay. A class without any departure is worse than any delay."""
    grief = F.struct(F.coalesce("mean_dep_delay", F.lit(float("inf"))), "flights", "weather_class")
    known = weather.where(F.col("weather_class") != "unknown")
    per_day = known.groupBy(F.make_date("year", "month", "day").alias("day"), "origin")
    return per_day.agg(F.max_by("weather_class", grief).alias("worst_weather_class"))


def read(spark: SparkSession, root: str | None, schema: str) -> DataFrame:
    """All partitions below ``root``; no rows if there are none. With the schema given, Spark opens no file for it."""
    if root is not None:
        try:
            return spark.read.schema(schema).parquet(root)
        except AnalysisException as error:
            if error.getErrorClass() != "PATH_NOT_FOUND":
                raise
    return spark.createDataFrame([], schema)


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Write the report of this logical start time; a repeated run overwrites it, other reports stay."""
    root, output = context.root("clean_flights"), context.root("output")
    joined = context.root("delays_by_weather") if "delays_by_weather" in context.properties else None
    flights = read(spark, root, FLIGHTS_SCHEMA)
    at = datetime.datetime.fromtimestamp(context.logical_start_time / 1000, datetime.timezone.utc)
    # Fixed width, so that the last name in order is the latest report; milliseconds distinguish two manual runs.
    as_of = f"as_of={at:%Y%m%dT%H%M%S}.{at.microsecond // 1000:03}Z/"
    counts = Observation("rows")
    report = transform(flights, read(spark, joined, WEATHER_SCHEMA)).observe(
        counts,
        F.coalesce(F.sum("flights"), F.lit(0)).alias("rows_in"),
        F.count(F.lit(1)).alias("rows_out"),
        F.lit(0).alias("rejected"),
        F.size(F.collect_set("day")).alias("days"),
    )
    report = report.cache()  # computed once, written twice
    report.write.mode("overwrite").csv(f"{output}csv/{as_of}", header=True)
    report.write.mode("overwrite").parquet(f"{output}parquet/{as_of}")
    # For an empty input Spark's optimizer removes the observation, so there are no counts.
    figures = {"rows_in": 0, "rows_out": 0, "rejected": 0, "days": 0, **counts.get}
    summary: dict[str, Any] = {**figures, "output": f"{output}parquet/{as_of}", "csv": f"{output}csv/{as_of}"}
    if not summary["days"]:
        summary["note"] = f"no day of clean flights yet below {root}: the report is empty"
    return summary


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("daily_report", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
