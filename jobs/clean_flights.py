"""Clean one day of raw flights: typed columns, instants in UTC, one row per flight; rejected rows with a reason.

Properties: ``output``; ``flights`` unless the run has a partition event; ``rejected``. See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from sluice_job import Day, RunContext, run_job

# The time zone of all three origins (EWR, JFK, LGA), in which hhmm fields are written.
ZONE = "America/New_York"

TEXTS = ("carrier", "tailnum", "origin", "dest")
CLOCKS = ("dep_time", "sched_dep_time", "arr_time", "sched_arr_time")
INTEGERS = ("year", "month", "day", "dep_delay", "arr_delay", "flight", "air_time", "distance", "hour", "minute")
# The header line of the source. The reader compares it with the files, so that a moved column is detected.
HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,"
    "carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
SOURCE = HEADER.split(",")

REQUIRED = ("year", "month", "day", "carrier", "flight", "origin", "sched_dep_time")
KEY = ("carrier", "flight", "origin", "scheduled_departure")
DUPLICATE = "duplicate"

# How many minutes before its schedule a flight may depart when only its hhmm is known. In 2013 the earliest departure
# was 43 min before and the latest 1301 min after schedule; any margin from 43 to 138 distinguishes both.
EARLIEST_MINUTES = 120

CLEAN = (
    "carrier", "flight", "tailnum", "origin", "dest", "scheduled_departure", "time_hour", "departure", "cancelled",
    "dep_delay", "arr_delay", "air_time", "distance", "sched_dep_time", "dep_time", "sched_arr_time", "arr_time",
)  # fmt: skip


def transform(raw: DataFrame, day: Day) -> DataFrame:
    """Check every row of one day's raw flights (all columns text, named as in ``SOURCE``).

    Adds ``source`` (the original row) and ``reason`` (null for a good row) to the columns ``CLEAN`` and the day.
    Instants are UTC timestamps; delays and air time are minutes, distance is miles; ``arr_time`` and
    ``sched_arr_time`` stay hhmm in local time of the destination, whose zone the source does not contain.
    """
    return _deduplicated(_timed(_typed(raw), day))


def clean(judged: DataFrame) -> DataFrame:
    """The good rows of the result of ``transform``."""
    return judged.where(F.col("reason").isNull()).select(*CLEAN)


def rejected(judged: DataFrame) -> DataFrame:
    """The other rows, unchanged, with their reason."""
    return judged.where(F.col("reason").isNotNull()).select("reason", "source.*")


def _typed(raw: DataFrame) -> DataFrame:
    # SQL text instead of column objects where columns are many: each object costs several calls into the JVM.
    integer = "try_cast(regexp_replace(trim({0}), '[.]0+$', '') as int)"  # some tools write 517 as 517.0
    typed = raw.selectExpr(
        f"struct({', '.join(SOURCE)}) as source",
        *(f"{_text(name)} as {name}" for name in TEXTS),
        *(f"{integer.format(name)} as {name}" for name in INTEGERS + CLOCKS),
        "try_cast(trim(time_hour) as timestamp) as time_hour",
    )
    clock = "if({0} between 0 and 2400 and {0} % 100 < 60, {0}, null)"
    typed = typed.withColumns({name: F.expr(clock.format(name)) for name in CLOCKS})
    missing = _listed({name: f"{_text(f'source.{name}')} is null" for name in REQUIRED})
    # Otherwise an unreadable dep_time would be null, like that of a cancelled flight.
    parsed = (*INTEGERS, *CLOCKS, "time_hour")
    malformed = _listed({name: f"{name} is null and {_text(f'source.{name}')} is not null" for name in parsed})
    reason = f"coalesce('missing: ' || {missing}, 'malformed: ' || {malformed})"
    return typed.withColumn("reason", F.expr(reason))


def _timed(typed: DataFrame, day: Day) -> DataFrame:
    """Add the instants, as seconds since 1970, so that the session's time zone has no effect."""
    # The wall-clock time as if it were UTC. 2400 is midnight at the end of the day, and becomes the next day.
    local_day = F.make_date("year", "month", "day")
    midnight = F.unix_date(local_day) * 86_400
    wall = F.timestamp_seconds(midnight + _minutes("sched_dep_time") * 60)
    # time_hour is the scheduled hour in UTC. It is preferred, because 01:30 is twice on the last day of summer time.
    stated = F.timestamp_seconds(F.unix_seconds("time_hour") + F.col("sched_dep_time") % 100 * 60)
    scheduled = F.coalesce(stated, F.to_utc_timestamp(wall, ZONE))
    timed = typed.withColumn("scheduled_departure", scheduled)

    # hhmm has no date: take the first such time that is not much earlier than the schedule.
    ahead = F.pmod(_minutes("dep_time") - _minutes("sched_dep_time") + EARLIEST_MINUTES, F.lit(1440)) - EARLIEST_MINUTES
    by_clock = F.to_utc_timestamp(F.timestamp_seconds(F.unix_seconds(wall) + ahead * 60), ZONE)
    at = F.unix_seconds("scheduled_departure")
    by_delay = F.timestamp_seconds(at + F.col("dep_delay") * 60)
    cancelled = F.col("dep_time").isNull()
    departure = F.when(~cancelled, F.coalesce(by_delay, by_clock))
    delay = ((F.unix_seconds(departure) - at) / 60).cast("int")

    # Times in the hour that spring skips are shifted by the conversion, and a wrong time_hour gives another time.
    impossible = F.from_utc_timestamp("scheduled_departure", ZONE) != wall
    reason = F.coalesce(
        F.col("reason"),
        F.when(local_day.isNull(), F.lit("malformed: year, month, day")),
        F.when(local_day != F.make_date(*(F.lit(part) for part in day)), F.lit("other day than the partition's")),
        F.when(impossible, F.lit(f"sched_dep_time is not that time_hour in {ZONE}")),
    )
    return (
        timed.withColumn("reason", reason)
        .withColumns({"cancelled": cancelled, "departure": departure, "dep_delay": delay})
        .withColumn("time_hour", F.timestamp_seconds(at - at % 3600))
    )


