"""What a request reads of the tables: the number of calls, and DynamoDB's read units."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from chalicelib.wiring import ports

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


@contextmanager
def counted() -> Iterator[Tally]:
    """Count the reads of this process until the end of the block."""
    client: Any = ports().ledger._ledger._client  # that of DynamoDB, which the audited one wraps
    tally, strong = Tally(), [True]

    def asked(params: Mapping[str, Any], **_: Any) -> None:
        requests = params.get("RequestItems")
        each = list(requests.values()) if isinstance(requests, Mapping) else [params]
        strong[:] = [bool(isinstance(one, Mapping) and one.get("ConsistentRead")) for one in each]

    def answered(parsed: Mapping[str, Any], model: Any, **_: Any) -> None:
        tally.calls[model.name] += 1
        factor = 1.0 if all(strong) else 0.5
        if model.name == "Query":
            tally.units += factor * math.ceil(max(1, sum(map(_size, parsed["Items"]))) / UNIT)
            return
        rows = [row for rows in parsed.get("Responses", {}).values() for row in rows]
        rows += [parsed["Item"]] if "Item" in parsed else []
        tally.units += factor * sum(math.ceil(_size(row) / UNIT) for row in rows)

    events = client.meta.events
    events.register("provide-client-params.dynamodb", asked, "reads-asked")
    events.register("after-call.dynamodb", answered, "reads-answered")
    try:
        yield tally
    finally:
        events.unregister("provide-client-params.dynamodb", asked, "reads-asked")
        events.unregister("after-call.dynamodb", answered, "reads-answered")


def _size(item: Mapping[str, Any]) -> int:
    return len(json.dumps(item, default=bytes.hex))
