"""The two jobs on Sluice's own history with large inputs: `make bench ONLY=history`.

The benchmark generates a day of 2 million lines and one of 20 million (``SLUICE_HISTORY_ROWS=2000000`` for one alone).
Spark compacts and reports them on all cores of this machine, started as by `spark-submit`. DuckDB does the
same once more (`duck.py`), and both outputs are compared. The figures are rows per second, the peak memory of the
process, the output, and their growth with the size. From these and the cost of a run,
`benchmarks/history/capacity.py` computes the resources for a day of a million jobs (W11)."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.history.submit import Submitted, submit
from benchmarks.measurement import Results
from benchmarks.progress import Progress

ROWS = "2000000,20000000"
DAY = "2026-03-02"
STEPS = ("generate", "compact", "report")


def measure(progress: Progress) -> Results:
    """The entry ``history``: ``sizes``, and their ``growth`` from the first to the last."""
    sizes = [int(rows) for rows in os.environ.get("SLUICE_HISTORY_ROWS", ROWS).split(",")]
    sizes_found: list[dict[str, Any]] = []
    took_s = 0.0
    for rows in progress.each(sizes, lambda rows: f"{rows:,} rows"):
        if took_s:  # it grows with the rows
            progress.takes(took_s * rows / sizes[0])
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="sluice-history-") as folder:
            sizes_found.append(_size(Path(folder), rows, progress))
        took_s = took_s or time.monotonic() - begun
    return {"history": {"sizes": sizes_found, "growth": _growth(sizes_found)}}


def _size(folder: Path, rows: int, say: Progress) -> dict[str, Any]:
    # Imported here, because `python -m benchmarks.history.duck` imports this package first.
    from benchmarks.history import duck

    roots = {name: f"{folder}/lake/{name}/" for name in ("history", "history_compact", "history_report")}
    say("generate")
    made = submit(folder, "generate", {"rows": str(rows), "output": roots["history"], "day": DAY})
    say("compact")
    given = {"history": roots["history"], "output": roots["history_compact"], "day": DAY}
    compact = submit(folder, "history_compact", given)
    say("report")
    report = submit(
        folder, "history_report", {"compact": roots["history_compact"], "output": roots["history_report"], "day": DAY}
    )
    if (
        compact.summary["rows_out"] != made.summary["rows_out"]
        or report.summary["attempts"] != made.summary["rows_out"]
    ):
        raise RuntimeError(
            f"expected {made.summary['rows_out']} rows in and out, got {compact.summary}, {report.summary}"
        )
    say("DuckDB")
    theirs = {"compact": f"{folder}/duck/compact", "report": f"{folder}/duck/report.parquet"}
    by_duck = {
        "compact": duck.play("compact", f"{roots['history']}day={DAY}", theirs["compact"]),
        "report": duck.play("report", theirs["compact"], theirs["report"]),
    }
    duck.compared({"compact": compact.summary["output"], "report": report.summary["output"]}, theirs)
    return {
        "rows": made.summary["rows_out"],
        "lines": made.summary["lines"],
        "objects": made.summary["objects"],
        "raw_mb": _megabytes(folder / "lake/history"),
        "parquet_mb": _megabytes(folder / "lake/history_compact"),
        "files": len(list((folder / "lake/history_compact").rglob("*.parquet"))),
        "report_rows": report.summary["rows_out"],
        "generate": _step(made, rows),
        "compact": _step(compact, rows),
        "report": _step(report, rows),
        "duckdb": {step: _step(done, rows) for step, done in by_duck.items()},
    }


def _step(done: Submitted, rows: int) -> dict[str, float]:
    seconds = float(done.summary["seconds"])
    return {
        "seconds": seconds,
        "rows_per_second": round(rows / seconds),
        "peak_mb": round(done.peak_bytes / 1e6),
        "cpu_seconds": round(done.cpu_seconds, 1),
    }


def _growth(sizes: list[dict[str, Any]]) -> dict[str, Any]:
    """The growth from the first size to the last: factors of rows, seconds and memory."""
    first, last = sizes[0], sizes[-1]
    grown = {"rows": round(last["rows"] / first["rows"], 2)}
    for step in ("compact", "report"):
        for name in ("seconds", "peak_mb", "cpu_seconds"):
            grown[f"{step}_{name}"] = round(last[step][name] / first[step][name], 2)
    return grown


def _megabytes(folder: Path) -> float:
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)


def tables(results: Results) -> list[Table]:
    found = results["history"]
    table = Table(title="Sluice's own history, one day, local Spark", title_justify="left")
    for heading in ("rows", "step", "s", "rows a second", "CPU s", "peak MB", "out MB", "files"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for size in found["sizes"]:
        out = {"generate": (size["raw_mb"], size["objects"]), "compact": (size["parquet_mb"], size["files"])}
        for step in STEPS:
            one = size[step]
            figures = (one["seconds"], f"{one['rows_per_second']:,}", one["cpu_seconds"], one["peak_mb"])
            table.add_row(f"{size['rows']:,}", step, *(str(figure) for figure in (*figures, *out.get(step, ("", "")))))
        for step, one in size.get("duckdb", {}).items():
            figures = (one["seconds"], f"{one['rows_per_second']:,}", one["cpu_seconds"], one["peak_mb"])
            table.add_row(f"{size['rows']:,}", f"{step} in DuckDB", *(str(figure) for figure in figures))
    return [table]
