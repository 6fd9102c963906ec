"""Reads of many rows together: a hundred per call instead of one (BatchGetItem).

`DynamoPrefetch.read` returns the same ports; their single reads are answered from the rows that were read. Use them for
one check of a batch. A prefetched row is as consistent as a strong read at the time of the prefetch, and no fresher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from chalicelib.aws.tables import items, keys
from chalicelib.aws.tables.catalog import DynamoCatalog
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.items import Item
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.aws.tables.keys import Key
from chalicelib.aws.tables.runs import DynamoRuns
from chalicelib.core.rows.stamps import ATTRIBUTES, Stamp
from chalicelib.ports import Ports, RowRequest

R = TypeVar("R")
# Rows that were parsed recently, with their items, of one or two KB each. A delivery reads each of its rows twice,
# mostly without a change in between.
MAX_PARSED = 10_000
Parsed = dict[Key, tuple[Item, Any]]


class DynamoPrefetch:
    """``rows`` were read before; a further read keeps them."""

    def __init__(
        self, dynamo: Dynamo, rows: Mapping[Key, Item | None] | None = None, parsed: Parsed | None = None
    ) -> None:  # fmt: skip
        self._dynamo = dynamo
        self._rows = rows or {}
        self._parsed: Parsed = {} if parsed is None else parsed

    def read(self, ports: Ports, wanted: Sequence[RowRequest], strong: bool = True) -> Ports:
        if not isinstance(ports.catalog, DynamoCatalog):
            raise TypeError(f"expected a catalog in DynamoDB, got {type(ports.catalog).__name__}")
        keys_of = {key for request in wanted if not ports.catalog.knows(key := _key(request))} - self._rows.keys()
        found = self._dynamo.get_many(sorted(keys_of), strong=strong)
        rows = {**self._rows, **{key: found.get(key) for key in keys_of}}
        read: Any = _Read(self._dynamo, rows, self._parsed)
        prefetch, catalog = DynamoPrefetch(self._dynamo, rows, self._parsed), ports.catalog.over(read)
        return replace(ports, catalog=catalog, jobs=DynamoJobs(read), runs=DynamoRuns(read), prefetch=prefetch)

    def stamps(self, wanted: Sequence[RowRequest]) -> dict[RowRequest, Stamp]:
        """Some attributes of each row, by strongly consistent reads. Fewer bytes are sent and parsed, but the read
        units are those of whole rows."""
        keys_of = {_key(request): request for request in wanted}
        attributes = {key.table: ATTRIBUTES[str(request[0])] for key, request in keys_of.items()}
        found = self._dynamo.get_many(sorted(keys_of), attributes)
        return {keys_of[key]: items.picked(item, attributes[key.table]) for key, item in found.items()}


class _Read:
    """A `Dynamo` that answers reads of prefetched rows, existing or missing, and reads all others from the table."""

    def __init__(self, dynamo: Dynamo, rows: Mapping[Key, Item | None], parsed: Parsed) -> None:
        self._dynamo = dynamo
        self._rows = rows
        self._parsed = parsed

    def get(self, key: Key, kind: type[R]) -> R | None:
        if key not in self._rows:
            return self._dynamo.get(key, kind)
        item = self._rows[key]
        if not item:
            return None
        known = self._parsed.get(key)
        if known is None or known[0] != item:
            if len(self._parsed) >= MAX_PARSED:
                self._parsed.clear()
            known = self._parsed[key] = (item, items.from_item(kind, item))
        found: R = known[1]
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dynamo, name)


def _key(request: RowRequest) -> Key:
    match request:
        case ("schedule_state", schedule):
            return keys.schedule_state(str(schedule))
        case ("timer", schedule):
            return keys.timer(str(schedule))
        case ("version", schedule, number):
            return keys.version(str(schedule), int(number))
        case ("workflow" | "dataset" as kind, name):
            return keys.definition(kind, str(name))
        case ("job", schedule, generation, key):
            return keys.job(str(schedule), int(generation), str(key))
        case ("run", run_id, attempt):
            return keys.run(str(run_id), int(attempt))
        case ("record", job_id):
            return keys.record(str(job_id))
        case ("dag_run", run_id):
            return keys.dag_run(str(run_id))
    raise ValueError(f"expected a row that can be prefetched, got {request}")
