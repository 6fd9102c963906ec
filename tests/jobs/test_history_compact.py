"""A day of raw history is compacted: duplicates, late revisions, unreadable lines, and the replacement of the whole day
(H3).
"""

from __future__ import annotations

import ast
import gzip
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from history_compact import BYTES_A_FILE, MAX_FILES, files_for, transform, work
from history_days import LINE_SCHEMA, Days, day_of
from pyspark.sql import Row, SparkSession
from sluice_job import ContextError, RunContext

from chalicelib.core import instants as core_instants
from chalicelib.core.history import lines as history_lines
from chalicelib.core.history.lines import Change
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs import sends
from chalicelib.core.targets.bills import Prices
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says

pytestmark = pytest.mark.spark

JOBS = Path(__file__).parents[2] / "jobs"
DAY = date(2026, 3, 2)
NO_EVENTS: dict[str, Any] = {"correlation": None, "events": []}


def ended(run_id: str, **fields: Any) -> Run:
    return rows.run(run_id, **{"state": "SUCCEEDED", "ended_at": NOON, "wake_at": None, **fields})


def land(lake: Any, sequence: int, *reported: Run | Record) -> None:
    """Writes the objects exactly as the Lambda does."""
    changes = [Change(f"{sequence + at:030}", row) for at, row in enumerate(reported)]
    for part in history_lines.parts(changes, Prices()):
        body = gzip.compress(history_lines.text_of(part.lines).encode(), mtime=0)
        lake.put_object(Bucket="lake", Key=part.key, Body=body)


def properties(lake: Any, **more: str) -> dict[str, str]:
    return {"history": lake.root("history/"), "output": lake.root("history_compact/"), "day": str(DAY), **more}


def settled(spark: SparkSession, lake: Any, day: date = DAY) -> list[Row]:
    version = Days(spark, lake.root("history_compact/")).latest(day)
    assert version is not None
    return spark.read.parquet(version).orderBy("kind", "id", "attempt").collect()


def test_h3_the_latest_revision_of_attempt_counts_in_any_order(
    spark: SparkSession,
) -> None:
    lines = [
        {"kind": "run", "id": "r1", "attempt": 1, "rev": rev, "state": state}
        for rev, state in ((7, "FAILED"), (5, "RETRYING"), (7, "FAILED"))
    ]
    lines += [{"kind": "run", "id": "r1", "attempt": 2, "rev": 3, "state": "SUCCEEDED"}]
    lines += [{"kind": "record", "id": "r1", "attempt": 0, "rev": 1, "state": "COALESCED"}]
    found = transform(spark.createDataFrame(lines, LINE_SCHEMA), 3).collect()
    assert sorted((row.kind, row.attempt, row.rev, row.state) for row in found) == [
        ("record", 0, 1, "COALESCED"),
        ("run", 1, 7, "FAILED"),
        ("run", 2, 3, "SUCCEEDED"),
    ]


def test_h3_a_record_that_its_run_withdraws_is_left_out(spark: SparkSession, lake: Any, run: Any) -> None:
    dropped = Record("r1", "DROPPED", "demo.flights.clean", 1, says("disabled"), NOON)
    for order in ((dropped, ended("r1", dropped_at=NOON)), (ended("r1", dropped_at=NOON), dropped)):
        land(lake, 1, *order)
        run(work, properties(lake), **NO_EVENTS)
        assert [(row.kind, row.id) for row in settled(spark, lake)] == [("run", "r1")]


def test_h3_the_job_reads_what_the_lambda_writes(spark: SparkSession, lake: Any, run: Any) -> None:
    answer = ended("r1", number=3, billed=(100, 200, 0), claimed_at=NOON - 5_000, correlation={"day": "1"})
    land(lake, 1, answer, Record("j1", "SKIPPED", "demo.flights.clean", 1, says("it was skipped"), NOON, count=2))
    summary = run(work, properties(lake), **NO_EVENTS)

    assert (summary["rows_in"], summary["rows_out"], summary["duplicates"], summary["rejected"]) == (2, 2, 0, 0)
    record, attempt = settled(spark, lake)
    assert (record.state, record["count"], record.schedule) == ("SKIPPED", 2, "demo.flights.clean")
    assert (attempt.number, attempt.vcpu_hours, attempt.correlation) == (3, 0.1, {"day": "1"})
    assert attempt.ended_at.astimezone(UTC) == datetime(2026, 3, 2, 12, tzinfo=UTC)


