"""Reads of many rows together: a hundred per call instead of one (BatchGetItem).

`DynamoPrefetch.read` returns the same ports; their single reads are answered from the rows that were read. Use them for
one check of a batch. A prefetched row is as consistent as a strong read at the time of the prefetch, and no fresher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from chalicelib.aws.tables import items
from chalicelib.aws.tables.catalog import DynamoCatalog
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.items import Item
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.aws.tables.rows import DynamoRows
from chalicelib.aws.tables.runs import DynamoRuns
from chalicelib.core.rows import kinds
from chalicelib.core.rows.kinds import Key, Stamp
from chalicelib.ports import Over, Ports

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

    def read(self, ports: Ports, wanted: Sequence[Key], strong: bool = True) -> Ports:
        if not isinstance(ports.rows, DynamoRows) or not isinstance(ports.catalog, DynamoCatalog):
            raise TypeError(f"expected rows in DynamoDB, got {type(ports.rows).__name__}")
        missing = {key for key in wanted if not ports.rows.knows(key)} - self._rows.keys()
        found = self._dynamo.get_many(sorted(missing), strong=strong)
        rows = {**self._rows, **{key: found.get(key) for key in missing}}
        read: Any = _Read(self._dynamo, rows, self._parsed)
        return replace(
            ports,
            rows=ports.rows.over(read),
            catalog=ports.catalog.over(read),
            jobs=DynamoJobs(read),
            runs=DynamoRuns(read),
            prefetch=DynamoPrefetch(self._dynamo, rows, self._parsed),
        )

    def stamps(self, wanted: Sequence[Key]) -> dict[Key, Stamp]:
        """Some attributes of each row, by strongly consistent reads. Fewer bytes are sent and parsed, but the read
        units are those of whole rows."""
        attributes = {key.table: kinds.kind_of(key).stamp for key in wanted}
        found = self._dynamo.get_many(sorted(set(wanted)), attributes)
        return {key: items.picked(item, attributes[key.table]) for key, item in found.items()}


class _Read(Over):
    """A `Dynamo` that answers reads of prefetched rows, existing or missing, and reads all others from the table."""

    def __init__(self, dynamo: Dynamo, rows: Mapping[Key, Item | None], parsed: Parsed) -> None:
        super().__init__(dynamo)
        self._rows, self._parsed = rows, parsed

    def get(self, key: Key, kind: type[R]) -> R | None:
        if key not in self._rows:
            stored: R | None = self._below.get(key, kind)
            return stored
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
