"""Schedules written straight into the tables, many at a time: what the API writes for each of them, byte for byte.

A benchmark of a burst must not spend its time on registering what bursts (that is measured by itself, in
`registration`). The rows are those of the product's own plan (`core.lifecycle.put`), so that there is nothing here to
keep in step; tests/benchmarks/test_loader.py holds them against the rows that a PUT writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.instants import Instant
from chalicelib.core.rows.definition import Listing
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.core.schedules import lifecycle
from chalicelib.core.writes import Create, Put, PutState, Write
from chalicelib.ports import Ledger

BY = "bench"
BATCH_SIZE = 250  # schedules of one worker's turn
WORKERS = 4

StoredRow = ScheduleState | Listing | Timer | Version


def rows_of(name: str, document: Mapping[str, Any], now: Instant, by: str = BY) -> Iterator[StoredRow]:
    """The rows of one new schedule that was put at ``now``. ``name`` is the full one, ``document`` the API's body."""
    namespace, app, _ = name.split(".")
    new = NewSchedule.model_validate(document)
    _, plan = lifecycle.put(name, new.definition().resolved(namespace, app), None, None, new.enabled, now, by)
    return (_row(write) for write in plan)


def load(ledger: Ledger, names: Sequence[str], document: Mapping[str, Any], now: Instant) -> None:
    """Store schedules of one document under many names, as if all had been put at ``now``."""
    parts = [names[start : start + BATCH_SIZE] for start in range(0, len(names), BATCH_SIZE)]

    def store(part: Sequence[str]) -> None:
        ledger.put_all([Put(row) for name in part for row in rows_of(name, document, now)])

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(store, parts))


def _row(write: Write) -> StoredRow:
    """What a write of the plan stores. Where the plan asks for absence, the tables of a benchmark are empty."""
    if isinstance(write, PutState) and write.over is None:
        return write.schedule_state
    if isinstance(write, Create | Put) and isinstance(write.row, ScheduleState | Listing | Timer | Version):
        return write.row
    raise TypeError(f"expected a schedule whose plan only puts new rows, got {write}")
