"""Publish the models of a month that are better than the baseline. The other models change nothing.

Properties: ``models``, ``evaluation``, ``output``. See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from flight_models import EVALUATION, month_of, read_model, write_text
from pyspark.sql import SparkSession
from sluice_job import RunContext, run_job


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Copy each better model to ``<output>origin=<origin>/``, replacing the one that served until now."""
    month, output = month_of(context), context.root("output")
    judged = spark.read.csv(month.under(context.root("evaluation")), schema=EVALUATION, header=True)
    won = sorted(row["origin"] for row in judged.where("better").select("origin").collect())
    for origin in won:
        model = read_model(spark, f"{month.under(context.root('models'))}origin={origin}/")
        write_text(spark, model.text(), f"{output}origin={origin}/")
    return {"published": won, "output": output}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("publish_models", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
