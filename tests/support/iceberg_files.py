"""Metadata files of a table, made by hand with only the fields that Sluice reads. `tests/support/iceberg.py` has real
ones.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.world import World

BUCKET = "lake-bucket"
PREFIX = "warehouse/sales/orders/"
TABLE: dict[str, Any] = {"bucket": BUCKET, "prefix": PREFIX, "format": "iceberg"}


def file(number: int) -> str:
    """The key of the metadata file that a table's commit of this number writes; 0 creates the table."""
    return f"{PREFIX}metadata/{number:05}-0b6a.metadata.json"


def snapshot(number: int, parent: int | None, at: int, operation: str = "append", **summary: str) -> dict[str, Any]:
    counted = {"added-data-files": "1", "added-records": "10", "added-files-size": "50", "total-records": "10"}
    answer: dict[str, Any] = {"snapshot-id": number, "sequence-number": number, "timestamp-ms": at}
    answer["summary"] = {"operation": operation, **counted, **summary}
    return answer if parent is None else {**answer, "parent-snapshot-id": parent}


def metadata(*snapshots: dict[str, Any], current: int | None = None, former: int | None = None) -> dict[str, Any]:
    """``former`` is the number of the metadata file before this one."""
    last = snapshots[-1]["snapshot-id"] if snapshots else -1
    log = [] if former is None else [{"timestamp-ms": 1, "metadata-file": f"s3://{BUCKET}/{file(former)}"}]
    return {
        "format-version": 2,
        "location": f"s3://{BUCKET}/{PREFIX.rstrip('/')}",
        "current-snapshot-id": last if current is None else current,
        "snapshots": list(snapshots),
        "metadata-log": log,
    }


def after(commits: int, at: int) -> bytes:
    """The metadata of a table after this many appends, which were committed at this instant."""
    made = [snapshot(number, number - 1 or None, at) for number in range(1, commits + 1)]
    return json.dumps(metadata(*made, former=commits - 1 if commits else None)).encode()


def lay_down(world: World, commits: int) -> None:
    """Put the metadata files of this many appends into the lake, without notifications."""
    for number in range(commits + 1):
        world.lake.objects[BUCKET, file(number)] = after(number, world.clock.now())
