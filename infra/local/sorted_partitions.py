"""Queries of ministack on partitions that are kept in order.

For each query ministack sorts all entries of the partition, and checks the condition and the start key on each of them.
So a page of 100 from a partition of 50,000 takes a second, in which the emulator answers nothing else. Here the entries
of each partition stay sorted. A query looks up its page by bisection, and ministack's own code answers from a table
that holds only the items of that page. What this module does not understand is answered from the whole table.
tests/local/test_sorted_partitions.py compares the answers.
"""

from __future__ import annotations

import threading
import types
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

Table = dict[str, Any]
Entry = tuple[tuple[Any, ...], tuple[str, str]]  # what ministack sorts by, and the item's keys in `table["items"]`
Partitions = dict[str | None, dict[Any, list[Entry]]]  # of each index by its name, and of the table itself by None


def install(dynamodb: Any) -> None:
    """Keep the order in `table["_index_members"]`, which ministack drops when it replaces items or indexes, and does
    not store."""
    plain = dynamodb._query
    shown = _Shown()
    # Another thread of ministack reads `_tables` too, so only this copy of `_query` gets another one.
    answer = types.FunctionType(plain.__code__, {**vars(dynamodb), "_tables": shown}, plain.__name__)
    keep = _Order(dynamodb)

    def query(data: dict[str, Any]) -> Any:
        table = dynamodb._tables.get(dynamodb._normalize_table_name(data.get("TableName")))
        page = keep.page(table, data) if table else None
        shown.table = page or (table and {name: part for name, part in table.items() if name != keep.attribute})
        return answer(data)

    dynamodb._index_item = keep.written
    dynamodb._query = query


class _Shown(threading.local):
    """The tables, as the query in progress in this thread sees them."""

    table: Table | None = None

    def get(self, name: str) -> Table | None:
        return self.table


