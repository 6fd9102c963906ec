"""console: how soon each view of the web console shows its first rows, and what it reads for that. The tables hold
10,000 schedules, 100,000 runs and 5,000 waiting jobs.

The views are opened in Chromium, each time by a new browser context, on `sluice console` and the API of a local cloud.
Then the requests of each view are sent once more, to the API in this process on the same tables. Its client counts the
calls and the read units. The tick is off, so nothing changes meanwhile.

The budgets are part of the measurement: it fails when the first rows of a view take longer."""

from __future__ import annotations

import os
from statistics import median
from typing import Any

from rich.table import Table

from benchmarks.cloud import own_cloud
from benchmarks.console import browse, fill
from benchmarks.console.metered import Metered
from benchmarks.console.views import View, views
from benchmarks.console.world import Size
from benchmarks.measurement import Results
from benchmarks.progress import Progress

TIMES = int(os.environ.get("SLUICE_BENCH_TIMES", "3"))
SCHEDULES = int(os.environ.get("SLUICE_BENCH_SCHEDULES", "10000"))
TASK_MS = 150  # the longest that a task may keep the page from answering
FIGURES = ("view", "first_rows_ms", "whole_ms", "longest_task_ms", "requests", "table_calls", "read_units", "kb")


def measure(progress: Progress) -> Results:
    browse.require_page()
    progress("starting a cloud")
    with own_cloud() as cloud:
        size = size_of(SCHEDULES)
        run_id, items = fill.fill(cloud, size, progress)
        every = views(run_id)
        metered, found, page_bytes = Metered(cloud), [], 0
        with browse.console(cloud) as address:
            progress("warming up")
            browse.warm_up(address, every[:2])
            for view in progress.each(every, lambda view: f"view {view.name}"):
                opened = browse.opened(address, [view], TIMES)
                # At once: a span that ends soon after now would be refused later.
                found.append(figures(view, opened, metered))
                page_bytes = max(page_bytes, *(one["bytesOfPage"] for one in opened))
    stored = {"schedules": size.schedules, "runs": size.runs, "waiting": size.waiting, "items": items, "times": TIMES}
    return {"console": {**stored, "page_kb": _kb(page_bytes), "views": found}}


def size_of(schedules: int) -> Size:
    """The usual size, or one with fewer schedules and proportionally less of all else."""
    whole = Size()
    if schedules >= whole.schedules:
        return whole
    scaled = {
        name: max(12, getattr(whole, name) * schedules // whole.schedules)
        for name in ("gathering", "windows", "approvals", "queued", "running", "letters", "partitions")
    }
    return Size(schedules=schedules, **scaled)


def figures(view: View, opened: list[dict[str, Any]], metered: Metered) -> dict[str, Any]:
    """The figures of a view: medians of the times, and the counts of the requests of the first opening."""
    requests = opened[0]["requests"]
    failed = [f"{one['method']} {one['path']}: {one['status']}" for one in requests if one["status"] >= 400]
    if failed:
        raise RuntimeError(f"expected answers for {view.name}, got {', '.join(failed)}")
    read = [metered.ask(one["method"], one["path"], one["body"]) for one in requests]
    return {
        "view": view.name,
        "first_rows_ms": round(median(one["first"] for one in opened)),
        "whole_ms": round(median(one["whole"] for one in opened)),
        "longest_task_ms": round(median(one["longest"] for one in opened)),
        "requests": len(requests),
        "table_calls": sum(one.calls for one in read),
        "read_units": round(sum(one.units for one in read), 1),
        "kb": _kb(sum(one["bytes"] for one in requests)),
        "budget_ms": view.budget_ms,
    }


def tables(results: Results) -> list[Table]:
    one = results["console"]
    title = f"console: {one['schedules']:,} schedules, {one['runs']:,} runs, {one['waiting']:,} waiting jobs"
    table = Table(*(name.replace("_", " ") for name in FIGURES), title=title, title_justify="left")
    for view in one["views"]:
        table.add_row(*(f"{view[name]:,}" if name != "view" else view[name] for name in FIGURES))
    return [table]


def over_budget(results: Results) -> list[str]:
    """The views whose first rows take too long, and those with a task that keeps the page too long, in words."""
    views = results["console"]["views"]
    late = [
        f"{view['view']}: expected its first rows within {view['budget_ms']:,.0f} ms, got {view['first_rows_ms']:,}"
        for view in views
        if view["first_rows_ms"] > view["budget_ms"]
    ]
    long = [
        f"{view['view']}: expected no task beyond {TASK_MS} ms, got {view['longest_task_ms']}"
        for view in views
        if view["longest_task_ms"] > TASK_MS
    ]
    return late + long


def _kb(size: int) -> float:
    return round(size / 1_000, 1)
