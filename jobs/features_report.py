"""The relation of the features to the delays: a row per feature, and a row per day and origin, as CSV.

Properties: ``features``, ``output``. See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from flight_features import FEATURES
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sluice_job import RunContext, run_job

FIFTH = 0.2
ROUNDED = 4
SIGNALS = "feature string, flights long, correlation double, late_lowest double, late_highest double"


def days(features: DataFrame) -> DataFrame:
    """Per date and origin: flights, those whose aircraft flew in the week before, and sums for checks."""
    counted = features.groupBy("date", "origin").agg(
        F.count(F.lit(1)).alias("flights"),
        F.count_if(F.col("aircraft_flights") > 0).alias("known_aircraft"),
        F.sum("route_flights").alias("route_flights"),
        F.round(F.avg("route_mean_delay"), ROUNDED).alias("route_mean_delay"),
        F.round(F.avg(F.col("late").cast("int")), ROUNDED).alias("late_share"),
    )
    return counted.coalesce(1).sortWithinPartitions("date", "origin")


def signals(features: DataFrame) -> list[tuple[str, int, float | None, float | None, float | None]]:
    """Per feature, over the flights that departed: the number of flights that have it, its correlation with the delay,
    and the share of late flights in its lowest and in its highest fifth (bounds included)."""
    departed = features.where(F.col("dep_delay").isNotNull())
    fifths = f"array({FIFTH}, {1 - FIFTH})"
    bounds = departed.agg(*(F.expr(f"percentile({name}, {fifths})") for name in FEATURES)).first() or ()
    late = F.col("late").cast("int")
    aggregates = []
    for name, both in zip(FEATURES, bounds):
        low, high = (F.lit(bound) for bound in both or (None, None))  # null where no flight has the feature
        aggregates += [
            F.count(name),
            F.round(F.corr(name, "dep_delay"), ROUNDED),
            F.round(F.avg(F.when(F.col(name) <= low, late)), ROUNDED),
            F.round(F.avg(F.when(F.col(name) >= high, late)), ROUNDED),
        ]
    first_row = departed.agg(*(column.alias(str(i)) for i, column in enumerate(aggregates))).first()
    values = list(first_row or ())
    return [(name, *values[4 * i : 4 * i + 4]) for i, name in enumerate(FEATURES)]


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Read all existing days; a repeated run overwrites both tables."""
    root, output = context.root("features"), context.root("output")
    features = spark.read.parquet(root).cache()
    table = spark.createDataFrame(signals(features), SIGNALS).coalesce(1)
    table.write.mode("overwrite").csv(f"{output}signals", header=True)
    days(features).write.mode("overwrite").csv(f"{output}days", header=True)
    return {"rows_in": features.count(), "rows_out": len(FEATURES), "rejected": 0, "output": output}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("features_report", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
