"""tick: the cost of a tick with 1,000, 10,000 and 100,000 enabled schedules, of which 100 are always due (a million
with SLUICE_BENCH_MILLION=1).

The rows are those that the API writes (tests/benchmarks/test_tick.py); handler, flows and adapters are the real ones.
The tables are in memory (`sluice/testing/memory_tables.py`): an emulator over HTTP would need hours for four million
rows, and would disturb the measurement. Calls and units are counts. CPU is that of the tick alone: the time inside the
client, which is the emulator and its meter here, is subtracted."""

from __future__ import annotations

import gc
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from statistics import median
from typing import Any

from rich.table import Table

from benchmarks.cost.meter import Schema
from benchmarks.cost.paths import SQS
from benchmarks.cost.plant import BEGIN, Plant, fresh_tables
from benchmarks.cost.usage import Usage
from benchmarks.loader import rows_of
from benchmarks.measurement import Results
from benchmarks.progress import Progress
from chalicelib.aws.tables import items
from chalicelib.core import ids
from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.kinds import key_of
from chalicelib.log import logger

SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
DUE = 100
TICKS = 5
WORKFLOW = "notify"
TIME = {"type": "time", "expression": "* * * * *"}
RARELY = {"type": "time", "expression": "0 5 1 1 *"}
Item = dict[str, Any]


class Watch:
    """A wrapper of a client that measures the CPU time of its calls, in ms."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.ms = 0.0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._client, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                self.ms += (time.process_time() - begun) * 1000

        return timed


class TickPlant(Plant):
    """Measures each tick separately; the work that follows from a tick, such as deliveries, belongs to the fires."""

    def __init__(self, client: Any, names: dict[str, str], schema: Schema) -> None:
        self.watches: list[Watch] = []
        self.seen: list[tuple[Usage, float]] = []
        super().__init__(client, names, schema, self._watched)

    def _watched(self, client: Any) -> Any:
        self.watches.append(Watch(client))
        return self.watches[-1]

    def invoke(self, name: str, handler: Callable[[dict[str, Any]], Any], event: dict[str, Any]) -> Any:
        if name != "tick":
            return super().invoke(name, handler, event)
        before, outside, begun = Usage.of(self.tally), self.watches[0].ms, time.process_time()
        answer = super().invoke(name, handler, event)
        cpu = (time.process_time() - begun) * 1000 - (self.watches[0].ms - outside)
        self.seen.append((Usage.of(self.tally) - before, cpu))
        return answer


def measure(progress: Progress) -> Results:
    logger.setLevel(logging.ERROR)
    sizes = [*SIZES, *([MILLION] if os.environ.get("SLUICE_BENCH_MILLION") else [])]
    found = [of_size(size) for size in progress.each(sizes, lambda size: f"{size:,} schedules")]
    return {"tick": {"sizes": found, "due": DUE, "growth": growth(found)}}


def tables(results: Results) -> list[Table]:
    tick = results["tick"]
    title = f"tick: one tick with {tick['due']} schedules due (CPU without the client)"
    table = Table("schedules", "calls", "read units", "write units", "CPU ms", title=title, title_justify="left")
    for one in tick["sizes"]:
        figures = (one["calls"], one["read_units"], one["write_units"], one["cpu_ms"])
        table.add_row(f"{one['schedules']:,}", *(f"{figure:g}" for figure in figures))
    table.add_row("growth", *(f"{tick['growth'][name]:.3f}" for name in MEASURES), style="bold")
    return [table]


MEASURES = ("calls", "read_units", "write_units", "cpu_ms")


def of_size(size: int, ticks: int = TICKS, due: int = DUE) -> dict[str, Any]:
    """Medians of some ticks, after two that warm the caches."""
    client, names, schema = fresh_tables()
    plant = TickPlant(client, names, schema)
    plant.deploy({"workflows": {WORKFLOW: {"target": SQS}}})
    fill(client, names["catalog_table"], "due", due, TIME)
    fill(client, names["catalog_table"], "idle", size - due, RARELY)
    plant.pass_by(2 * MINUTE + 1_000)
    gc.collect()
    gc.freeze()  # the rows belong to the tables; garbage collection of them is no part of a tick
    plant.seen.clear()
    delivered = plant.launched
    plant.pass_by(ticks * MINUTE)
    if plant.launched - delivered != ticks * due:
        raise RuntimeError(f"expected {ticks * due} deliveries, got {plant.launched - delivered}")
    uses, cpus = zip(*plant.seen, strict=True)
    return {
        "schedules": size,
        "calls": median(sum(used.calls.values()) - 1 for used in uses),  # without the invocation itself
        "read_units": median(sum(used.read_units.values()) for used in uses),
        "write_units": median(sum(used.table_units.values()) + sum(used.index_units.values()) for used in uses),
        "cpu_ms": round(median(cpus), 1),
    }


def growth(found: list[dict[str, Any]]) -> dict[str, float]:
    """The figures of the last size divided by those of the first."""
    return {name: round(found[-1][name] / found[0][name], 3) for name in MEASURES}


def fill(client: Any, table: str, prefix: str, count: int, trigger: Mapping[str, Any]) -> None:
    """Store schedules with the rows that a PUT writes, copied from those of one schedule."""
    made = made_rows(prefix, count, trigger)
    while part := list(islice(made, 25)):  # the maximum of DynamoDB per batch
        client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": row}} for row in part]})


def made_rows(prefix: str, count: int, trigger: Mapping[str, Any], shards: int = 4) -> Iterator[Item]:
    """The items of ``count`` schedules. Equal parts are one shared object, so that a million fit into memory."""
    document = {"workflow": WORKFLOW, "enabled": True, "trigger": trigger}
    model = f"{prefix}0000000"
    rows = list(rows_of(f"demo.flights.{model}", document, BEGIN))
    items_of_one = [items.to_item(row, shards, shards) for row in rows if key_of(row).table == "catalog"]
    for number in range(count):
        name = f"{prefix}{number:07d}"
        for item in items_of_one:
            yield _renamed(item, model, name, shards)


def _renamed(item: Item, model: str, name: str, shards: int) -> Item:
    other = {
        field: {"S": value["S"].replace(model, name)} if model in value.get("S", "") else value
        for field, value in item.items()
    }
    if "wake_shard" in other:
        other["wake_shard"] = {"S": ids.shard(other["pk"]["S"], shards)}
    return other
