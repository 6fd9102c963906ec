"""The history's two jobs in DuckDB: they choose and count as the Spark jobs do, and a difference is found."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.history import duck
from benchmarks.page import page

NOON = 1_772_452_800_000


def line(number: int, rev: int = 5, **more: Any) -> dict[str, Any]:
    named = {"kind": "run", "id": f"r{number}", "attempt": 1, "rev": rev, "namespace": "demo", "schedule": "demo.a.s"}
    instants = {"claimed_at": NOON, "started_at": NOON + 1_000, "ended_at": NOON + 2_000 + number}
    measured = {"lateness_ms": number, "waited_ms": 1, "cost_usd": 0.5, "vcpu_hours": 1.0}
    return {**named, "workflow": "demo.a.w", "state": "SUCCEEDED", **instants, **measured, **more}


def compacted(folder: Path, lines: list[dict[str, Any]]) -> str:
    raw = folder / "raw" / "hour=12"
    raw.mkdir(parents=True)
    with gzip.open(raw / "one.json.gz", "wt") as file:
        file.writelines(json.dumps(each) + "\n" for each in lines)
    output = str(folder / "compact")
    duck.compact(str(folder / "raw"), output)
    return output


def rows(query: str) -> list[Any]:
    return list(duckdb.sql(query).fetchall())


def test_the_columns_are_those_of_the_lake() -> None:
    columns = duck.line_columns()
    assert (columns["attempt"], columns["ended_at"], columns["correlation"]) == (
        "INTEGER",
        "BIGINT",
        "MAP(VARCHAR, VARCHAR)",
    )
    assert set(duck.instant_columns()) < columns.keys()


def test_the_latest_revision_of_an_attempt_counts_once(tmp_path: Path) -> None:
    output = compacted(tmp_path, [line(1, rev=3, state="RUNNING"), line(1), line(1), line(2), {"schema": 2}])
    assert rows(f"SELECT id, rev, state FROM '{output}/*.parquet' ORDER BY id") == [
        ("r1", 5, "SUCCEEDED"),
        ("r2", 5, "SUCCEEDED"),
    ]
    assert rows(f"SELECT epoch_ms(ended_at) FROM '{output}/*.parquet' WHERE id = 'r1'") == [(NOON + 2_001,)]


def test_the_report_counts_a_record_for_its_workflow(tmp_path: Path) -> None:
    record = {"kind": "record", "id": "j1", "attempt": 0, "rev": 1, "namespace": "demo", "schedule": "demo.a.s"}
    lines = [line(1), line(2, state="FAILED", reason="why", attempt=2), {**record, "state": "SKIPPED", "count": 3}]
    target = str(tmp_path / "report.parquet")
    duck.report(compacted(tmp_path, lines), target)
    columns = "workflow, runs, retries, failed, not_run, last_failure, lateness_max_ms, duration_p50_ms, cost_usd"
    assert rows(f"SELECT {columns}, success_rate FROM '{target}'") == [
        ("demo.a.w", 2, 1, 1, 3, "why", 2, 1_001, 1.0, 0.5)
    ]


def test_equal_outputs_pass_and_a_different_row_is_found(tmp_path: Path) -> None:
    found = {}
    for name, state in (("one", "SUCCEEDED"), ("same", "SUCCEEDED"), ("other", "FAILED")):
        folder = tmp_path / name
        compact = compacted(folder, [line(number, state=state) for number in range(50)])
        report = folder / "report"
        report.mkdir()
        duck.report(compact, str(report / "part.parquet"))
        found[name] = {"compact": compact, "report": str(report)}
    duck.compared(found["one"], found["same"])
    with pytest.raises(RuntimeError, match="equal compactions"):
        duck.compared(found["one"], found["other"])
    with pytest.raises(RuntimeError, match="differences in .*succeeded"):
        duck.compared({**found["one"], "report": found["other"]["report"]}, found["same"])


def test_the_page_compares_the_sizes_and_their_growth() -> None:
    def size(rows: int, ours: float, theirs: float) -> dict[str, Any]:
        def step(s: float) -> dict[str, float]:
            return {"seconds": s, "cpu_seconds": s, "peak_mb": 100, "rows_per_second": 1}

        steps = {name: step(ours) for name in ("generate", "compact", "report")}
        return {"rows": rows, **steps, "duckdb": {"compact": step(theirs), "report": step(theirs)}}

    text = page("<!-- history_duckdb -->\n<!-- end -->", {"history": {"sizes": [size(2, 30, 5), size(20, 48, 15)]}})
    assert "| 2 | compact | 6.0 | 6.0 | 1.0 | no |" in text
    assert "| growth alone | compact | 1.8 | 1.8 |  | yes |" in text
