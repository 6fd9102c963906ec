"""Evaluate the models of a month on its held-out week, against the baseline. Overwrites that month's evaluation.

Properties: ``training_set``, ``models``, ``origins`` (a list), ``output``. See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from flight_models import BASELINE, EVALUATION, area, departed, month_of, probability, read_model
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sluice_job import ContextError, RunContext, run_job


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Evaluate one model per origin, in the given order."""
    month, origins = month_of(context), context.properties.get("origins")
    if not isinstance(origins, list) or not origins:
        raise ContextError(f"run {context.run_id}: expected 'origins' to be a list such as [JFK], got {origins!r}")
    prepared = spark.read.parquet(month.under(context.root("training_set"))).where("holdout").cache()
    rows = []
    for origin in origins:
        model = read_model(spark, f"{month.under(context.root('models'))}origin={origin}/")
        held = departed(prepared, origin)
        count, late = held.agg(F.count("label"), F.round(F.avg("label"), 4)).first() or (0, None)
        own, baseline = area(held, probability(model)), area(held, F.col(BASELINE))
        rows.append((origin, model.trained_on, count, late, own, baseline, own > baseline))
    output = month.under(context.root("output"))
    spark.createDataFrame(rows, EVALUATION).coalesce(1).write.mode("overwrite").csv(output, header=True)
    return {"rows_in": sum(row[2] for row in rows), "better": [row[0] for row in rows if row[-1]], "output": output}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("evaluate_models", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
