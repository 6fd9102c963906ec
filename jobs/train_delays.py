"""Train the delay model of one airport on a prepared month. Overwrites that airport's model of the month.

Properties: ``training_set``, ``origin``, ``output``. See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from flight_models import departed, fit, month_of, write_text
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sluice_job import RunContext, run_job


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Train on the days that are not held out."""
    month, origin = month_of(context), context.text("origin")
    rows = spark.read.parquet(month.under(context.root("training_set"))).where(~F.col("holdout"))
    model = fit(departed(rows, origin).cache(), origin)
    output = f"{month.under(context.root('output'))}origin={origin}/"
    write_text(spark, model.text(), output)
    return {"origin": origin, "rows_in": model.trained_on, "output": output}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("train_delays", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
