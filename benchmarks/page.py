"""The tables of docs/performance.md and of its lab book, from the results:  python -m benchmarks.page

Each table is between `<!-- name -->` and `<!-- end -->`; a missing measurement is named as missing. A test compares the
pages with `results.json`, so that neither changes without the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from benchmarks import aims, memory, peers, results, sustained
from benchmarks.cost import lone
from benchmarks.history.capacity import model
from benchmarks.machine import ROOT
from benchmarks.peers.play import PEERS

PAGE = ROOT / "docs" / "performance.md"
LAB_BOOK = ROOT / "docs" / "internals" / "measurements.md"
NOT_YET = "Not measured yet."
Row = Iterable[object]


def page(
    text: str, found: Mapping[str, Any], tables: Mapping[str, Callable[[Mapping[str, Any]], str]] | None = None
) -> str:  # fmt: skip
    """The page with its tables filled from the results."""
    known = TABLES if tables is None else tables

    def filled(match: re.Match[str]) -> str:
        name = match[1]
        table = known[name](found) if name in known else NOT_YET
        return f"<!-- {name} -->\n{table}\n<!-- end -->"

    return re.sub(r"<!-- (\w+) -->\n.*?\n?<!-- end -->", filled, text, flags=re.DOTALL)


def _loads(*names: str) -> Callable[[Mapping[str, Any]], str]:
    """Lateness and pace; names without a measurement are left out."""

    def table(found: Mapping[str, Any]) -> str:
        rows = [_load(name, found[name], found["origins"][name]) for name in names if name in found]
        heads = ("what", "jobs", "seconds", "a second", "p50 ms", "p99 ms", "max ms", "missed", "doubled", "load")
        return markdown(heads, rows)

    return table


def _load(name: str, one: Mapping[str, Any], origin: Mapping[str, Any]) -> Row:
    late = [f"{one['lateness_ms'][share]:,.0f}" for share in ("p50", "p99", "max")]
    load = f"{origin['load']} to {origin['load_after']}"
    return (name, f"{one['jobs']:,}", one["seconds"], one["per_second"], *late, one["missed"], one["doubled"], load)


def _slow(found: Mapping[str, Any]) -> str:
    """A row for each run: what it did, and what it used before the instant and after it."""
    heads = (
        *("CPU", "seconds", "a second", "p50 ms", "p99 ms", "missed", "doubled"),
        *("CPU before, s", "CPU after, s", "calls before", "calls after"),
    )
    rows: list[Row] = []
    for run in found.get("slow", {"runs": ()})["runs"]:
        late = [f"{run['lateness_ms'][share]:,.0f}" for share in ("p50", "p99")]
        used = [round(sum(run[name].values()), 1) for name in ("cpu_before_s", "cpu_after_s")]
        calls = [f"{sum(run[name].values()):,}" for name in ("calls_before", "calls_after")]
        share = f"{run['share']:.0%}"
        rows.append((share, run["seconds"], run["per_second"], *late, run["missed"], run["doubled"], *used, *calls))
    return markdown(heads, rows)


def _killed(found: Mapping[str, Any]) -> str:
    names = ("killed", "sent_before", "next_s", "last_s", "last_after_tick_s", "missed", "doubled")
    heads = ("killed", "sent before", "next after, s", "last after, s", "after the tick, s", "missed", "doubled")
    return markdown(heads, [_picked(one, names) for one in found.get("killed", {"runs": ()})["runs"]])


def _registration(found: Mapping[str, Any]) -> str:
    names = ("schedules", "seconds", "per_second", "requests", "unchanged_seconds")
    heads = ("schedules", "s", "schedules a second", "requests", "again, unchanged, s")
    return markdown(heads, [_picked(found["registration"], names)] if "registration" in found else [])


def _emitters(found: Mapping[str, Any]) -> str:
    names = ("emitters", "registrations_per_second", "fires_per_second", "fires", "missed", "doubled")
    heads = ("emitters", "registrations a second", "fires prepared a second", "fires", "missed", "doubled")
    return markdown(heads, [_picked(one, names) for one in found.get("emitters", ())])


def _tick(found: Mapping[str, Any]) -> str:
    names = ("calls", "read_units", "write_units", "cpu_ms")
    tick = found.get("tick", {"sizes": (), "growth": {}})
    rows: list[Row] = [(f"{one['schedules']:,}", *_picked(one, names)) for one in tick["sizes"]]
    if rows:
        rows.append(("growth, first to last", *_picked(tick["growth"], names)))
    return markdown(("schedules", "calls", "read units", "write units", "CPU ms"), rows)


def _cpu(found: Mapping[str, Any]) -> str:
    cases = found.get("cpu", {"cases": {}})["cases"]
    rows = [(name, *one["steps"].values(), one["sum"], f"{max(one['runs']):.3f}") for name, one in cases.items()]
    rounded = [[f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in rows]
    return markdown(("ms for a message", "emit", "prepare", "send", "record", "other", "sum", "slowest run"), rounded)


def _cost(found: Mapping[str, Any]) -> str:
    entries = [*found.get("cost", ()), *([found["cost_idle_tick"]] if "cost_idle_tick" in found else [])]
    names = ("write_units", "write_units_of_indexes", "read_units", "lambda_gb_s", "lambda_waited_s")
    rows: list[Row] = [(name.replace("_", " "), *(one[name] for one in entries)) for name in names]
    parts = entries[0]["usd_per_million_by"] if entries else ()
    rows += [(f"$ {part.replace('_', ' ')}", *(one["usd_per_million_by"][part] for one in entries)) for part in parts]
    rows.append(("**$ per million**", *(f"**{one['usd_per_million']}**" for one in entries)))
    heads = ("per launched run", *(one["path"] for one in entries))
    return markdown(heads, rows if entries else [])


def _lone_fire(found: Mapping[str, Any]) -> str:
    one = next((entry for entry in found.get("cost", ()) if entry["path"] == lone.PATH), None)
    if one is None:
        return NOT_YET
    rows: list[Row] = []
    for what, table, index, read, usd, why in lone.parts(one):
        rows.append((what, f"{table:g} + {index:g}" if table else "", f"{read:g}" if read else "", f"{usd:.3f}", why))
    rows.append(("**all**", one["write_units"], one["read_units"], f"**{one['usd_per_million']}**", ""))
    return markdown(("part", "write units, + of indexes", "read units", "$ per million", "needed for"), rows)


def _cold_start(found: Mapping[str, Any]) -> str:
    names = ("handler", "handler_ms", "handler_cpu_ms", "boto3_ms", "boto3_cpu_ms", "ratio", "cpu_ratio")
    heads = ("Lambda", "wall ms", "user CPU ms", "boto3 wall", "boto3 CPU", "ratio", "CPU ratio")
    return markdown(heads, [_picked(one, names) for one in found.get("cold_start", ())])


def _startup(found: Mapping[str, Any]) -> str:
    rows = [_picked(one, ("command", "wall_ms", "own_ms")) for one in found.get("startup", ())]
    return markdown(("command", "wall ms", "own CPU ms"), rows)


def _app_tests(found: Mapping[str, Any]) -> str:
    rows = [_picked(one, ("test", "cpu_ms")) for one in found.get("app_tests", ())]
    return markdown(("test", "CPU ms"), rows)


def _console(found: Mapping[str, Any]) -> str:
    names = ("view", "first_rows_ms", "budget_ms", "whole_ms", "longest_task_ms")
    counted = ("requests", "table_calls", "read_units", "kb")
    if "console" not in found:
        return NOT_YET
    measured, load = found["console"], found["origins"]["console"]
    size = f"{measured['schedules']:,} schedules, {measured['runs']:,} runs and {measured['waiting']:,} waiting jobs"
    about = (
        f"{size}, on {load['date'][:10]}; openings of each view: {measured['times']}; load {load['load']} before, "
        f"{load['load_after']} after. The page itself loads {measured['page_kb']} kB."
    )
    rows = [_picked(one, (*names, *counted)) for one in measured["views"]]
    heads = ("view", "first rows, ms", "at most", "whole, ms", "longest task, ms")
    table = markdown((*heads, "API requests", "table calls", "read units", "kB"), rows)
    return f"{about}\n\n{table}"


def _matrix(found: Mapping[str, Any]) -> str:
    if "matrix" not in found:
        return NOT_YET
    measured, load = found["matrix"], found["origins"]["matrix"]
    about = (
        f"{measured['schedules']} schedules, {measured['days']} days and {measured['runs']:,} runs, on "
        f"{load['date'][:10]}; load {load['load']} before, {load['load_after']} after."
    )
    names = {"before": "from the runs alone", "rows": "from the rows and the runs of a week"}
    heads = ("matrix", "requests", "table calls", "read units", "ms in all")
    figures = ("requests", "calls", "read_units", "ms")
    rows = [(text, *_picked(measured[name], figures)) for name, text in names.items()]
    return f"{about}\n\n{markdown(heads, rows)}"


def _frames(found: Mapping[str, Any]) -> str:
    if "frames" not in found:
        return NOT_YET
    measured, load = found["frames"], found["origins"]["frames"]
    about = (
        f"{measured['schedules']:,} schedules, {measured['runs']:,} bars and {measured['jobs']:,} waiting jobs, on "
        f"{load['date'][:10]}; load {load['load']} before, {load['load_after']} after. The first load with the list of "
        f"schedules: {measured['first_load_kb']} kB."
    )
    names = ("first_rows_ms", "longest_task_ms", "frame_p95_ms", "frame_gap_ms")
    rows = [(one["view"], *(one.get(name, "") for name in names)) for one in measured["views"]]
    heads = ("view", "first rows, ms", "longest task, ms", "p95 of frames, ms", "longest gap, ms")
    return f"{about}\n\n{markdown(heads, rows)}"


def _history(found: Mapping[str, Any]) -> str:
    rows: list[Row] = []
    for size in found.get("history", {"sizes": ()})["sizes"]:
        out = {"generate": (size["raw_mb"], size["objects"]), "compact": (size["parquet_mb"], size["files"])}
        for step in ("generate", "compact", "report"):
            one = size[step]
            figures = (one["seconds"], f"{one['rows_per_second']:,}", one["cpu_seconds"], one["peak_mb"])
            rows.append((f"{size['rows']:,}", step, *figures, *out.get(step, ("", ""))))
        for step, one in size.get("duckdb", {}).items():
            figures = (one["seconds"], f"{one['rows_per_second']:,}", one["cpu_seconds"], one["peak_mb"])
            rows.append((f"{size['rows']:,}", f"{step}, DuckDB", *figures, "", ""))
    return markdown(("rows", "step", "s", "rows a second", "CPU s", "peak MB", "MB out", "files"), rows)


def _beside_duckdb(found: Mapping[str, Any]) -> str:
    """Spark's time and CPU as multiples of DuckDB's, also without what both spend at any size: the growth from the
    first size to the last."""
    rows: list[Row] = []
    sizes = [size for size in found.get("history", {"sizes": ()})["sizes"] if "duckdb" in size]
    for size in sizes:
        for step, theirs in size["duckdb"].items():
            times = [round(size[step][name] / theirs[name], 1) for name in ("seconds", "cpu_seconds", "peak_mb")]
            rows.append((f"{size['rows']:,}", step, *times, "yes" if times[0] <= 2 else "no"))
    if len(sizes) > 1:
        first, last = sizes[0], sizes[-1]
        for step in last["duckdb"]:
            names = ("seconds", "cpu_seconds")
            ours = [last[step][name] - first[step][name] for name in names]
            theirs = [last["duckdb"][step][name] - first["duckdb"][step][name] for name in names]
            times = [round(one / other, 1) if other > 0 else 0.0 for one, other in zip(ours, theirs, strict=True)]
            rows.append(("growth alone", step, *times, "", "yes" if times[0] <= 2 else "no"))
    return markdown(("rows", "step", "time", "CPU", "peak MB", "within twice the time"), rows)


def _peers(load: str) -> Callable[[Mapping[str, Any]], str]:
    """The figures of Sluice and the peers under one load."""

    def table(found: Mapping[str, Any]) -> str:
        key = f"peers_{load}"
        if key not in found:
            return NOT_YET
        measured, origin = found[key], found["origins"][key]
        ratio = "p99 to ours" if load == "steady" else "pace to ours"
        counts = ("missed", "doubled", "early")
        heads = ("scheduler", "a second", "least to most", ratio, *_LATE, *counts)
        jobs = measured["schedulers"][0]["jobs"]
        of = f"Medians of {measured['repetitions']} on {origin['date'][:10]}, {jobs:,} jobs"
        loads = f"load of the machine {min(measured['loads'])} to {max(measured['loads'])}"
        about = f"{of}; {loads}; left out: {_left_out(measured)}."
        ours = measured["schedulers"][0]
        each = [f"{pace:,.0f} ({cpu} s)" for pace, cpu in zip(ours["runs"], ours.get("cpu_s", ()), strict=False)]
        runs = f"\n\nEach run of Sluice, with the CPU time of the machine: {', '.join(each)}." if each else ""
        return f"{about}\n\n{markdown(heads, map(peers.row_of, measured['schedulers']))}{runs}"

    return table


def _peers_cpu(found: Mapping[str, Any]) -> str:
    """The CPU time of each scheduler for a message; loads without a measurement are left out."""
    rows: list[Row] = [
        (title, *peers.cpu_row(one))
        for load, title in peers.TITLES.items()
        for one in found.get(f"peers_{load}", {"schedulers": ()})["schedulers"]
        if one.get("message_cpu_ms")
    ]
    return markdown(("load", *peers.CPU_HEADS), rows)


def _sustained(found: Mapping[str, Any]) -> str:
    """A row for each scheduler, with the day and the load of the machine before its first probe."""
    measured: Mapping[str, Any] = found.get("sustained", {"schedulers": (), "left_out": {}})
    rows = [(*sustained.row_of(one), one["date"][:10], one["load"]) for one in measured["schedulers"]]
    table = markdown((*sustained.HEADS, "on", "load"), rows)
    return f"{table}\n\nLeft out: {_left_out(measured)}." if rows else table


def _left_out(measured: Mapping[str, Any]) -> str:
    """The peers whose programs are missing."""
    return ", ".join(f"{name} (no `{program}`)" for name, program in measured["left_out"].items()) or "none"


def _promises(found: Mapping[str, Any]) -> str:
    return markdown(("scheduler", "does not promise"), [(peer.name, peer.lacks) for peer in PEERS])


def _capacity(found: Mapping[str, Any]) -> str:
    return markdown(("a day of a million jobs", "", "from"), [(one.what, one.figure, one.how) for one in model(found)])


def _picked(one: Mapping[str, Any], names: Iterable[str]) -> Row:
    return [one[name] for name in names]


def markdown(heads: Iterable[object], rows: Iterable[Row]) -> str:
    """A table in Markdown; `NOT_YET` without rows."""
    lines = [[str(cell) for cell in row] for row in (heads, *rows)]
    if len(lines) == 1:
        return NOT_YET
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |".replace("| --- |", "|---|").replace(" --- |", "---|") for line in lines)


def _memory(found: Mapping[str, Any]) -> str:
    return "\n".join(memory.of_results(found)) if "aws_model" in found else NOT_YET


def _predicted(group: str, heads: Iterable[str], row: Callable[[Mapping[str, Any]], Row]) -> Callable[..., str]:
    """A table of one group of the model's predictions: each scenario by what is assumed of AWS."""

    def table(found: Mapping[str, Any]) -> str:
        rows = [(*row(one), name) for name, one in results.predictions(found, group)]
        return markdown((*heads, "assumed"), rows)

    return table


