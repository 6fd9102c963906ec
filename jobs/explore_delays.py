"""An experiment: one model for all airports, at several strengths of regularisation, evaluated on the held-out week.

Properties: ``months``, ``output``; optionally ``strengths`` (a list of numbers). See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from flight_features import read
from flight_models import area, departed, fit, month_of, probability
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sluice_job import ContextError, RunContext, run_job
from training_set import prepared

STRENGTHS = (0.0, 0.001, 0.01, 0.1)


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Prepare the month, then train and evaluate one model per strength."""
    month, strengths = month_of(context), context.properties.get("strengths", STRENGTHS)
    if not strengths or not all(isinstance(strength, (int, float)) for strength in strengths):
        raise ContextError(f"run {context.run_id}: expected 'strengths' to be a list of numbers, got {strengths!r}")
    rows = departed(prepared(read(spark, month.under(context.root("months"))).coalesce(1), month), None).cache()
    trained, held = rows.where(~F.col("holdout")), rows.where("holdout")
    found = [(float(strength), area(held, probability(fit(trained, "all", strength)))) for strength in strengths]
    output = month.under(context.root("output"))
    table = spark.createDataFrame(found, "regularisation double, area double")
    table.coalesce(1).write.mode("overwrite").csv(output, header=True)
    best = max(found, key=lambda pair: pair[1])
    return {"tried": len(found), "best": best[0], "area": best[1], "output": output}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("explore_delays", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
