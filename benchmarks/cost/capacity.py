"""The units that DynamoDB bills, by AWS's published rules. Pure: items in, units out.

Sizes  https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
- A string and an attribute's name: their UTF-8 bytes. A number: about a byte for two significant digits, and one more
  (here also one for the sign, which AWS counts too). Null and Boolean: 1. List and map: 3, and 1 for each element.

Writes  https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
- 1 unit per KB of the larger of the item before and after, rounded up per item; 1 at least, also for deleting nothing.
- A failed condition costs as much as the write would have: the larger of the stored and the sent item.

Transactions  https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
- Two writes per item, one to prepare and one to commit, so double. A ConditionCheck is an item of the transaction
  and costs 2 per KB of the item that it checks. A cancelled transaction is billed too.

Batches  https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
- BatchWriteItem and BatchGetItem cost what the single operations cost, rounded up per item.

Global indexes  https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html
- An entry is added or removed: 1 write. Its key changes: 2 (one removal, one addition). Only other projected attributes
  change: 1. The entry does not change, or does not exist: 0. A write is 1 per KB of the entry (its keys, the table's
  keys and the projected attributes). It is asynchronous and not part of the transaction, so it is not doubled here.
  AWS does not state this explicitly; if it were doubled, the index units of transactional writes would be twice as
  high.

Local indexes  https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/LSI.html
- The same rules. A local index is written with its table, so it is doubled in a transaction (the cautious reading).

Reads  https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
- Strong: 1 unit per 4 KB, rounded up per item, also for a missing item. Eventual: half.
- Query: the sum of the sizes of all items read (entries of the index, if on one), rounded up once; 1 at least.
  A query of a local index with projection ALL never reads the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Item = Mapping[str, Mapping[str, Any]]
KB = 1024


@dataclass(frozen=True, slots=True)
class Index:
    """The billed properties of a secondary index: the attributes of its entries, and which items have an entry."""

    name: str
    keys: tuple[str, ...]
    table_keys: tuple[str, ...]
    local: bool
    whole: bool  # the projection is ALL; otherwise KEYS_ONLY

    def entry(self, item: Item | None) -> Item | None:
        """The entry of an item; None for an item that lacks a key of the index."""
        if item is None or any(key not in item for key in self.keys):
            return None
        kept = item.keys() if self.whole else {*self.keys, *self.table_keys}
        return {name: value for name, value in item.items() if name in kept}


def size(item: Item | None) -> int:
    """The bytes of an item."""
    return 0 if item is None else sum(len(name.encode()) + _value(value) for name, value in item.items())


def write_units(before: Item | None, after: Item | None, transactional: bool) -> int:
    """The units of one write, or of one condition check, on the table itself."""
    return _units(max(size(before), size(after)), KB) * (2 if transactional else 1)


def index_units(index: Index, before: Item | None, after: Item | None, transactional: bool) -> int:
    """The units of the same write on one of the table's indexes."""
    old, new = index.entry(before), index.entry(after)
    factor = 2 if transactional and index.local else 1
    if old == new:
        return 0
    if old is None or new is None:
        return _units(size(old) + size(new), KB) * factor
    if any(old[key] != new[key] for key in index.keys):
        return (_units(size(old), KB) + _units(size(new), KB)) * factor
    return _units(max(size(old), size(new)), KB) * factor


def get_units(found: Item | None, strong: bool) -> float:
    return _units(size(found), 4 * KB) * (1.0 if strong else 0.5)


def query_units(found: Iterable[Item], strong: bool) -> float:
    return _units(sum(size(item) for item in found), 4 * KB) * (1.0 if strong else 0.5)


def _units(length: int, step: int) -> int:
    return max(1, math.ceil(length / step))


def _value(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return _number(content)
        case "B":
            return len(content)
        case "BOOL" | "NULL":
            return 1
        case "L":
            return 3 + sum(1 + _value(part) for part in content)
        case "M":
            return 3 + sum(1 + len(name.encode()) + _value(part) for name, part in content.items())
        case "SS":
            return sum(len(part.encode()) for part in content)
        case "NS":
            return sum(_number(part) for part in content)
    raise ValueError(f"expected a DynamoDB attribute value, got one of type {kind}")


def _number(text: str) -> int:
    digits = text.lower().partition("e")[0].lstrip("-").replace(".", "").strip("0")
    return math.ceil(len(digits) / 2) + 1 + text.startswith("-")