def _load_predicted(one: Mapping[str, Any]) -> Row:
    late = [f"{one['lateness_ms'][share]:,.0f}" for share in ("p50", "p99", "max")]
    throttled = f"{sum(one['throttled'].values()):,}"
    return (
        one["about"],
        f"{one['jobs']:,}",
        one["seconds"],
        f"{one['per_second']:,}",
        *late,
        one["tick_seconds"],
        throttled,
        one["check_at_once"],
        one["burst_at_once"],
        one["lambda_usd_per_million"],
    )


def _lone_predicted(one: Mapping[str, Any]) -> Row:
    return (one["about"], one["fires"], *(one["lateness_ms"][share] for share in ("p50", "p99", "max")))


def _event_predicted(one: Mapping[str, Any]) -> Row:
    whole = [f"{one['put_to_start_ms'][share]:,.0f}" for share in ("p50", "p99", "max")]
    ours = [f"{one['notified_to_start_ms'][share]:,.0f}" for share in ("p50", "p99", "max")]
    return (one["repetitions"], *whole, *ours)


def _pace_predicted(one: Mapping[str, Any]) -> Row:
    paces = (f"{one[name]:g}" for name in ("allowed_per_second", "reached_per_second", "share_in_backlog"))
    return (one["about"], f"{one['jobs']:,}", one["schedules"], *paces)


