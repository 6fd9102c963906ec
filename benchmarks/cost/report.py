"""Usage as JSON for the results, and as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from benchmarks.cost import prices
from benchmarks.cost.tally import Written
from benchmarks.cost.usage import Usage

Entry = dict[str, Any]


def entry(path: str, about: str, runs: int, used: Usage) -> Entry:
    """The JSON of one path: everything per launched run (per tick, for the idle tick)."""
    index_units = sum(used.index_units.values())
    write_units = sum(used.table_units.values()) + index_units
    read_units = sum(used.read_units.values())
    usd = prices.usd(used.calls, write_units, read_units, used.gb_seconds)
    return {
        "path": path,
        "about": about,
        "runs": runs,
        "calls": {name: round(count, 2) for name, count in sorted(used.calls.items())},
        "write_units": round(write_units, 2),
        "write_units_of_indexes": round(index_units, 2),
        "read_units": round(read_units, 2),
        "lambda_gb_s": round(used.gb_seconds, 4),
        "lambda_waited_s": round(used.waited_seconds, 3),
        "log_bytes": round(used.log_bytes),
        "stored_bytes": round(used.stored_bytes),
        "usd_per_million": round(sum(usd.values()) * prices.MILLION, 2),
        "usd_per_million_by": {name: round(value * prices.MILLION, 2) for name, value in usd.items()},
        "writes": [_write(kind, used) for kind in _by_units(used)],
        "reads": [
            {**_named(kind), "read_units": round(units, 2)}
            for kind, units in sorted(used.read_units.items(), key=lambda pair: -pair[1])
        ],
    }


def tables(costs: Sequence[Entry], idle: Entry) -> list[Table]:
    return [_overview([*costs, idle]), *(_writes(one) for one in costs)]


def _overview(entries: Sequence[Entry]) -> Table:
    title = "cost per launched run, without idle ticks (last column: one idle tick)"
    table = Table("", *(one["path"] for one in entries), title=title, title_justify="left")
    for name in ("write_units", "write_units_of_indexes", "read_units", "lambda_gb_s", "lambda_waited_s"):
        table.add_row(name.replace("_", " "), *(f"{one[name]:g}" for one in entries))
    for name in sorted({name for one in entries for name in one["calls"]}):
        table.add_row(name, *(_shown(one["calls"], name) for one in entries))
    for name in entries[0]["usd_per_million_by"]:
        table.add_row(f"$ {name.replace('_', ' ')}", *(_shown(one["usd_per_million_by"], name) for one in entries))
    table.add_row("$ per million", *(f"{one['usd_per_million']:.2f}" for one in entries), style="bold")
    return table


def _writes(one: Entry) -> Table:
    title = f"{one['path']}: where {one['write_units']:g} write units go, per run"
    table = Table("Lambda", "row", "call", "times", "bytes", "units", "of indexes", title=title, title_justify="left")
    for write in one["writes"]:
        numbers = (f"{write[name]:g}" for name in ("times", "bytes", "table_units", "index_units"))
        table.add_row(write["lambda"], write["row"], write["call"], *numbers)
    return table


def _by_units(used: Usage) -> list[Written]:
    kinds = {**used.times, **used.table_units}
    return sorted(kinds, key=lambda kind: -used.table_units.get(kind, 0) - used.index_units.get(kind, 0))


def _write(kind: Written, used: Usage) -> Entry:
    return {
        **_named(kind),
        "times": round(used.times.get(kind, 0), 2),
        "bytes": used.sizes.get((kind.table, kind.row), 0),
        "table_units": round(used.table_units.get(kind, 0), 2),
        "index_units": round(used.index_units.get(kind, 0), 2),
    }


def _named(kind: Written) -> Entry:
    return {"lambda": kind.handler, "table": kind.table, "row": kind.row, "call": kind.action}


def _shown(values: Mapping[str, float], name: str) -> str:
    return f"{values[name]:g}" if values.get(name) else ""
