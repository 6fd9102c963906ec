"""Rows of runs as earlier code packed them: most attributes as deflated JSON in one attribute."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from chalicelib.aws.tables import items, packing

CLEAR = {"pk", "sk", "format", "rev", "state", "wake_shard", "wake_at", "ttl", "at"} | {
    f"{index}_key" for index in ("wf", "schedule", "day")
}


def packed(row: Mapping[str, Any]) -> dict[str, Any]:
    """The item of a row with plain values; its keys and those of its indexes are among them."""
    hidden = {name: content for name, content in row.items() if name not in CLEAR}
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, packing._dictionary(row))
    content = deflater.compress(json.dumps(hidden, separators=(",", ":")).encode()) + deflater.flush()
    clear = {name: items.value(content) for name, content in row.items() if name in CLEAR}
    return clear | {packing.ATTRIBUTE: {"B": content}}
