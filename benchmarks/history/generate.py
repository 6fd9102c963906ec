"""A Spark job that writes a day of raw history: a given number of attempts, deterministic, some of them twice.

Properties: ``rows``, ``output``, ``day``. Every value is a hash of the row's number, without generator or state, so the
result is the same on any number of cores. A twentieth of the lines is repeated, and every fiftieth attempt has an
earlier revision, so that the compaction has work. Objects hold some 3,000 lines, like those of the Lambda."""

from __future__ import annotations

import datetime
import sys
from typing import Any

from history_days import LINE_SCHEMA, day_of
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from sluice_job import RunContext, run_job

LINES_AN_OBJECT = 3_000
WORKFLOWS, SCHEDULES = 2_000, 10_000
DOUBLED, REVISED = 20, 50


def transform(numbers: DataFrame, rows: int, midnight_ms: int) -> DataFrame:
    """Lines of `LINE_SCHEMA` and their hour, one for each ``id`` of ``numbers`` (0 to rows - 1), with the
    duplicates."""
    schedule = _pick("schedule", SCHEDULES)
    workflow = F.pmod(schedule, F.lit(WORKFLOWS))
    fails, minute = _pick("fails", 1000), 60_000
    mark = F.format_string("m3k2j9x1.%016x", F.xxhash64("id"))
    due = F.lit(midnight_ms) + (F.col("id") * 86_000_000 / rows).cast("long")
    lines = numbers.select(
        F.col("id").alias("number"),
        F.lit(2).alias("schema"),
        F.lit("run").alias("kind"),
        F.format_string("demo%d.flights.s%d.%s", F.pmod(workflow, F.lit(20)), schedule, mark).alias("id"),
        F.lit(1).alias("attempt"),
        F.lit(5).cast("long").alias("rev"),
        F.format_string("demo%d", F.pmod(workflow, F.lit(20))).alias("namespace"),
        F.format_string("demo%d.flights", F.pmod(workflow, F.lit(20))).alias("app"),
        F.format_string("demo%d.flights.s%d", F.pmod(workflow, F.lit(20)), schedule).alias("schedule"),
        F.format_string("demo%d.flights.w%d", F.pmod(workflow, F.lit(20)), workflow).alias("workflow"),
        F.when(fails < 15, "FAILED").otherwise("SUCCEEDED").alias("state"),
        F.when(fails < 15, F.concat(F.lit("the driver ended with exit code 1: "), F.hex(_hash("why")))).alias("reason"),
        F.lit("fire").alias("job"),
        F.lit("fire").alias("fired_by"),
        F.lit(5).alias("priority"),
        F.lit(2).alias("attempts"),
        F.lit(3).alias("version"),
        F.lit("emr_serverless").alias("target"),
        F.format_string("00fqk2v8t9abcd09/00fq%012d", F.col("id")).alias("target_id"),
        due.alias("nominal_at"),
        due.alias("due_at"),
        (due - minute).alias("created_at"),
        (due + _pick("claimed", 400)).alias("claimed_at"),
        (due + 400 + _pick("requested", 900)).alias("start_requested_at"),
        (due + 30_000 + _pick("started", 60_000)).alias("started_at"),
        (due + 90_000 + _pick("ended", 300_000)).alias("ended_at"),
        *_deadline(schedule, due),
        (400 + _pick("requested", 900)).alias("lateness_ms"),
        _pick("claimed", 400).alias("waited_ms"),
        F.lit(1).alias("calls"),
        *_billed(),
    )  # fmt: skip
    return _twice(lines).withColumn("hour", F.date_format(F.timestamp_millis("due_at"), "HH"))


def _deadline(schedule: Column, due: Column) -> list[Column]:
    """The deadline columns: a tenth of the schedules has one, which one in thirty of their runs misses."""
    watched, end_by = F.pmod(schedule, F.lit(10)) == 0, due + 380_000
    missed = due + 90_000 + _pick("ended", 300_000) > end_by
    return [F.when(watched, end_by).alias("end_by"), F.when(watched, missed).alias("missed_end")]


def _billed() -> list[Column]:
    vcpu = F.round(_pick("vcpu", 2_000) / 1000, 3)
    cost = F.round(vcpu * 0.052624 + vcpu * 4 * 0.0057785, 6)
    return [
        vcpu.alias("vcpu_hours"),
        F.round(vcpu * 4, 3).alias("memory_gb_hours"),
        F.lit(0.0).alias("storage_gb_hours"),
        cost.alias("cost_usd"),
    ]


def _twice(lines: DataFrame) -> DataFrame:
    """The lines with duplicates next to the originals, as repeated batches and retries produce them; without a
    shuffle."""
    earlier = F.when(F.pmod("number", F.lit(REVISED)) == 0, F.lit(3).cast("long"))
    again = F.when(F.pmod("number", F.lit(DOUBLED)) == 1, F.col("rev"))
    revisions = F.array_compact(F.array(F.col("rev"), again, earlier))
    return lines.withColumn("rev", F.explode(revisions))


def _hash(salt: str) -> Column:
    return F.xxhash64("id", F.lit(salt))


def _pick(salt: str, below: int) -> Column:
    return F.pmod(_hash(salt), F.lit(below))


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Write the day's raw lines."""
    rows, day = int(context.properties["rows"]), day_of(context)
    midnight = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
    objects = max(1, -(-rows // LINES_AN_OBJECT))
    lines = transform(spark.range(0, rows, 1, objects), rows, round(midnight.timestamp() * 1000))
    known = set(lines.columns)
    absent = [name for name in spark.createDataFrame([], LINE_SCHEMA).columns if name not in known]
    if unknown := known - set(spark.createDataFrame([], LINE_SCHEMA).columns) - {"hour"}:
        raise ValueError(f"expected columns of the lake, got also {sorted(unknown)}")
    target = f"{context.root('output')}day={day}"
    lines.write.partitionBy("hour").option("compression", "gzip").mode("overwrite").json(target)
    doubled = len(range(1, rows, DOUBLED)) + len(range(0, rows, REVISED))
    return {"rows_out": rows, "lines": rows + doubled, "objects": objects, "left_out": absent, "output": target}


if __name__ == "__main__":
    sys.exit(run_job("generate", sys.argv[1:], work))
