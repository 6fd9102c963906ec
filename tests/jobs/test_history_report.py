"""The report of a day, per workflow: runs, delays, durations, cost, and the change in a week (H3)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from history_days import COMPACT_SCHEMA, Days
from history_report import WEEK_AGO_SCHEMA, transform, work
from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

DAY = date(2026, 3, 2)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NO_EVENTS: dict[str, Any] = {"correlation": None, "events": []}


def attempt(run_id: str, seconds: float = 60, **fields: Any) -> dict[str, Any]:
    begun = NOON - timedelta(seconds=seconds)
    return {
        "kind": "run", "id": run_id, "attempt": 1, "namespace": "demo", "workflow": "demo.flights.clean",
        "schedule": "demo.flights.nightly", "state": "SUCCEEDED", "claimed_at": begun, "started_at": begun,
        "ended_at": NOON, **fields,
    }  # fmt: skip


def record(kind: str, schedule: str = "demo.flights.nightly", count: int = 1) -> dict[str, Any]:
    return {
        "kind": "record", "id": f"{kind}{schedule}", "attempt": 0, "namespace": "demo", "schedule": schedule,
        "state": kind, "count": count, "ended_at": NOON,
    }  # fmt: skip


def report(spark: SparkSession, *rows: dict[str, Any], week_ago: list[Any] | None = None) -> list[Row]:
    history = spark.createDataFrame(list(rows), COMPACT_SCHEMA)
    return transform(history, spark.createDataFrame(week_ago or [], WEEK_AGO_SCHEMA)).collect()


def test_h3_runs_and_successes_are_counted_by_run_not_by_attempt(spark: SparkSession) -> None:
    (row,) = report(
        spark,
        attempt("r1", state="RETRYING"),
        attempt("r1", attempt=2),
        attempt("r2", state="FAILED", reason="no space left"),
        attempt("r3", state="CANCELLED"),
        attempt("r4", state="ABORTED"),
        attempt("r5"),
    )
    assert (row.runs, row.attempts, row.retries) == (5, 6, 1)
    assert (row.succeeded, row.failed, row.cancelled, row.aborted) == (2, 1, 1, 1)
    assert row.success_rate == pytest.approx(2 / 3, abs=1e-6)
    assert (row.last_failed_run, row.last_failure) == ("r2", "no space left")


def test_h3_percentiles_of_lateness_duration_and_waiting(spark: SparkSession) -> None:
    rows = [attempt(f"r{n}", n, lateness_ms=n * 10, waited_ms=n) for n in range(1, 101)]
    (row,) = report(spark, *rows)
    assert (row.duration_p50_ms, row.duration_p95_ms, row.duration_p99_ms) == (50_000, 95_000, 99_000)
    assert (row.lateness_p50_ms, row.lateness_p99_ms, row.lateness_max_ms) == (500, 990, 1000)
    assert (row.waited_p50_ms, row.waited_max_ms) == (50, 100)
    assert (row.duration_max_ms, row.slowest_run) == (100_000, "r100")


def test_h3_each_event_of_a_large_fire_counts(spark: SparkSession) -> None:
    many = attempt("b1", 0, lateness_ms=90, count=200, lateness_counts={"20": 190, "100": 10})
    rows = [attempt(f"r{n}", 1, lateness_ms=50) for n in range(10)]
    (row,) = report(spark, many, *rows, record("DROPPED", count=7))
    assert (row.runs, row.attempts, row.succeeded, row.not_run) == (210, 210, 210, 7)
    assert (row.lateness_p50_ms, row.lateness_p95_ms, row.lateness_p99_ms, row.lateness_max_ms) == (20, 50, 90, 90)
    assert (row.duration_p50_ms, row.duration_max_ms) == (0, 1_000)


def test_h3_a_run_without_a_timer_has_no_lateness(spark: SparkSession) -> None:
    (row,) = report(spark, attempt("r1"))
    assert (row.lateness_p50_ms, row.lateness_max_ms) == (None, None)


def test_h3_cost_is_the_sum_of_attempts_and_unknown_is_not_zero(spark: SparkSession) -> None:
    known = report(
        spark,
        attempt("r1", state="RETRYING", cost_usd=0.25, vcpu_hours=4.0, memory_gb_hours=16.0),
        attempt("r1", attempt=2, cost_usd=0.5, vcpu_hours=8.0, memory_gb_hours=32.0),
        attempt("r2"),
    )
    assert (known[0].cost_usd, known[0].vcpu_hours, known[0].memory_gb_hours) == (0.75, 12.0, 48.0)
    (unknown,) = report(spark, attempt("r1"))
    assert unknown.cost_usd is None


def test_h5_missed_deadlines_are_counted_where_one_is_set(spark: SparkSession) -> None:
    (kept,) = report(
        spark,
        attempt("r1", missed_start=True, missed_end=True),
        attempt("r2", missed_end=False),
        attempt("r3", state="RETRYING", missed_start=False),
        attempt("r3", attempt=2, missed_end=True),
        attempt("r4"),
    )
    (nobody,) = report(spark, attempt("r1"))
    assert (kept.sla_misses, nobody.sla_misses) == (3, None)


def test_h3_the_start_of_a_dag_is_no_run_of_a_workflow(spark: SparkSession) -> None:
    begins = attempt("d1", workflow="demo.flights.daily~ab12", schedule="demo.flights.daily~", target="dag")
    rows = report(spark, begins, attempt("r1", target="emr_serverless"), attempt("r2"))
    assert [(row.workflow, row.runs) for row in rows] == [("demo.flights.clean", 2)]


def test_h3_all_messages_of_an_app_count_together(spark: SparkSession) -> None:
    names = ("demo.flights.~m1", "demo.flights.~m2", "demo.flights.~notice-3f")
    sent = [attempt(name, schedule=name, workflow=name) for name in names]
    default = attempt("d", schedule="demo.flights.~m4", workflow="demo.flights.~")
    dropped = record("DROPPED", "demo.flights.~m1")
    rows = report(spark, *sent, default, dropped, attempt("r1"), attempt("x", workflow="demo.other.~m"))
    assert [(row.workflow, row.runs, row.not_run) for row in rows] == [
        ("demo.flights.clean", 1, 0), ("demo.flights.~", 4, 1), ("demo.other.~", 1, 0),
    ]  # fmt: skip


def test_h3_a_day_compacted_before_a_column_existed_is_reported(spark: SparkSession, lake: Any, run: Any) -> None:
    later = ("missed_start", "missed_end", "start_by", "end_by", "dag", "pool", "outcome")
    old = spark.createDataFrame([attempt("r1"), attempt("r2")], COMPACT_SCHEMA).drop(*later)
    old.write.parquet(Days(spark, lake.root("history_compact/")).next_version(DAY))
    summary = run(work, properties(lake), **NO_EVENTS)
    (row,) = spark.read.parquet(summary["output"]).collect()
    assert (row.runs, row.sla_misses) == (2, None)


def test_h3_work_that_never_ran_counts_for_its_workflow(spark: SparkSession) -> None:
    rows = report(
        spark, attempt("r1"), record("COALESCED", count=3), record("SKIPPED"), record("ABORTED", "demo.flights.other")
    )
    assert [(row.workflow, row.runs, row.not_run) for row in rows] == [("", 0, 1), ("demo.flights.clean", 1, 4)]
    assert rows[0].success_rate is None


def test_h3_drift_is_relative_to_the_same_day_a_week_before(spark: SparkSession) -> None:
    week_ago = [("demo", "demo.flights.clean", 2, 1.0, 40_000, 0.5), ("demo", "demo.flights.gone", 1, 1.0, 1, 1.0)]
    (row,) = report(spark, attempt("r1", cost_usd=1.0), attempt("r2", state="FAILED"), attempt("r3"), week_ago=week_ago)
    assert (row.runs_change, row.duration_p50_change, row.cost_change) == (0.5, 0.5, 1.0)
    assert row.success_rate_change == pytest.approx(-1 / 3, abs=1e-6)
    (new,) = report(spark, attempt("r1"))
    assert (new.runs_change, new.duration_p50_change, new.success_rate_change) == (None, None, None)


def write_day(spark: SparkSession, lake: Any, day: date, *rows: dict[str, Any]) -> None:
    history = spark.createDataFrame(list(rows), COMPACT_SCHEMA)
    history.write.parquet(Days(spark, lake.root("history_compact/")).next_version(day))


def properties(lake: Any, day: date = DAY) -> dict[str, str]:
    return {"compact": lake.root("history_compact/"), "output": lake.root("history_report/"), "day": str(day)}


def test_h3_the_report_is_parquet_and_json_for_each_namespace(spark: SparkSession, lake: Any, run: Any) -> None:
    write_day(spark, lake, DAY, attempt("r1"), attempt("r2", namespace="other", workflow="other.a.w"))
    summary = run(work, properties(lake), **NO_EVENTS)

    assert (summary["rows_out"], summary["attempts"], summary["day"]) == (2, 2, "2026-03-02")
    assert spark.read.parquet(summary["output"]).count() == 2
    (text,) = Path(summary["json"], "namespace=other").glob("*.json")
    (line,) = [json.loads(each) for each in text.read_text().splitlines()]
    assert (line["workflow"], line["runs"], line["day"]) == ("other.a.w", 1, "2026-03-02")
    assert line["cost_usd"] is None, "what is not known is said to be so"


def test_h3_a_repeated_report_replaces_its_day_for_comparison(spark: SparkSession, lake: Any, run: Any) -> None:
    write_day(spark, lake, DAY - timedelta(days=7), attempt("r1", 30))
    for _ in range(2):
        run(work, properties(lake, DAY - timedelta(days=7)), **NO_EVENTS)
    assert len(list(Path(lake.root("history_report/json/day=2026-02-23")).iterdir())) == 1
    write_day(spark, lake, DAY, attempt("r2", 60))
    summary = run(work, properties(lake), **NO_EVENTS)
    (row,) = spark.read.parquet(summary["output"]).collect()
    assert (row.duration_p50_change, row.runs_change) == (1.0, 0.0)


def test_h3_a_day_not_compacted_has_an_empty_report_and_says_so(spark: SparkSession, lake: Any, run: Any) -> None:
    summary = run(work, properties(lake), **NO_EVENTS)
    assert summary["rows_out"] == 0
    assert "no compacted history of 2026-03-02 yet" in summary["note"]
