"""A month of flights with their features, its last week held out. Overwrites that month only.

Properties: ``months``, ``output``. See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from flight_features import read, transform
from flight_models import Month, month_of
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from sluice_job import RunContext, run_job


def prepared(raw: DataFrame, month: Month) -> DataFrame:
    """The flights whose week before is complete, as returned by `flight_features.transform`, with ``holdout``."""
    rows = transform(raw, month.first, month.last)
    return rows.withColumn("holdout", F.col("date") >= F.lit(month.holdout))


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Prepare the run's month."""
    month = month_of(context)
    raw = read(spark, month.under(context.root("months")))
    counts = Observation("rows")
    rows = prepared(raw.coalesce(1), month).observe(
        counts, F.count(F.lit(1)).alias("rows_out"), F.count_if(F.col("holdout")).alias("held_out")
    )
    output = month.under(context.root("output"))
    rows.write.mode("overwrite").parquet(output)
    return {"month": f"{month.year}-{month.month:02}", **counts.get, "output": output}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("training_set", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
