"""An Iceberg table that pyiceberg writes into a local folder, and its metadata files under their keys in the lake."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.support.world import World

BUCKET = "lake-bucket"
PREFIX = "warehouse/sales/orders/"
DATASET: dict[str, Any] = {"bucket": "lake", "prefix": PREFIX, "format": "iceberg"}


def orders(*numbers: int) -> pa.Table:
    return pa.table({"number": pa.array(numbers, pa.int64())})


class Orders:
    """The table `sales.orders`. `commit` makes a change and returns the new metadata files."""

    def __init__(self, folder: Path, **properties: str) -> None:
        warehouse = folder / "warehouse"
        warehouse.mkdir(parents=True)
        self._root = f"file://{warehouse}"
        catalog = SqlCatalog("local", uri=f"sqlite:///{folder}/catalog.db", warehouse=self._root)
        catalog.create_namespace("sales")
        location = f"{self._root}/sales/orders"
        self.table = catalog.create_table("sales.orders", orders().schema, location, properties=properties)

    def commit(self, *changes: Callable[[Table], object]) -> str:
        """Make these changes, each a commit; returns the key of the last metadata file."""
        for change in changes:
            change(self.table)
            self.table.refresh()
        return self.key_of(self.table.metadata_location)

    def append(self, *numbers: int) -> str:
        return self.commit(lambda table: table.append(orders(*numbers)))

    @property
    def snapshots(self) -> list[str]:
        """The ids of all live snapshots, oldest first."""
        return [str(each.snapshot_id) for each in sorted(self.table.snapshots(), key=lambda each: each.sequence_number)]

    def key_of(self, location: str) -> str:
        return location.replace(self._root, "warehouse")

    def keys(self) -> list[str]:
        """The metadata files that were ever current, oldest first."""
        log = self.table.metadata.metadata_log
        return [*(self.key_of(each.metadata_file) for each in log), self.key_of(self.table.metadata_location)]

    def content(self, key: str) -> bytes:
        """A metadata file as it would be in the lake."""
        path = unquote(urlparse(f"{self._root}{key.removeprefix('warehouse')}").path)
        stored = Path(path).read_bytes()
        text = (gzip.decompress(stored) if stored.startswith(b"\x1f\x8b") else stored).decode()
        moved = text.replace(self._root, f"s3://{BUCKET}/warehouse").encode()
        return gzip.compress(moved) if stored.startswith(b"\x1f\x8b") else moved

    def deliver(self, world: World, *keys: str) -> list[str]:
        """Put metadata files into the lake, then send their notifications in this order. Returns the result of each."""
        for key in keys or self.keys():
            world.lake.objects[BUCKET, key] = self.content(key)
        said = [world.upload(key, text=world.lake.objects[BUCKET, key]) for key in keys or self.keys()]
        world.settle()
        return said


def edited(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """A metadata file with a change that pyiceberg cannot make."""
    document = json.loads(content)
    change(document)
    return json.dumps(document).encode()


def app(schedules: Mapping[str, Any], **dataset: Any) -> dict[str, Any]:
    """An app over the table, and one workflow."""
    target = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
    return {
        "datasets": {"orders": {**DATASET, **dataset}},
        "workflows": {"clean": {"target": target}},
        "schedules": dict(schedules),
    }


def reported(world: World, name: str) -> list[Sequence[str]]:
    """The snapshots that each run of a schedule got, parents first."""
    runs = [world.context(run)["events"] for run in world.runs(name)]
    return [
        [event["snapshot"]["id"] for event in sorted(run, key=lambda event: event["snapshot"]["sequence_number"])]
        for run in runs
    ]
