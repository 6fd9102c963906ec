"""One local day of weather from its hourly folders: a row for each airport. Overwrites the partition of that day only.

Properties: ``weather``, ``output``. See ``jobs/README.md``.
"""

from __future__ import annotations

import datetime
import sys
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from sluice_job import Period, RunContext, run_job

MEASURES = ("temp", "precip")
ROUNDED = 4


def transform(weather: DataFrame, period: Period) -> DataFrame:
    """One row per airport with a reading in the period. ``weather`` has the raw columns, all text.

    Columns: origin, hours (of the period), readings (hours that have one), mean_temp, min_temp and max_temp (degrees
    Fahrenheit), precip (inches in all). Measures are null where no hour has them.
    """
    # Subtracted datetimes of one zone would give 24 hours for every day.
    start, end = int(period.start.timestamp()), int(period.end.timestamp())
    at = F.expr("unix_seconds(try_cast(trim(time_hour) as timestamp))")
    rows = weather.select(
        F.trim("origin").alias("origin"),
        at.alias("at"),
        *(F.expr(f"try_cast(trim({name}) as double)").alias(name) for name in MEASURES),
    )
    hours = (
        rows.where((F.col("at") >= start) & (F.col("at") < end))
        # A folder may have two files: a reading that was delivered twice counts once.
        .groupBy("origin", "at")
        .agg(*(F.max(name).alias(name) for name in MEASURES))
    )
    figures = {
        "mean_temp": F.avg("temp"),
        "min_temp": F.min("temp"),
        "max_temp": F.max("temp"),
        "precip": F.sum("precip"),
    }
    return (
        hours.groupBy("origin")
        .agg(
            F.lit((end - start) // 3600).alias("hours"),
            F.count(F.lit(1)).alias("readings"),
            *(F.round(figure, ROUNDED).alias(name) for name, figure in figures.items()),
        )
        .coalesce(1)
        .sortWithinPartitions("origin")
    )


def folders(root: str, period: Period) -> list[str]:
    """The folders of the days in UTC that the period touches, at all airports."""
    start, end = (at.astimezone(datetime.timezone.utc) for at in (period.start, period.end))
    first, last = start.date(), (end - datetime.timedelta(seconds=1)).date()
    days = (first + datetime.timedelta(number) for number in range((last - first).days + 1))
    return [f"{root}origin=*/dt={day}/hour=*/" for day in days]


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Summarize the run's period: the hours of it that are there."""
    period = context.period()
    output = f"{context.root('output')}day={period.label}/"
    raw = spark.read.csv(folders(context.root("weather"), period), header=True, enforceSchema=False)
    counts = Observation("rows")
    # A day is some 70 small files: with one partition, it needs no shuffle.
    days = transform(raw.coalesce(1), period).observe(
        counts,
        F.count(F.lit(1)).alias("rows_out"),
        F.coalesce(F.sum("readings"), F.lit(0)).alias("readings"),
    )
    days.write.mode("overwrite").csv(output, header=True)
    return {"period": period.label, **counts.get, "output": output}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("daily_weather", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
