"""Settle one day of Sluice's own history: raw JSON lines become Parquet, with one row for each attempt and record.

Properties: ``history``, ``output``; ``day`` to name one. See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from history_days import INSTANTS, LINE_SCHEMA, Days, day_of, read_lines
from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from run_context import RunContext, run_job

KEY = ("kind", "id", "attempt")
UNREADABLE = "_unreadable"
# Raw bytes (gzip, about a tenth of the text) for each file of the result: some 200,000 rows, sorted in memory.
BYTES_A_FILE = 16 * 1024 * 1024
MAX_FILES = 256


def transform(lines: DataFrame, files: int) -> DataFrame:
    """One row for each (kind, id, attempt), that of the highest ``rev``, in so many partitions.

    ``lines``: `LINE_SCHEMA`. The lake takes changes at least once and in no order; a later revision of an attempt says
    all that an earlier one said. Instants become timestamps. Lines without a key are left out.
    """
    # The same revision told twice is the same; a delivery that two sent at once is that which ended last.
    newest_first = Window.partitionBy(*KEY).orderBy(F.desc("rev"), F.desc("ended_at"), F.desc("claimed_at"))
    instants = {name: F.timestamp_millis(name) for name in INSTANTS}
    return (
        lines.where(F.col("id").isNotNull() & F.col("kind").isNotNull())
        # One shuffle: the window finds its groups together already, and each partition becomes one file.
        .repartition(files, *KEY)
        .withColumn("place", F.row_number().over(newest_first))
        .where("place = 1")
        .drop("place")
        .withColumns(instants)
    )


def files_for(raw_bytes: int) -> int:
    """How many files a day becomes: bounded, whatever the number of objects that it came in."""
    return max(1, min(MAX_FILES, -(-raw_bytes // BYTES_A_FILE)))


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Settle the run's day; the day is replaced by its new version, other days stay."""
    day, output = day_of(context), Days(spark, context.root("output"))
    raw = Days(spark, context.root("history"))
    lines = read_lines(spark, raw.folder(day), f"{LINE_SCHEMA}, {UNREADABLE} string")
    files = files_for(raw.bytes_of(day))
    # Counted while the lines go by: asking twice would be reading twice.
    came, settled = Observation("arrived"), Observation("settled")
    counted = lines.observe(
        came, F.count(F.lit(1)).alias("rows_in"), F.count_if(F.col("id").isNull()).alias("rejected")
    )
    version = output.next_version(day)
    rows = transform(counted.drop(UNREADABLE), files).observe(settled, F.count(F.lit(1)).alias("rows_out"))
    rows.write.mode("overwrite").parquet(version)
    # Of an empty input Spark's optimizer leaves nothing to observe, and so no counts.
    figures = {"rows_in": 0, "rejected": 0, "rows_out": 0, **came.get, **settled.get}
    replaced = output.keep_only(version, day)
    duplicates = figures["rows_in"] - figures["rejected"] - figures["rows_out"]
    return {"day": str(day), **figures, "duplicates": duplicates, "replaced": replaced, "output": version}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("history_compact", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
