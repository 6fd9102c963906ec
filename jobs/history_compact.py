"""Compact one day of Sluice's own history: raw JSON lines become Parquet, with one row for each attempt and record.

Properties: ``history``, ``output``; optionally ``day``. See ``jobs/README.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from history_days import COMPACT_SCHEMA, INSTANTS, LINE_SCHEMA, Days, day_of, read_lines, read_parquet
from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from sluice_job import RunContext, run_job

KEY = ("kind", "id", "attempt")
UNREADABLE = "_unreadable"
COMPACTED = "_compacted"  # whether a row is of the version before, and not a raw line
# Raw bytes (gzip, about a tenth of the text) for each file of the result: some 200,000 rows, which are sorted in
# memory.
BYTES_A_FILE = 16 * 1024 * 1024
MAX_FILES = 256


def transform(lines: DataFrame, files: int) -> DataFrame:
    """One row for each (kind, id, attempt), that of the highest ``rev``, in ``files`` partitions.

    ``lines``: `LINE_SCHEMA`. The lake receives changes at least once and in any order; a later revision of an attempt
    contains everything of an earlier one. Instants become timestamps. Lines without a key are left out, and so are
    records that were withdrawn, because their job has run after all.
    """
    # Equal revisions are identical. If two invocations sent the same delivery, the one that ended last counts.
    raw_first = [F.asc(COMPACTED)] if COMPACTED in lines.columns else []
    order = [F.desc("rev"), F.desc("ended_at"), F.desc("claimed_at"), *raw_first]
    newest_first = Window.partitionBy(*KEY).orderBy(*order)
    instants = {name: F.timestamp_millis(name) for name in INSTANTS}
    return (
        lines.where(F.col("id").isNotNull() & F.col("kind").isNotNull())
        # One shuffle: the window needs no further one, and each partition becomes one file.
        .repartition(files, *KEY)
        .withColumn("place", F.row_number().over(newest_first))
        .where("place = 1 and not state <=> 'WITHDRAWN'")
        .drop("place")
        .withColumns(instants)
    )


def lines_of(rows: DataFrame) -> DataFrame:
    """The rows of a version as lines, whose instants are numbers."""
    return rows.withColumns({name: F.unix_millis(name) for name in INSTANTS}).withColumn(COMPACTED, F.lit(True))


def files_for(raw_bytes: int) -> int:
    """The number of files of a day. It has an upper bound that does not depend on the number of raw objects."""
    return max(1, min(MAX_FILES, -(-raw_bytes // BYTES_A_FILE)))


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Compact the run's day: its new version replaces the old one, other days stay.

    The new version has the rows of the old one, too. A lifecycle rule may have deleted the raw lines of a day before a
    late line comes for it; without those rows, that line would replace the day."""
    day, output = day_of(context), Days(spark, context.root("output"))
    raw = Days(spark, context.root("history"))
    lines = read_lines(spark, raw.folder(day), f"{LINE_SCHEMA}, {UNREADABLE} string")
    before = lines_of(read_parquet(spark, output.latest(day), COMPACT_SCHEMA))
    files = files_for(max(raw.bytes_of(day), output.bytes_of(day)))
    # Counted while the lines are read once; a second query would read them again.
    arrived, compacted = Observation("arrived"), Observation("settled")
    counted = lines.observe(
        arrived, F.count(F.lit(1)).alias("rows_in"), F.count_if(F.col("id").isNull()).alias("rejected")
    )
    version = output.next_version(day)
    both = counted.drop(UNREADABLE).withColumn(COMPACTED, F.lit(False)).unionByName(before)
    rows = transform(both, files).observe(
        compacted, F.count(F.lit(1)).alias("rows_out"), F.count_if(F.col(COMPACTED)).alias("kept")
    )
    rows.drop(COMPACTED).write.mode("overwrite").parquet(version)
    # For an empty input Spark's optimizer removes the observation, so there are no counts.
    figures = {"rows_in": 0, "rejected": 0, "rows_out": 0, "kept": 0, **arrived.get, **compacted.get}
    replaced = output.keep_only(version, day)
    duplicates = figures["rows_in"] - figures["rejected"] - (figures["rows_out"] - figures["kept"])
    return {"day": str(day), **figures, "duplicates": duplicates, "replaced": replaced, "output": version}


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("history_compact", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
