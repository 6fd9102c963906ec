"""Schedules written directly into the tables, many at a time: exactly the rows that the API writes for each.

A burst benchmark must not spend its time on registration, which `registration` measures. The rows come from the
product's own plan (`core/schedules/lifecycle.py::put`), so no copy of it must be kept in sync.
tests/benchmarks/test_loader.py compares them with the rows that a PUT writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.instants import Instant
from chalicelib.core.rows.definition import Listing
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.core.schedules import lifecycle
from chalicelib.core.writes import Create, Put, PutState, Write
from chalicelib.ports import Ledger

BY = "bench"
BATCH_SIZE = 250  # schedules per task of a worker
WORKERS = 4

StoredRow = ScheduleState | Listing | Timer | Version


def rows_of(name: str, document: Mapping[str, Any], now: Instant, by: str = BY) -> Iterator[StoredRow]:
    """The rows of one new schedule that is put at ``now``. ``name`` is the full name, ``document`` the API's body."""
    namespace, app, _ = name.split(".")
    new = NewSchedule.model_validate(document)
    _, plan = lifecycle.put(name, new.definition().resolved(namespace, app), None, None, new.enabled, now, by)
    return (_row(write) for write in plan)


def load(ledger: Ledger, names: Sequence[str], document: Mapping[str, Any], now: Instant) -> None:
    """Store schedules of one document under many names, as if all had been put at ``now``."""
    for _ in load_each(ledger, [(names, document)], now):
        pass


def load_each(ledger: Ledger, groups: Iterable[tuple[Sequence[str], Mapping[str, Any]]], now: Instant) -> Iterator[int]:
    """Store schedules of some documents, each under many names, as if all had been put at ``now``. Yields the number of
    those that are stored, again and again until the last."""
    parts = [
        (names[start : start + BATCH_SIZE], document)
        for names, document in groups
        for start in range(0, len(names), BATCH_SIZE)
    ]

    def store(part: tuple[Sequence[str], Mapping[str, Any]]) -> int:
        names, document = part
        ledger.put_all([Put(row) for name in names for row in rows_of(name, document, now)])
        return len(names)

    with ThreadPoolExecutor(WORKERS) as pool:
        yield from accumulate(pool.map(store, parts))


def _row(write: Write) -> StoredRow:
    """The row that a write of the plan stores. Conditions on absence hold, because a benchmark's tables are empty."""
    if isinstance(write, PutState) and write.over is None:
        return write.schedule_state
    if isinstance(write, Create | Put) and isinstance(write.row, ScheduleState | Listing | Timer | Version):
        return write.row
    raise TypeError(f"expected a schedule whose plan only puts new rows, got {write}")
