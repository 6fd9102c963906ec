"""Register a partition on request, with the same effect as an object that makes it ready (T7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.events.values import check_value
from chalicelib.core.rows.event import Partition
from chalicelib.flow import registered
from chalicelib.flow.ingest.objects import register
from chalicelib.ports import Ports


def register_values(ports: Ports, name: str, dataset: Dataset, content: Mapping[str, Any]) -> Partition:
    """Register the partition that ``content["partition"]`` names, and apply its event unless it is already registered.

    Raises ``unknown_field`` and ``invalid``: also for a partition whose numbers are registered with other leading
    zeros, and for tables, whose partitions are their snapshots.
    """
    if dataset.format == "iceberg":
        hint = "commit to the table: its metadata lists the snapshots"
        raise invalid("", "a dataset of format files", f"the table {name}, whose partitions are its snapshots", hint)
    unknown = set(content) - {"partition"}
    if unknown:
        field = sorted(unknown)[0]
        raise SluiceError("unknown_field", f"unknown field {field!r}", field, "remove it, or check its spelling")
    given = content.get("partition")
    expected = f"an object with exactly the keys {', '.join(dataset.keys)}"
    if not isinstance(given, dict) or set(given) != set(dataset.keys):
        raise invalid("partition", expected, given, "write each key of the dataset once, with its value")
    texts = tuple(str(given[key]) for key in dataset.keys)
    for key, text in zip(dataset.keys, texts, strict=True):
        check_value(text, f"partition.{key}")
    registered.require_new(ports, name, dataset.keys, texts, "partition")
    return register(ports, name, dataset, texts, ports.clock.now(), "")