def whole() -> Run:
    """A run with every field that any run may have."""
    worker = {"type": "worker", "pool": "images", "arguments": [], "heartbeat": "1m"}
    of_dag = {"~dag": "d1/2", "day": "1"}
    node = {"schedule": "demo.flights.daily~ab12~join", "correlation": of_dag, "partition": of_dag}
    instants = ("nominal_at", "due_at", "accepted_at", "start_requested_at", "started_at", "start_by", "end_by")
    return ended(
        "whole", number=3, billed=(100, 200, 0), reason="ended", outcome="timed_out", units=2, late=True, backfill="b1",
        rerun_of="r0", metrics={"rows": 5}, waited_for="a slot", target_id="ann", permits=("pool:demo.cpus",),
        request=replace(rows.run().request, target=worker), kind="fire", **node,
        result={"mode": "full"}, result_refused="too large",
        **dict.fromkeys(instants, NOON - 5_000),
    )  # fmt: skip


def many() -> Run:
    """The run of a bundle: 100 events of a large fire."""
    late = sends.of([(NOON, NOON + 15)] * 90 + [(NOON, NOON + 900)] * 10)
    return ended("demo.flights.batch.1.ab-0_2s", kind="fire", due_at=NOON, spread=(0, 500), count=100, sends=late,
                 plan=(NOON, 0, 0, 500, 500, 0))  # fmt: skip


def test_h3_the_job_reads_how_late_many_events_were(spark: SparkSession, lake: Any, run: Any) -> None:
    land(lake, 1, many())
    run(work, properties(lake), **NO_EVENTS)
    [row] = settled(spark, lake)
    assert (row["count"], row.fire, row.lateness_p50_ms, row.lateness_ms) == (100, "demo.flights.batch.1.ab", 20, 900)
    assert row.lateness_counts == {"20": 90, "1000": 10}


def test_h3_every_field_of_a_history_line_is_a_column(spark: SparkSession, lake: Any, run: Any) -> None:
    record = Record("j1", "SKIPPED", "demo.flights.clean", 1, says("it was skipped"), NOON, created_at=NOON, count=2)
    found = (history_lines.line_of(row, Prices()) for row in (whole(), many(), record))
    answer = {name: content for line in found for name, content in line.items()}
    assert set(answer) == set(spark.createDataFrame([], LINE_SCHEMA).columns)

    land(lake, 1, whole())
    summary = run(work, properties(lake), **NO_EVENTS)
    assert summary["rejected"] == 0
    (row,) = settled(spark, lake)
    line = history_lines.line_of(whole(), Prices())
    assert {name for name in row.asDict() if row[name] is not None} == set(line), "none is lost by its type"
    assert (row.dag, row.dag_run, row.dag_round, row.node) == ("demo.flights.daily", "d1", 2, "join")
    assert (row.worker_pool, row.pool, row.units, row.outcome) == ("demo.images", "demo.cpus", 2, "timed_out")
    assert row.end_by.astimezone(UTC) == datetime(2026, 3, 2, 11, 59, 55, tzinfo=UTC)


def test_h3_lines_of_another_release_are_read_by_known_names(spark: SparkSession, lake: Any, run: Any) -> None:
    before = {"schema": 1, "kind": "run", "id": "old", "attempt": 1, "rev": 1, "sla_missed": True}
    after = {"schema": 9, "kind": "run", "id": "new", "attempt": 1, "rev": 1, "unheard_of": {"deep": [1]}}
    body = "".join(f"{json.dumps(line)}\n" for line in (before, after)).encode()
    lake.put_object(Bucket="lake", Key=f"history/day={DAY}/hour=03/x.json", Body=body)
    land(lake, 1, ended("r1"))
    summary = run(work, properties(lake), **NO_EVENTS)
    assert (summary["rejected"], [row.id for row in settled(spark, lake)]) == (0, ["new", "old", "r1"])


