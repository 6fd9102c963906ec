"""What a request reads of the tables: the number of calls, and DynamoDB's read units."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib.wiring import ports
from tests.support.aws_rules import TABLE_CALLS

UNIT = 4_096  # bytes: a strongly consistent read of them is one unit, any other half a unit


@dataclass
class Tally:
    """``calls`` by operation. ``units`` by the items that were answered: of a query for all of them together, else for
    each of them."""

    calls: Counter[str] = field(default_factory=Counter)
    units: float = 0.0

    @property
    def total(self) -> int:
        return self.calls.total()

    def take(self, operation: str, asked: Mapping[str, Any], answered: Mapping[str, Any]) -> None:
        self.calls[operation] += 1
        each = asked["RequestItems"].values() if "RequestItems" in asked else [asked]
        factor = 1.0 if all(one.get("ConsistentRead") for one in each if isinstance(one, Mapping)) else 0.5
        if operation == "Query":
            self.units += factor * math.ceil(max(1, sum(map(_size, answered["Items"]))) / UNIT)
            return
        rows = [row for rows in answered.get("Responses", {}).values() for row in rows]
        rows += [answered["Item"]] if "Item" in answered else []
        self.units += factor * sum(math.ceil(_size(row) / UNIT) for row in rows)


@contextmanager
def counted() -> Iterator[Tally]:
    """Count the calls of this process until the end of the block."""
    client: Any = ports().ledger._ledger._client  # that of DynamoDB, which the audited one wraps
    tally = Tally()
    with pytest.MonkeyPatch.context() as patch:
        for name, operation in TABLE_CALLS.items():
            patch.setattr(client, name, _tallied(getattr(client, name), operation, tally))
        yield tally


def _tallied(call: Callable[..., Any], operation: str, tally: Tally) -> Callable[..., Any]:
    def told(**asked: Any) -> Any:
        answered = call(**asked)
        tally.take(operation, asked, answered or {})
        return answered

    return told


def _size(item: Mapping[str, Any]) -> int:
    return len(json.dumps(item, default=bytes.hex))
