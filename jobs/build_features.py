"""The features of one day's flights, from the week before it. Overwrites that day's partition and nothing else.

Properties: ``flights``, ``output``; ``day`` and ``zone`` if wanted. See ``jobs/README.md``.
"""

from __future__ import annotations

import datetime
import sys
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flight_features import days_before, read_days, transform
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F
from run_context import ContextError, Day, RunContext, run_job

ZONE = "America/New_York"


def day_of(context: RunContext) -> datetime.date:
    """The property ``day``; else the day before that of the logical start, on the clock of the property ``zone``.

    So the run of the night, and the one that a backfill makes for that night, are about the same day.
    """
    day, zone = context.properties.get("day"), str(context.properties.get("zone", ZONE))
    try:
        if day is not None:
            return datetime.date.fromisoformat(str(day))
        start = datetime.datetime.fromtimestamp(context.logical_start_time / 1000, ZoneInfo(zone))
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise ContextError(
            f"run {context.run_id}: expected a day such as 2013-02-01 and a zone such as {ZONE}, "
            f"got {day!r} and {zone!r} ({error}); correct the properties"
        ) from None
    return start.date() - datetime.timedelta(days=1)


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Build the features of the run's day from those of the days before it that are there."""
    day = day_of(context)
    source, output = context.root("flights"), context.root("output")
    own = Day(day.year, day.month, day.day)
    read_days(spark, source, [day])  # fails, and says so, where the day itself is not there; the week may have gaps
    raw = read_days(spark, source, [*days_before(day), day])
    # A week is a few megabytes: one partition from the start spares the shuffles that the windows would need.
    counts = Observation("rows")
    built = transform(raw.coalesce(1), day, day).observe(
        counts,
        F.count(F.lit(1)).alias("rows_out"),
        F.count_if(F.col("cancelled")).alias("cancelled"),
        F.count_if(F.col("aircraft_flights") > 0).alias("known_aircraft"),
    )
    built.write.mode("overwrite").parquet(own.under(output))
    return {"day": str(own), **counts.get, "output": own.under(output)}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("build_features", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