def test_h3_costs_known_later_replace_unknown_ones(spark: SparkSession, lake: Any, run: Any) -> None:
    first = ended("r1", rev=7)
    land(lake, 1, first)
    land(lake, 50, replace(first, rev=9, billed=(1_500, 6_000, 0)))
    run(work, properties(lake), **NO_EVENTS)
    (row,) = settled(spark, lake)
    assert (row.rev, row.vcpu_hours) == (9, 1.5)


def test_h3_of_simultaneous_deliveries_one_and_the_same_counts(spark: SparkSession) -> None:
    twins = [
        {"kind": "run", "id": "r1", "attempt": 1, "rev": 1, "claimed_at": NOON + at, "ended_at": NOON + at, "calls": at}
        for at in range(6)
    ]
    for order in (twins, twins[::-1], twins[3:] + twins[:3]):
        (row,) = transform(spark.createDataFrame(order, LINE_SCHEMA), 1).collect()
        assert row.calls == 5


def test_h3_a_repeated_run_and_a_duplicate_change_nothing(spark: SparkSession, lake: Any, run: Any) -> None:
    land(lake, 1, ended("r1"), ended("r2"))
    run(work, properties(lake), **NO_EVENTS)
    first = settled(spark, lake)
    land(lake, 50, ended("r2"))
    summary = run(work, properties(lake), **NO_EVENTS)

    assert settled(spark, lake) == first
    assert (summary["duplicates"], summary["replaced"]) == (1, 1)
    assert len(list(Path(lake.root(f"history_compact/day={DAY}")).iterdir())) == 1, "the version before is gone"


def test_h3_late_lines_are_added_to_their_day_only(spark: SparkSession, lake: Any, run: Any) -> None:
    yesterday = ended("r0", ended_at=NOON - core_instants.HOUR * 24)
    land(lake, 1, ended("r1"), yesterday)
    run(work, properties(lake, day="2026-03-01"), **NO_EVENTS)
    run(work, properties(lake), **NO_EVENTS)
    before = lake.files("history_compact/day=2026-03-01")
    land(lake, 9, ended("r2"))
    run(work, properties(lake), **NO_EVENTS)

    assert [row.id for row in settled(spark, lake)] == ["r1", "r2"]
    assert lake.files("history_compact/day=2026-03-01") == before


def test_h3_a_late_line_keeps_a_day_without_raw_lines(spark: SparkSession, lake: Any, run: Any) -> None:
    """A lifecycle rule has deleted the raw lines of the day, and not the compacted ones."""
    land(lake, 1, ended("r1", rev=3), ended("r2", nominal_at=NOON - 5_000), ended("r3"))
    run(work, properties(lake), **NO_EVENTS)
    first = {row.id: row for row in settled(spark, lake)}
    for path in Path(lake.root(f"history/day={DAY}")).rglob("*.gz"):
        path.unlink()
    land(lake, 50, ended("r1", rev=5, billed=(1_500, 6_000, 0)), ended("r4"))
    summary = run(work, properties(lake), **NO_EVENTS)

    found = {row.id: row for row in settled(spark, lake)}
    assert (found["r1"].rev, found["r1"].vcpu_hours) == (5, 1.5)
    assert sorted(found) == ["r1", "r2", "r3", "r4"]
    assert (found["r2"], found["r3"]) == (first["r2"], first["r3"])
    assert {name: summary[name] for name in ("rows_in", "kept", "duplicates", "rows_out")} == {
        "rows_in": 2, "kept": 2, "duplicates": 0, "rows_out": 4,
    }  # fmt: skip


def test_h3_an_incomplete_version_is_ignored_and_removed_next(spark: SparkSession, lake: Any, run: Any) -> None:
    land(lake, 1, ended("r1"))
    run(work, properties(lake), **NO_EVENTS)
    broken = Path(lake.root(f"history_compact/day={DAY}/as_of=20260303T000000.000Z"))
    broken.mkdir()
    (broken / "part-0.parquet").write_bytes(b"half")
    assert [row.id for row in settled(spark, lake)] == ["r1"]
    run(work, properties(lake), **NO_EVENTS)
    assert not broken.exists()
    assert [row.id for row in settled(spark, lake)] == ["r1"]


