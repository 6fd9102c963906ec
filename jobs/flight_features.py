"""What is known of a flight before its day: how its route, its aircraft and its airport's hour did in the week before.

Shared by the nightly features, which serve a model, and by its training set, so that both are computed by the same
lines. Reads raw days as `examples/flights` delivers them.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

WINDOW_DAYS = 7  # the calendar days before the flight's own; its own day is never looked at
LATE_MINUTES = 15

# The source's first line, typed; "NA" is null. The reader compares the names with the files.
RAW = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, "
    "arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, "
    "distance int, hour int, minute int, time_hour string"
)
# By the name that its features begin with: what a flight shares with those that are counted for it.
GROUPS = {"route": ("origin", "dest"), "aircraft": ("tailnum",), "airport_hour": ("origin", "hour")}
MEASURES = ("flights", "mean_delay", "cancelled_share", "late_share")
FEATURES = tuple(f"{group}_{measure}" for group in GROUPS for measure in MEASURES)
ABOUT = ("date", "carrier", "flight", "tailnum", "origin", "dest", "sched_dep_time", "hour", "distance")
LABELS = ("dep_delay", "late", "cancelled")


def read(spark: SparkSession, path: str) -> DataFrame:
    """The raw flights at a path. Raises AnalysisException if nothing is there."""
    return spark.read.csv(path, schema=RAW, header=True, nullValue="NA", enforceSchema=False)


def read_days(spark: SparkSession, root: str, days: Sequence[datetime.date]) -> DataFrame:
    """The raw flights of those of the days that are there. Raises AnalysisException if none is."""
    # One pattern rather than one path a day: of a pattern, what is missing is left out.
    folders = ",".join(f"year={day.year}/month={day.month}/day={day.day}" for day in days)
    return read(spark, f"{root}{{{folders}}}/*.csv")


def days_before(day: datetime.date) -> list[datetime.date]:
    """The days of the window, oldest first."""
    return [day - datetime.timedelta(days=ago) for ago in range(WINDOW_DAYS, 0, -1)]


def transform(raw: DataFrame, first: datetime.date, last: datetime.date) -> DataFrame:
    """One row per flight from ``first`` to ``last``: ``ABOUT``, ``FEATURES``, ``LABELS``, in a fixed order.

    Delays are minutes, shares 0 to 1. A feature is null where the window has no such flight, and all of an aircraft's
    where nobody noted its number; ``dep_delay`` and ``late`` are null of a cancelled flight.
    """
    flights = raw.withColumns(
        {
            "date": F.make_date("year", "month", "day"),
            "cancelled": F.col("dep_time").isNull(),
            "late": F.col("dep_delay") > LATE_MINUTES,
        }
    )
    measured = flights.withColumns({name: column for group in GROUPS for name, column in _measures(group).items()})
    return (
        measured.where(F.col("date").between(F.lit(first), F.lit(last)))
        .select(*ABOUT, *FEATURES, *LABELS)
        .coalesce(1)
        .sortWithinPartitions("date", "origin", "sched_dep_time", "carrier", "flight", "dest")
    )


def _measures(group: str) -> dict[str, Column]:
    keys = GROUPS[group]
    # A range of dates, not of rows: a day without flights must not stretch the week. It ends the day before, for of
    # its own day nothing is known when a flight is planned.
    week = Window.partitionBy(*keys).orderBy(F.unix_date("date")).rangeBetween(-WINDOW_DAYS, -1)
    known = F.lit(True)
    for key in keys:
        known = known & F.col(key).isNotNull()
    measures = (
        F.count(F.lit(1)).over(week),
        F.round(F.avg("dep_delay").over(week), 4),
        F.round(F.avg(F.col("cancelled").cast("int")).over(week), 4),
        F.round(F.avg(F.col("late").cast("int")).over(week), 4),
    )
    return {f"{group}_{name}": F.when(known, column) for name, column in zip(MEASURES, measures)}