class _Order:
    def __init__(self, dynamodb: Any) -> None:
        self._dynamodb = dynamodb
        self.attribute: str = dynamodb._INDEX_MEMBERS

    def written(self, table: Table, pk: str, sk: str, item: dict[str, Any], add: bool) -> None:
        """Follow a write: ministack calls this for the old item, and for the new one."""
        partitions: Partitions | None = table.get(self.attribute)
        if partitions is None:
            return
        for name, hashes, ranges in self._indexes(table):
            if name not in partitions:
                table.pop(self.attribute)
                return
            value = self._partition(pk, item, name, hashes, ranges)
            if value is None:
                continue
            entries, entry = partitions[name].setdefault(value, []), self._entry(table, pk, sk, item, ranges)
            if add:
                insort(entries, entry)
                continue
            at = bisect_left(entries, entry)
            if entries[at : at + 1] != [entry]:  # the item was changed in place
                table.pop(self.attribute)
                return
            del entries[at]

    def page(self, table: Table, data: dict[str, Any]) -> Table | None:
        """The table with only the items that an answer can have; None if the query is not understood."""
        condition, index = data.get("KeyConditionExpression"), data.get("IndexName")
        partitions = self._partitions(table)
        if not condition or data.get("KeyConditions") or index not in partitions:
            return None
        hashes, ranges = next((hashes, ranges) for name, hashes, ranges in self._indexes(table) if name == index)
        if len(hashes) != 1 or len(ranges) > 1:
            return None
        values, names = data.get("ExpressionAttributeValues") or {}, data.get("ExpressionAttributeNames") or {}
        value = self._dynamodb._extract_pk_from_condition(condition, values, names, hashes[0])
        entries = partitions[index].get(value, [])
        try:
            begin, end = self._span(table, entries, self._clauses(condition, names), values, ranges)
            begin, end = self._after(table, entries, data, ranges, (begin, end))
        except (LookupError, TypeError, ValueError):
            return None
        keys = [key for _, key in _first(entries, begin, end, data)]
        items: dict[str, dict[str, Any]] = defaultdict(dict)
        for pk, sk in keys:
            item = table["items"].get(pk, {}).get(sk)
            if item is not None:  # a thread removes what has expired
                items[pk][sk] = item
        members = {index: {value: dict.fromkeys(keys)}} if index else {}
        return {**table, "items": items, self.attribute: members}

    def _partitions(self, table: Table) -> Partitions:
        partitions: Partitions | None = table.get(self.attribute)
        if partitions is None:
            partitions = {}
            for name, hashes, ranges in self._indexes(table):
                found = partitions.setdefault(name, {})
                for pk, items in table["items"].items():
                    for sk, item in items.items():
                        value = self._partition(pk, item, name, hashes, ranges)
                        if value is not None:
                            found.setdefault(value, []).append(self._entry(table, pk, sk, item, ranges))
                for entries in found.values():
                    entries.sort()
            table[self.attribute] = partitions
        return partitions

    def _indexes(self, table: Table) -> Iterator[tuple[str | None, list[str], list[str]]]:
        """Name, hash keys and range keys of each index; the table's own as None."""
        yield None, [table["pk_name"]], [table["sk_name"]] if table["sk_name"] else []
        yield from self._dynamodb._index_key_schemas(table)

    def _partition(self, pk: str, item: Any, name: str | None, hashes: list[str], ranges: list[str]) -> Any:
        return pk if name is None else self._dynamodb._index_partition(item, hashes, ranges)

    def _entry(self, table: Table, pk: str, sk: str, item: dict[str, Any], ranges: list[str]) -> Entry:
        return self._place(table, item, ranges), (pk, sk)

    def _place(self, table: Table, item: dict[str, Any], ranges: list[str]) -> tuple[Any, ...]:
        order = self._dynamodb._index_order_keys(table, ranges)
        return tuple(self._dynamodb._index_order_value(item, name, kind) for name, kind in order)

    def _clauses(self, condition: str, names: dict[str, str]) -> list[list[tuple[str, str]]]:
        """The conditions on the keys as tokens, with the names of attributes for placeholders."""
        found = self._dynamodb._key_condition_clauses(self._dynamodb._tokenize(condition))
        return [
            [("NAME", names[text]) if kind == "NAME_REF" else (kind, text) for kind, text in clause] for clause in found
        ]

    def _span(
        self, table: Table, entries: list[Entry], clauses: Any, values: dict[str, Any], ranges: list[str]
    ) -> tuple[int, int]:
        """Where the entries begin and end that meet the condition on the range key. Raises ValueError for a condition
        in another form."""
        _, *others = sorted(clauses, key=lambda clause: any(text in ranges for _, text in clause))
        if not others:
            return 0, len(entries)
        [clause], [name] = others, ranges
        kind = self._dynamodb._get_attr_type(table, name)
        texts = [self._dynamodb._sort_key_value(values[text], kind) for sort, text in clause if sort == "VALUE_REF"]
        match [sort if sort != "IDENT" or text == name else text.upper() for sort, text in clause]:
            case ["NAME" | "IDENT", "EQ", "VALUE_REF"]:
                return _from(entries, texts[0]), _past(entries, texts[0])
            case ["NAME" | "IDENT", "LT", "VALUE_REF"]:
                return 0, _from(entries, texts[0])
            case ["NAME" | "IDENT", "LE", "VALUE_REF"]:
                return 0, _past(entries, texts[0])
            case ["NAME" | "IDENT", "GE", "VALUE_REF"]:
                return _from(entries, texts[0]), len(entries)
            case ["NAME" | "IDENT", "GT", "VALUE_REF"]:
                return _past(entries, texts[0]), len(entries)
            case ["NAME" | "IDENT", "BETWEEN", "VALUE_REF", "AND", "VALUE_REF"]:
                return _from(entries, texts[0]), _past(entries, texts[1])
            case ["BEGINS_WITH", "LPAREN", "NAME" | "IDENT", "COMMA", "VALUE_REF", "RPAREN"] if kind == "S":
                begin = _from(entries, texts[0])
                # All that begin with a text follow one another.
                length = len(texts[0])
                return begin, bisect_right(entries, texts[0], begin, key=lambda entry: entry[0][0][:length])
        raise ValueError(f"expected a condition on {name}, got {clause}")

    def _after(
        self, table: Table, entries: list[Entry], data: dict[str, Any], ranges: list[str], span: tuple[int, int]
    ) -> tuple[int, int]:
        """The part of a span that follows the start key in the direction of the query."""
        begin, end = span
        start = data.get("ExclusiveStartKey")
        if not start:
            return begin, end
        place = self._place(table, start, ranges)
        if data.get("ScanIndexForward", True):
            return max(begin, bisect_right(entries, place, key=_sorted_by)), end
        return begin, min(end, bisect_left(entries, place, key=_sorted_by))


def _first(entries: list[Entry], begin: int, end: int, data: dict[str, Any]) -> list[Entry]:
    """The entries of a span that one page may hold: ministack ends a page at ``Limit`` items, or before."""
    limit = int(data.get("Limit") or 0)
    if limit <= 0:
        return entries[begin:end]
    if data.get("ScanIndexForward", True):
        return entries[begin : min(end, begin + limit)]
    return entries[max(begin, end - limit) : end] if end > begin else []


_sorted_by: Callable[[Entry], tuple[Any, ...]] = lambda entry: entry[0]  # noqa: E731


def _from(entries: list[Entry], value: str | Decimal | bytes) -> int:
    """The first entry whose range key is at least this."""
    return bisect_left(entries, value, key=lambda entry: entry[0][0])


def _past(entries: list[Entry], value: str | Decimal | bytes) -> int:
    """The first entry whose range key is more than this."""
    return bisect_right(entries, value, key=lambda entry: entry[0][0])