def _registered_predicted(one: Mapping[str, Any]) -> Row:
    return (f"{one['schedules']:,}", *_picked(one, ("seconds", "per_second", "requests", "unchanged_seconds")))


def _puts_predicted(one: Mapping[str, Any]) -> Row:
    late = one["put_ms"]
    return (
        one["clients"],
        f"{one['puts']:,}",
        one["per_second"],
        *(f"{late[name]:,}" for name in ("p50", "p99", "max")),
    )


def _emission_predicted(found: Mapping[str, Any]) -> str:
    rows = [
        (
            f"{one['timers']:,}",
            one["emitters"],
            one["seconds"],
            f"{one['per_second']:,}",
            f"{share_of_linear(one, found[results.PREDICTIONS[name]]['emission']):.2f}",
            f"{sum(one['throttled'].values()):,}",
            name,
        )
        for name, one in results.predictions(found, "emission")
    ]
    heads = ("timers", "emitters", "s", "timers a second", "share of linear", "throttled", "assumed")
    return markdown(heads, rows)


def share_of_linear(one: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> float:
    """The rate of some emitters by that of the same number of single ones."""
    alone = next(entry["per_second"] for entry in entries if entry["emitters"] == 1)
    return float(one["per_second"] / (one["emitters"] * alone))


def _overdue_predicted(one: Mapping[str, Any]) -> Row:
    counts = [f"{one[name]:,}" for name in ("overdue", "timers")]
    return (*counts, *_picked(one, ("ticks", "seconds", "longest_tick_s", "died")))


def _waking_predicted(one: Mapping[str, Any]) -> Row:
    figures = _picked(one, ("seconds", "per_second", "longest_check_s", "died"))
    return (one["cause"], f"{one['jobs']:,}", *figures)


def _upload_predicted(one: Mapping[str, Any]) -> Row:
    return (f"{one['schedules']:,}", *_picked(one, ("answered_s", "seconds", "per_second", "slices")))


def _assumed_calls(found: Mapping[str, Any]) -> str:
    calls: Mapping[str, Mapping[str, float]] = found.get("aws_model", {}).get("assumed", {}).get("calls", {})
    names = ("ms", "ms_per_item", "cpu_ms", "cpu_ms_per_item")
    heads = ("call", "ms, median", "ms for each item", "caller's CPU, ms", "CPU for each item, ms")
    return markdown(heads, [(name, *(f"{call[part]:g}" for part in names)) for name, call in calls.items()])


def _played(found: Mapping[str, Any]) -> str:
    rows = [
        (group, name, one["commit"][:8], one["date"][:10], "")
        for name, key in results.PREDICTIONS.items()
        for group, one in found.get(key, {}).get("played", {}).items()
    ]
    waiting = [(f"{group}: {about}", name, "", "", why) for (name, group, about), why in aims.NOT_PLAYED.items()]
    return markdown(("scenarios", "assumed", "commit", "on", "not played yet"), [*rows, *waiting] if rows else [])


def _assumed(found: Mapping[str, Any]) -> str:
    each = [found.get(key, {}).get("assumed", {}) for key in results.PREDICTIONS.values()]
    names = [name for name, value in each[0].items() if not isinstance(value, dict)]
    values = [(f"`{name}`", *(f"{one[name]:g}" if name in one else "" for one in each)) for name in names]
    return markdown(("assumption", *results.PREDICTIONS), values)


def _expected(found: Mapping[str, Any]) -> str:
    """What a user may expect, with the usual assumptions of the model and with the pessimistic ones."""
    models = [found.get(key, {}) for key in results.PREDICTIONS.values()]
    rows = [(what, *(_of(model, *where) for model in models)) for what, *where in EXPECTED]
    return markdown(("", *results.PREDICTIONS), rows if models[0] else [])


def _of(model: Mapping[str, Any], group: str, about: str, names: str, unit: str) -> str:
    """A figure of the entry of a group about this; empty if the model has not played it."""
    for entry in model.get(group, ()):
        if entry["about"] == about:
            return f"{reduce(lambda value, name: value[name], names.split(), entry):,} {unit}"
    return ""


def _dollars(found: Mapping[str, Any]) -> str:
    rows = [(PATHS[one["path"]], one["usd_per_million"]) for one in found.get("cost", ()) if one["path"] in PATHS]
    return markdown(("a run of", "$ per million"), rows)


OBJECT = "object to StartJobRun"
# What users ask first: the question, and the group, the entry, the figure and its unit in the model's results.
EXPECTED = (
    ("a fire, when nothing else happens, is late: median", "lone", "one a minute", "lateness_ms p50", "ms"),
    ("the same: p99", "lone", "one a minute", "lateness_ms p99", "ms"),
    ("12 fires a second (a million a day) are late: p99", "steady", "12 a second", "lateness_ms p99", "ms"),
    ("from S3's notification to EMR's start: median", "event", OBJECT, "notified_to_start_ms p50", "ms"),
    ("the same, with S3's own delay", "event", OBJECT, "put_to_start_ms p50", "ms"),
    ("10,000 jobs due at one instant: all are out after", "burst", "10,000 schedules", "seconds", "s"),
    ("a policy of 100 starts in 1 s reaches, in a backlog", "policies", "100 in 1 s", "share_in_backlog", "of it"),
    ("a resume wakes 1,000 jobs: all are out after", "waking", "resume of 1,000", "seconds", "s"),
    ("an app with 1,000 schedules is deployed after", "registration", "1,000 in one PUT", "seconds", "s"),
    ("an app with 10,000 schedules, uploaded, is deployed after", "upload", "10,000 uploaded", "seconds", "s"),
)
PATHS: Mapping[str, str] = {
    "cron_to_sqs": "a schedule with a time that sends a message",
    "batch_to_sqs": "a fire that sends 100 messages: each of them",
    "cron_to_emr": "a schedule with a time that starts a job of EMR Serverless",
    "partition_to_emr": "a schedule that starts it when a day of data is ready (three objects)",
    "join_to_emr": "a schedule that starts it when two datasets have the same day",
}
_LATE = ("p50 ms", "p99 ms", "max ms")
_AT_ONCE = ("`check` at once", "`burst` at once", "$ of Lambda per million")
_LOADS = ("what", "jobs", "seconds", "a second", *_LATE, "s of ticks", "throttled", *_AT_ONCE)


TABLES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "expected": _expected,
    "dollars": _dollars,
    "burst": _loads("burst", "burst_one_schedule"),
    "killed": _killed,
    "slow": _slow,
    "steady": _loads("steady"),
    "peers_burst": _peers("burst"),
    "peers_messages": _peers("messages"),
    "peers_steady": _peers("steady"),
    "peers_cpu": _peers_cpu,
    "peers_promises": _promises,
    "sustained": _sustained,
    "registration": _registration,
    "emitters": _emitters,
    "tick": _tick,
    "cpu": _cpu,
    "cold_start": _cold_start,
    "startup": _startup,
    "app_tests": _app_tests,
    "console": _console,
    "matrix": _matrix,
    "frames": _frames,
    "cost": _cost,
    "lone_fire": _lone_fire,
    "history": _history,
    "history_duckdb": _beside_duckdb,
    "capacity": _capacity,
    "memory": _memory,
    "predicted_bursts": _predicted("burst", _LOADS, _load_predicted),
    "predicted_steady": _predicted("steady", _LOADS, _load_predicted),
    "predicted_lone": _predicted("lone", ("one schedule", "fires", *_LATE), _lone_predicted),
    "predicted_event": _predicted(
        "event",
        ("objects", "put to start: p50", "p99", "max", "notified to start: p50", "p99", "max"),
        _event_predicted,
    ),
    "predicted_policies": _predicted(
        "policies",
        ("policy", "jobs", "schedules", "allowed a second", "reached a second", "share in a backlog"),
        _pace_predicted,
    ),
    "predicted_registration": _predicted(
        "registration",
        ("schedules", "s", "schedules a second", "requests", "again, unchanged, s"),
        _registered_predicted,
    ),
    "predicted_puts": _predicted(
        "puts", ("clients", "puts", "puts a second", "a put: p50 ms", "p99 ms", "max ms"), _puts_predicted
    ),
    "predicted_upload": _predicted(
        "upload",
        ("schedules", "request answered after, s", "all put after, s", "schedules a second", "slices"),
        _upload_predicted,
    ),
    "predicted_emission": _emission_predicted,
    "predicted_overdue": _predicted(
        "overdue",
        ("overdue jobs", "timers beside them", "ticks", "all delivered after, s", "longest tick, s", "died"),
        _overdue_predicted,
    ),
    "predicted_waking": _predicted(
        "waking",
        ("woken by", "jobs", "all delivered after, s", "a second", "longest invocation, s", "died"),
        _waking_predicted,
    ),
    "predicted_played": _played,
    "predicted_aims": lambda found: markdown(("aim", "limit", "figure", "pessimistic", "", "met"), aims.rows(found)),
    "assumed_calls": _assumed_calls,
    "assumed": _assumed,
}
# How the figures of each table came about. The section of a table begins with this word (a test compares).
KINDS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "burst",
            "killed",
            "slow",
            "steady",
            "sustained",
            "registration",
            "emitters",
            "cpu",
            "cold_start",
            "startup",
            "app_tests",
            "console",
            "matrix",
            "frames",
            "history",
        ),
        "measured",
    ),
    **dict.fromkeys(
        ("peers_burst", "peers_messages", "peers_steady", "peers_cpu", "peers_promises", "history_duckdb"), "measured"
    ),
    **dict.fromkeys(("tick", "cost", "lone_fire", "dollars"), "counted"),
    **dict.fromkeys(("capacity", "memory"), "predicted"),
    **dict.fromkeys((name for name in TABLES if name.startswith(("expected", "predicted", "assumed"))), "predicted"),
}


def main() -> None:
    """Rewrite the pages."""
    for path in (PAGE, LAB_BOOK):
        path.write_text(page(path.read_text(), results.read()))


if __name__ == "__main__":
    main()
