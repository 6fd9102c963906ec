"""Features of a flight that are known before its day: how its route, its aircraft and its airport's hour performed in
the week before.

The nightly features, which serve a model, and its training set share this module, so that both are computed by the same
code. It reads raw days as `examples/flights` delivers them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

WINDOW_DAYS = 7  # the calendar days before the flight's own day, which is never used
LATE_MINUTES = 15

# The columns of the source with types; "NA" is null. The reader compares the names with the files.
RAW = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, "
    "arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, "
    "distance int, hour int, minute int, time_hour string"
)
# The prefix of a group's features -> the columns that a flight has in common with the flights of the group.
GROUPS = {"route": ("origin", "dest"), "aircraft": ("tailnum",), "airport_hour": ("origin", "hour")}
MEASURES = ("flights", "mean_delay", "cancelled_share", "late_share")
FEATURES = tuple(f"{group}_{measure}" for group in GROUPS for measure in MEASURES)
ABOUT = ("date", "carrier", "flight", "tailnum", "origin", "dest", "sched_dep_time", "hour", "distance")
LABELS = ("dep_delay", "late", "cancelled")


def read(spark: SparkSession, path: str) -> DataFrame:
    """The raw flights at a path. Raises AnalysisException if nothing exists there."""
    return spark.read.csv(path, schema=RAW, header=True, nullValue="NA", enforceSchema=False)


def read_days(spark: SparkSession, root: str, days: Sequence[datetime.date]) -> DataFrame:
    """The raw flights of the existing days. Raises AnalysisException if none exists."""
    # One pattern instead of one path per day: Spark ignores missing folders of a pattern.
    folders = ",".join(f"year={day.year}/month={day.month}/day={day.day}" for day in days)
    return read(spark, f"{root}{{{folders}}}/*.csv")


def days_before(day: datetime.date) -> list[datetime.date]:
    """The days of the window, oldest first."""
    return [day - datetime.timedelta(days=ago) for ago in range(WINDOW_DAYS, 0, -1)]


def transform(raw: DataFrame, first: datetime.date, last: datetime.date) -> DataFrame:
    """One row per flight from ``first`` to ``last``: ``ABOUT``, ``FEATURES``, ``LABELS``, in a fixed order.

    Delays are minutes, shares 0 to 1. A feature is null if the window has no such flight; all features of an aircraft
    are null if its number is unknown. ``dep_delay`` and ``late`` are null for a cancelled flight.
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
    # A range of dates, not of rows: a day without flights must not extend the week. It ends the day before, because
    # nothing of the flight's own day is known when the flight is planned.
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