def _deduplicated(timed: DataFrame) -> DataFrame:
    """Mark all but one row of a key: a departure precedes a cancellation, then the row with more values, then a fixed
    order."""
    filled = reduce(Column.__add__, (F.col(name).isNotNull().cast("int") for name in CLEAN))
    order = (F.col("cancelled"), F.desc(filled), F.to_json("source"))
    same = Window.partitionBy(F.col("reason").isNull(), *KEY).orderBy(*order)
    later = F.col("reason").isNull() & (F.row_number().over(same) > 1)
    return timed.withColumn("reason", F.when(later, F.lit(DUPLICATE)).otherwise(F.col("reason")))


def _text(name: str) -> str:
    return f"nullif(nullif(trim({name}), ''), 'NA')"


def _minutes(name: str) -> Column:
    return F.floor(F.col(name) / 100) * 60 + F.col(name) % 100


def _listed(conditions: dict[str, str]) -> str:
    """SQL for the names whose condition holds; null if there are none."""
    names = ", ".join(f"if({condition}, '{name}', null)" for name, condition in conditions.items())
    return f"nullif(concat_ws(', ', {names}), '')"


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Clean the run's day; overwrites the two partitions of that day only."""
    day = context.day()
    source = day.under(context.root("flights")) if "flights" in context.properties else context.path()
    output = context.root("output")
    parent, _, name = output.rstrip("/").rpartition("/")
    # Next to the output, not below it: the output's root must hold only partitions, for readers and Sluice's dataset.
    refused = context.root("rejected", default=f"{parent}/rejected/{name}/")

    schema = ", ".join(f"{column} string" for column in SOURCE)
    raw = spark.read.csv(source, schema=schema, header=True, enforceSchema=False)
    # A day is under a megabyte: with one partition from the start, the window needs no shuffle.
    counts = Observation("rows")
    reason = F.col("reason")
    judged = transform(raw.coalesce(1), day).observe(
        counts,
        F.count(F.lit(1)).alias("rows_in"),
        F.count_if(reason.isNull()).alias("rows_out"),
        F.count_if(reason.isNotNull() & (reason != DUPLICATE)).alias("rejected"),
        F.count_if(reason == DUPLICATE).alias("duplicates"),
        F.count_if(reason.isNull() & F.col("cancelled")).alias("cancelled"),
    )
    judged = judged.cache()  # read once, written twice
    rejected(judged).write.mode("overwrite").json(day.under(refused))
    # Last: downstream schedules wait for its _SUCCESS, which must mean that both outputs are complete.
    clean(judged).write.mode("overwrite").parquet(day.under(output))
    return {"day": str(day), **counts.get, "output": day.under(output)}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("clean_flights", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
