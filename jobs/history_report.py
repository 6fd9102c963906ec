"""The report of a day, workflow by workflow: runs, success, lateness, durations, retries, missed deadlines, cost.

Properties: ``compact``, ``output``; optionally ``day``. See ``jobs/README.md``.
"""

from __future__ import annotations

import datetime
import sys
from typing import Any

from history_days import COMPACT_SCHEMA, Days, day_of, read_parquet
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from sluice_job import RunContext, run_job

SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
# The rank of a percentile is exact to a ten-thousandth: the p99 of a million runs to a hundred of them.
ACCURACY = 10_000
# The API reads one file at once: some hundred KB, or two MB with the longest names and reasons.
LINES_A_FILE = 500
WEEK = datetime.timedelta(days=7)
NOT_RUN = ("SKIPPED", "COALESCED", "DROPPED", "EXPIRED", "ABORTED")
# The columns that are read from the report of a week before.
WEEK_AGO_SCHEMA = (
    "namespace string, workflow string, runs long, success_rate double, duration_p50_ms long, cost_usd double"
)


def transform(history: DataFrame, week_ago: DataFrame) -> DataFrame:
    """One row for each namespace and workflow, in that order; ``docs/history.md`` has the columns.

    ``history``: one day, compacted. ``week_ago``: the report of seven days before, or no rows. A record names only a
    schedule: it counts for the workflow that the schedule ran last on that day, or for "" if it ran none. The run that
    starts a DAG run counts for no workflow; the runs of its nodes do. A message with its own target is a workflow
    that usually runs once, so all messages of an app count as one, ``<app>.~``. Each sent event of a large fire counts.
    """
    runs = history.where("kind = 'run' and not target <=> 'dag'")
    runs = runs.withColumn("workflow", F.regexp_replace("workflow", r"\.~[^.]+$", ".~"))
    owners = runs.groupBy("schedule").agg(F.max_by("workflow", "claimed_at").alias("owner"))
    records = history.where("kind = 'record'").join(owners, "schedule", "left")
    attributed = records.withColumn("workflow", F.coalesce("owner", F.lit(""))).drop("owner")
    everything = runs.unionByName(attributed.select(*runs.columns))
    return _drift(_per_workflow(everything), week_ago).coalesce(1).sortWithinPartitions("namespace", "workflow")


def _each_event(rows: DataFrame) -> DataFrame:
    """The rows with one for each event of a run that stands for many, with the lateness of the event. The lake has how
    many events were at most how late; none was later than ``lateness_ms``."""
    counted = F.transform(F.map_entries("lateness_counts"), _lateness_of)
    late = F.when(F.col("kind") == "run", F.flatten(counted))
    return rows.withColumn("lateness_ms", F.explode(F.coalesce(late, F.array("lateness_ms"))))


def _lateness_of(entry: Column) -> Column:
    """The lateness of each event that an entry counts: the bound is its key."""
    bound = F.least(entry["key"].cast("long"), F.col("lateness_ms"))
    return F.array_repeat(bound, entry["value"].cast("int"))


def _per_workflow(rows: DataFrame) -> DataFrame:
    is_run = F.col("kind") == "run"
    # As `chalicelib/core/history/durations.py`: a start at the instant of the end is that of a target that tells none.
    told = F.when(F.col("started_at") < F.col("ended_at"), F.col("started_at"))
    begun = F.coalesce(told, "start_requested_at", "claimed_at")
    timed = _each_event(rows).withColumn(
        "duration_ms", F.when(is_run, F.unix_millis("ended_at") - F.unix_millis(F.when(is_run, begun)))
    )
    failed = F.when(F.col("state") == "FAILED", F.col("ended_at"))
    totals = timed.groupBy("namespace", "workflow").agg(
        F.count_if(is_run & (F.col("state") != "RETRYING")).alias("runs"),
        F.count_if(is_run).alias("attempts"),
        F.count_if(is_run & (F.col("attempt") > 1)).alias("retries"),
        *(
            F.count_if(is_run & (F.col("state") == state)).alias(state.lower())
            for state in ("SUCCEEDED", "FAILED", "CANCELLED", "ABORTED")
        ),
        F.coalesce(F.sum(F.when(~is_run & F.col("state").isin(*NOT_RUN), F.col("count"))), F.lit(0)).alias("not_run"),
        *_spread("lateness_ms"),
        *_spread("duration_ms"),
        *_spread("waited_ms"),
        F.sum(_misses()).alias("sla_misses"),
        F.sum("vcpu_hours").alias("vcpu_hours"),
        F.sum("memory_gb_hours").alias("memory_gb_hours"),
        F.round(F.sum("cost_usd"), 6).alias("cost_usd"),
        F.max_by("id", "duration_ms").alias("slowest_run"),
        F.max_by("id", failed).alias("last_failed_run"),
        F.max_by("reason", failed).alias("last_failure"),
    )
    decided = F.col("succeeded") + F.col("failed")
    named = {f"{name}_{share}_ms": F.col(f"{name}s")[at] for name in MEASURES for at, share in enumerate(SHARES)}
    rate = F.when(decided > 0, F.round(F.col("succeeded") / decided, 6))
    return totals.withColumns({**named, "success_rate": rate}).drop(*(f"{name}s" for name in MEASURES))


