"""frames: how smoothly the views of the web console draw 10,000 schedules, 5,000 waiting jobs and 100,000 bars.

The views are opened in Chromium, each by a new browser context, on the stand-in of the page's own tests. So the figures
are those of the page alone. Of each view: the first rows and the longest task. Of those with many rows or bars also the
frames, from the first rows on. They are measured while the rest comes, and while the view scrolls for four seconds.

The budgets are part of the measurement: it fails when a figure exceeds one."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from rich.table import Table

from benchmarks.console.browse import DRIVER, NODE, PATIENCE_S, require_page
from benchmarks.measurement import Results
from benchmarks.progress import Progress

MEASURE = DRIVER.with_name("measure.ts")
SIZE = {"schedules": 10_000, "runs": 100_000, "jobs": 5_000}
FIGURES = {
    "firstRowsMs": "first_rows_ms",
    "longestTaskMs": "longest_task_ms",
    "frameP95Ms": "frame_p95_ms",
    "frameGapMs": "frame_gap_ms",
}


def measure(progress: Progress) -> Results:
    require_page()
    progress("opening views")
    sizes = {f"STUB_{name.upper()}": str(many) for name, many in SIZE.items()}
    done = subprocess.run(
        [str(NODE / "node"), str(MEASURE)],
        capture_output=True,
        text=True,
        cwd=DRIVER.parents[2],
        env=os.environ | sizes,
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"expected the figures of the views, got:\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout)
    return {"frames": {**SIZE, "first_load_kb": round(found["firstLoadBytes"] / 1_000, 1), "views": views(found)}}


def views(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The figures of each view, with their budgets; those of frames are missing where nothing scrolls."""
    return [
        {
            "view": one["view"],
            **{name: one[key] for key, name in FIGURES.items() if key in one},
            "budgets": {FIGURES[key]: most for key, most in one["bounds"].items() if key in one},
        }
        for one in found["views"]
    ]


def tables(results: Results) -> list[Table]:
    found = results["frames"]
    table = Table("view", *(name.replace("_", " ") for name in FIGURES.values()), title="frames", title_justify="left")
    for view in found["views"]:
        table.add_row(view["view"], *(str(view.get(name, "")) for name in FIGURES.values()))
    return [table]


def over_budget(results: Results) -> list[str]:
    """The figures that exceed their budgets, in words."""
    return [
        f"{view['view']}: expected {name.replace('_', ' ')} of at most {most:,}, got {view[name]:,}"
        for view in results["frames"]["views"]
        for name, most in view["budgets"].items()
        if view[name] > most
    ]
