"""Join one day of clean flights with the hourly weather at their origin: delays by class of weather.

Properties: ``clean_flights``, ``weather``, ``output``. See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from sluice_job import RunContext, run_job

# The header line of the source; the reader compares it with the files.
HEADER = "origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour"
SOURCE = HEADER.split(",")
FLIGHTS_SCHEMA = "origin string, time_hour timestamp, cancelled boolean, dep_delay int"
CLASS = ("weather_class", "wind", "visibility", "precipitation")

UNKNOWN = "unknown"
# Miles per hour. About 80 % of the hours of 2013 are below 15, and 99 % below 26.
BREEZY, WINDY = 15.0, 25.0
# Far above any surface wind at these airports. EWR reports 1048 mph for one hour of 2013-02-12, without a gust.
IMPLAUSIBLE_WIND = 200.0
# Miles. 10 is the maximum that the source reports; visual flight ends below 3.
CLEAR, POOR = 10.0, 3.0
# Inches in the hour; a fifth of the wet hours of 2013 have this or more.
HEAVY = 0.1


def transform(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """One row per origin and weather class that had flights.

    ``flights``: origin, time_hour (UTC), cancelled, dep_delay (minutes). ``weather``: raw columns, all text.
    Columns: origin, weather_class and its three bands, counts, cancelled_share (0 to 1), and the mean, median and
    90th percentile (interpolated) of the departure delay in minutes, null where nothing departed. A flight
    without a weather row counts under the class ``unknown``.
    """
    # The hour in UTC is the key: one local hour repeats in November, and one is missing in March.
    # A day has some 70 hours of weather, a year 26,000: small enough to broadcast, however many flights there are.
    joined = flights.join(F.broadcast(classify(weather)), ["origin", "time_hour"], "left")
    delay = F.col("dep_delay")
    return (
        joined.withColumns({name: F.coalesce(F.col(name), F.lit(UNKNOWN)) for name in CLASS})
        .groupBy("origin", *CLASS)
        .agg(
            F.count(F.lit(1)).alias("flights"),
            F.count_if(~F.col("cancelled")).alias("departed"),
            F.count_if("cancelled").alias("cancelled"),
            F.avg(F.col("cancelled").cast("int")).alias("cancelled_share"),
            F.avg(delay).alias("mean_dep_delay"),
            # Exact: a class has some hundred flights. percentile_approx is for many millions.
            F.percentile(delay, 0.5).alias("p50_dep_delay"),
            F.percentile(delay, 0.9).alias("p90_dep_delay"),
        )
    )


def classify(weather: DataFrame) -> DataFrame:
    """The class and its bands per origin and hour (UTC): one row each, even if the source repeats an hour."""
    speed = _number("wind_speed")
    wind = F.max(F.when(speed < IMPLAUSIBLE_WIND, speed))
    # Of two readings of an hour the worse counts, so that the order of the part files has no effect.
    hours = weather.groupBy(
        F.trim("origin").alias("origin"), F.expr("try_cast(trim(time_hour) as timestamp)").alias("time_hour")
    ).agg(wind.alias("speed"), F.min(_number("visib")).alias("visib"), F.max(_number("precip")).alias("precip"))
    bands = {
        "wind": _band("speed", [("calm", F.col("speed") < BREEZY), ("breezy", F.col("speed") < WINDY)], "windy"),
        "visibility": _band("visib", [("poor", F.col("visib") < POOR), ("hazy", F.col("visib") < CLEAR)], "clear"),
        "precipitation": _band("precip", [("dry", F.col("precip") <= 0), ("wet", F.col("precip") < HEAVY)], "heavy"),
    }
    label = F.concat_ws("/", *bands).alias("weather_class")
    return hours.withColumns(bands).select("origin", "time_hour", label, *bands)


def _number(name: str) -> Column:
    return F.expr(f"try_cast(trim({name}) as double)")


def _band(measure: str, bands: list[tuple[str, Column]], otherwise: str) -> Column:
    found = F.when(F.col(measure).isNull(), UNKNOWN)
    for name, holds in bands:
        found = found.when(holds, name)
    return found.otherwise(otherwise)


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Join the run's day; overwrites the partition of that day only."""
    day = context.day()
    output = day.under(context.root("output"))
    # With the schemas given, Spark reads nothing to infer them. One partition: a day is under a megabyte.
    flights = spark.read.schema(FLIGHTS_SCHEMA).parquet(day.under(context.root("clean_flights"))).coalesce(1)
    schema = ", ".join(f"{column} string" for column in SOURCE)
    raw = spark.read.csv(day.under(context.root("weather")), schema=schema, header=True, enforceSchema=False)
    counts = Observation("rows")
    unknown = F.when(F.col("weather_class") == UNKNOWN, F.col("flights")).otherwise(0)
    joined = transform(flights, raw.coalesce(1)).observe(
        counts,
        F.coalesce(F.sum("flights"), F.lit(0)).alias("rows_in"),
        F.count(F.lit(1)).alias("rows_out"),
        F.lit(0).alias("rejected"),
        F.coalesce(F.sum(unknown), F.lit(0)).alias("unknown_weather"),
    )
    joined.write.mode("overwrite").parquet(output)
    return {"day": str(day), **counts.get, "output": output}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("delays_by_weather", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