MEASURES = ("lateness", "duration", "waited")


def _misses() -> Column:
    """The number of missed deadlines of an attempt; null if it had no deadline."""
    missed = [F.col(name).cast("long") for name in ("missed_start", "missed_end")]
    known = F.coalesce(*missed).isNotNull()
    return F.when(known, F.coalesce(missed[0], F.lit(0)) + F.coalesce(missed[1], F.lit(0)))


def _spread(measure: str) -> list[Column]:
    name = measure.removesuffix("_ms")
    shares = F.array(*(F.lit(share) for share in SHARES.values()))
    return [F.percentile_approx(measure, shares, ACCURACY).alias(f"{name}s"), F.max(measure).alias(f"{name}_max_ms")]


def _drift(totals: DataFrame, week_ago: DataFrame) -> DataFrame:
    """The change within a week: relative to the earlier value (0.5: half as much again), the success rate in points."""
    then = week_ago.select(
        "namespace",
        "workflow",
        F.col("runs").alias("then_runs"),
        F.col("success_rate").alias("then_rate"),
        F.col("duration_p50_ms").alias("then_duration"),
        F.col("cost_usd").alias("then_cost"),
    )
    return (
        totals.join(then, ["namespace", "workflow"], "left")
        .withColumns(
            {
                "runs_change": _change("runs", "then_runs"),
                "duration_p50_change": _change("duration_p50_ms", "then_duration"),
                "cost_change": _change("cost_usd", "then_cost"),
                "success_rate_change": F.round(F.col("success_rate") - F.col("then_rate"), 6),
            }
        )
        .drop("then_runs", "then_rate", "then_duration", "then_cost")
    )


def _change(now: str, then: str) -> Column:
    return F.when(F.col(then) > 0, F.round(F.col(now) / F.col(then) - 1, 4))


def work(spark: SparkSession, context: RunContext) -> dict[str, Any]:
    """Write the report of the run's day, as Parquet and as JSON for each namespace; other days stay."""
    day, root = day_of(context), context.root("output")
    tables, texts = Days(spark, f"{root}parquet/"), Days(spark, f"{root}json/")
    compacted = Days(spark, context.root("compact")).latest(day)
    history = read_parquet(spark, compacted, COMPACT_SCHEMA)
    week_ago = read_parquet(spark, tables.latest(day - WEEK), WEEK_AGO_SCHEMA)
    counts = Observation("rows")
    report_of_day = transform(history, week_ago).withColumn("day", F.lit(str(day)).cast("date"))
    report = report_of_day.observe(
        counts,
        F.count(F.lit(1)).alias("rows_out"),
        F.coalesce(F.sum("attempts"), F.lit(0)).alias("attempts"),
        F.coalesce(F.sum("not_run"), F.lit(0)).alias("not_run"),
    ).cache()  # computed once, written twice
    table, text = tables.next_version(day), texts.next_version(day)
    # The table is written last, so that the JSON of a new table exists.
    as_text = report.write.mode("overwrite").option("ignoreNullFields", "false")
    as_text.option("maxRecordsPerFile", LINES_A_FILE).partitionBy("namespace").json(text)
    report.write.mode("overwrite").parquet(table)
    figures = {"rows_out": 0, "attempts": 0, "not_run": 0, **counts.get}
    texts.keep_only(text, day)
    tables.keep_only(table, day)
    summary: dict[str, Any] = {"day": str(day), **figures, "output": table, "json": text}
    if compacted is None:
        summary["note"] = f"no compacted history of {day} yet: the report is empty"
    return summary


def main(argv: list[str]) -> int:
    """Entry point; returns the exit code."""
    return run_job("history_report", argv, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