def test_h3_unreadable_lines_are_counted_and_affect_no_other(spark: SparkSession, lake: Any, run: Any) -> None:
    land(lake, 1, ended("r1"))
    lake.put_object(Bucket="lake", Key=f"history/day={DAY}/hour=03/torn.json", Body=b'{"kind": "run", "id": \n{}\n')
    summary = run(work, properties(lake), **NO_EVENTS)
    assert (summary["rows_in"], summary["rejected"], summary["rows_out"]) == (3, 2, 1)


def test_h3_a_day_without_history_is_compacted_as_empty(spark: SparkSession, lake: Any, run: Any) -> None:
    summary = run(work, properties(lake), **NO_EVENTS)
    assert (summary["rows_in"], summary["rows_out"]) == (0, 0)
    assert settled(spark, lake) == []


def test_h3_the_number_of_files_is_bounded() -> None:
    sizes = (0, 1, BYTES_A_FILE, BYTES_A_FILE + 1, 10**15)
    assert [files_for(size) for size in sizes] == [1, 1, 1, 2, MAX_FILES]


def test_h3_many_small_objects_become_one_file(spark: SparkSession, lake: Any, run: Any) -> None:
    for at in range(100):
        line = json.dumps({"kind": "run", "id": f"r{at}", "attempt": 1, "rev": 1}).encode()
        lake.put_object(Bucket="lake", Key=f"history/day={DAY}/hour=03/{at}.json.gz", Body=gzip.compress(line))
    summary = run(work, properties(lake), **NO_EVENTS)
    assert summary["rows_out"] == 100
    assert len(list(Path(summary["output"]).glob("*.parquet"))) == 1


def context(**changes: Any) -> RunContext:
    plain = {
        "schema": 1, "run_id": "r1", "attempt": 1, "schedule": "s", "workflow": "w", "logical_start_time": NOON,
        "properties": {}, "correlation": None, "events": [], "manifest": None, "upstream": None,
    }  # fmt: skip
    return RunContext.parse(plain | changes, lambda uri: "")


UPSTREAM = {
    "schema": 1, "run_id": "u", "attempt": 1, "schedule": "s", "workflow": "w", "logical_start_time": 0,
    "properties": {}, "correlation": {"day": "2026-02-20"}, "events": [], "manifest": None, "upstream": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "day"),
    [
        ({}, "2026-03-01"),
        ({"properties": {"day": "2026-01-05"}}, "2026-01-05"),
        ({"correlation": {"day": "2026-02-14"}}, "2026-02-14"),
        ({"upstream": UPSTREAM}, "2026-02-20"),
        ({"upstream": UPSTREAM | {"correlation": None}}, "1969-12-31"),
    ],
    ids=["the day before it began", "a property", "a late day", "its upstream's", "the day before its upstream began"],
)
def test_h3_a_run_reads_its_day_from_its_context(changes: dict[str, Any], day: str) -> None:
    assert str(day_of(context(**changes))) == day


@pytest.mark.parametrize("named", ["2026-02-30", "yesterday", ""])
def test_h3_an_invalid_day_is_refused_with_an_explanation(named: str) -> None:
    with pytest.raises(ContextError, match="expected a day such as 2026-11-21, got"):
        day_of(context(properties={"day": named}))


@pytest.mark.parametrize("job", ["history_compact", "history_days", "history_report"])
def test_h3_no_row_reaches_the_driver_or_python(job: str) -> None:
    tree = ast.parse((JOBS / f"{job}.py").read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    brought = {"collect", "toPandas", "toLocalIterator", "take", "head", "first", "rdd", "foreach", "foreachPartition"}
    written = {"udf", "pandas_udf", "mapInPandas", "mapInArrow", "applyInPandas"}
    assert used & (brought | written) == set()
