"""The features of one day's flights, from the week before. Overwrites the partition of that day only.

Properties: ``flights``, ``output``; optionally ``day`` and ``zone``. See ``jobs/README.md``.
"""

from __future__ import annotations

import datetime
import sys
from typing import Any

from flight_features import days_before, read_days, transform
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F
from sluice_job import ContextError, Day, RunContext, run_job, zone

ZONE = "America/New_York"


def day_of(context: RunContext) -> datetime.date:
    """The property ``day``, or else the day before the logical start, in the time zone ``zone``.

    So a nightly run and the backfill run for the same night have the same day. Raises ContextError for invalid values.
    """
    day, place = context.properties.get("day"), str(context.properties.get("zone", ZONE))
    try:
        if day is not None:
            return datetime.date.fromisoformat(str(day))
        start = datetime.datetime.fromtimestamp(context.logical_start_time / 1000, zone(place))
    except (ValueError, ContextError) as error:
        raise ContextError(
            f"run {context.run_id}: expected a day such as 2013-02-01 and a zone such as {ZONE}, "
            f"got {day!r} and {place!r} ({error}); correct the properties"
        ) from None
    return start.date() - datetime.timedelta(days=1)


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Build the features of the run's day from the existing days before it."""
    day = day_of(context)
    source, output = context.root("flights"), context.root("output")
    own = Day(day.year, day.month, day.day)
    read_days(spark, source, [day])  # raises an error if the day itself is missing; the week may have gaps
    raw = read_days(spark, source, [*days_before(day), day])
    # A week is a few megabytes: with one partition from the start, the windows need no shuffle.
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
