"""The metadata files of an Iceberg table: the snapshots of its branch `main`, and which of them are committed (T21).

A commit writes a new metadata file and then makes it the current one in the catalog. A commit that the catalog refuses
does not delete its file, so a file alone does not prove that its own snapshots are committed. But it names the file
from which it was made, and that file was the current one. https://iceberg.apache.org/spec/#table-metadata-fields
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from chalicelib.core import ids
from chalicelib.core.definitions.dataset import Dataset, Operation
from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.size import size_key

# Bytes of a metadata file, compressed or not. A snapshot takes about 1 KB of it, and a Lambda has about 500 MB.
MAX_METADATA = 32_000_000
# The operation of a snapshot without a summary, which only version 1 of the format allows, or of an unknown operation.
UNKNOWN = "unknown"
_MAX_ID = 2**63 - 1  # ids and counts are longs
_LATEST = 253_402_300_799_999  # the last millisecond of the year 9999
_METADATA = re.compile(r"metadata/[^/]+\.metadata\.json(\.gz)?")
# A table without a catalog numbers its files. Its writer commits by creating the next file.
_COUNTED = re.compile(r"metadata/v[0-9]+(\.gz)?\.metadata\.json(\.gz)?")
_LOCATION = re.compile(r"s3[an]?://([^/]+)/(.+)")


class BadMetadata(ValueError):
    """Content that is no metadata file of an Iceberg table. The message names the expected and the found content."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A commit of a table. ``id`` and ``parent_id`` are texts, because some JSON parsers cannot hold numbers as large.
    The counts come from the summary; None if the writer did not count."""

    id: str
    parent_id: str | None
    sequence_number: int
    committed_at: Instant
    operation: str
    added_data_files: int | None = None
    added_records: int | None = None
    added_files_size: int | None = None
    deleted_data_files: int | None = None
    total_records: int | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    """The content of a metadata file. ``current`` is the newest snapshot of the branch `main`; ``former`` are the
    locations of earlier metadata files, last that from which this file was made."""

    current: str | None
    snapshots: Mapping[str, Snapshot]
    former: tuple[str, ...]


def is_metadata(dataset: Dataset, key: str) -> bool:
    """Whether an object is a metadata file of the table."""
    return key.startswith(dataset.prefix) and _METADATA.fullmatch(key[len(dataset.prefix) :]) is not None


def is_counted(dataset: Dataset, key: str) -> bool:
    """Whether an object is a metadata file of a table without a catalog, such as ``v3.metadata.json``."""
    return key.startswith(dataset.prefix) and _COUNTED.fullmatch(key[len(dataset.prefix) :]) is not None


def key_of(dataset: Dataset, location: str) -> str | None:
    """The key of a metadata file at the location that a table or a catalog names; None if it is not in the dataset."""
    found = _LOCATION.fullmatch(location)
    if found is None or found[1] != dataset.bucket or not is_metadata(dataset, found[2]):
        return None
    return found[2]


def parse(content: bytes) -> Metadata:
    """The content of a metadata file, compressed with gzip or not. Raises `BadMetadata` for anything else."""
    try:
        document = json.loads(_decompressed(content))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadMetadata):
            raise
        raise BadMetadata(f"expected the metadata of an Iceberg table in JSON, got {error}") from error
    try:
        snapshots = [_snapshot(entry) for entry in document.get("snapshots") or ()]
        current = document.get("current-snapshot-id")
        former = tuple(str(entry["metadata-file"]) for entry in document.get("metadata-log") or ())
        known = {snapshot.id: snapshot for snapshot in snapshots}
        return Metadata(_id(current), known, former)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadMetadata(f"expected the metadata of an Iceberg table, got {type(error).__name__}: {error}") from error


def _decompressed(content: bytes) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(content, MAX_METADATA + 1)
    except zlib.error as error:
        raise BadMetadata(f"expected a metadata file that gzip can decompress, got {error}") from error
    if len(text) > MAX_METADATA:
        raise BadMetadata(f"expected a metadata file of at most {MAX_METADATA} bytes after decompression, got more")
    if not stream.eof:
        raise BadMetadata("expected a complete metadata file, got a truncated one")
    return text


def _snapshot(entry: Mapping[str, Any]) -> Snapshot:
    summary = entry.get("summary") or {}

    def count(name: str, default: int | None) -> int | None:
        return _bounded(summary[name], 0, _MAX_ID) if name in summary else default

    operation = str(summary.get("operation", UNKNOWN))
    missing = 0 if summary else None  # writers leave out counts of 0
    return Snapshot(
        id=str(_bounded(entry["snapshot-id"], -_MAX_ID, _MAX_ID)),
        parent_id=_id(entry.get("parent-snapshot-id")),
        sequence_number=_bounded(entry.get("sequence-number", 0), 0, _MAX_ID),
        committed_at=_bounded(entry["timestamp-ms"], 0, _LATEST),
        operation=operation if operation in get_args(Operation) else UNKNOWN,
        added_data_files=count("added-data-files", missing),
        added_records=count("added-records", missing),
        added_files_size=count("added-files-size", missing),
        deleted_data_files=count("deleted-data-files", missing),
        total_records=count("total-records", None),
    )


def _id(value: Any) -> str | None:
    """A snapshot id as text; None if there is no snapshot, for which some writers use -1."""
    return None if value in (None, -1) else str(_bounded(value, -_MAX_ID, _MAX_ID))


def _bounded(value: Any, least: int, most: int) -> int:
    """A whole number of the file, which may be given as text. Raises ValueError if it is out of bounds."""
    number = int(value)
    if not least <= number <= most:
        raise ValueError(f"expected a number from {least} to {most}, got {number}")
    return number


def main(metadata: Metadata) -> Iterator[Snapshot]:
    """The snapshots of the branch `main` that have not expired, newest first."""
    seen: set[str] = set()
    name = metadata.current
    while name is not None and name in metadata.snapshots and name not in seen:
        seen.add(name)
        yield metadata.snapshots[name]
        name = metadata.snapshots[name].parent_id


def counts(dataset: Dataset, snapshot: Snapshot) -> bool:
    """Whether a snapshot is an event: the dataset names its operation, or the operation is unknown."""
    return snapshot.operation == UNKNOWN or snapshot.operation in dataset.operations


def snapshot_event(name: str, dataset: Dataset, snapshot: Snapshot, now: Instant) -> Event:
    """The event that a table has a new snapshot. Its id depends on the snapshot alone: each snapshot counts once."""
    return Event(
        id=ids.event_id("partition", name, snapshot.id),
        kind="partition",
        key=partition_key(name),
        instant=snapshot.committed_at,
        accepted_at=now,
        partition={"snapshot": snapshot.id},
        dataset=name,
        path=f"s3://{dataset.bucket}/{dataset.prefix}",
        payload=asdict(snapshot),
    )


def size_event(name: str, dataset: Dataset, snapshot: Snapshot, now: Instant) -> Event:
    """The event that a snapshot added data files, with their size in bytes (T9)."""
    return replace(
        snapshot_event(name, dataset, snapshot, now),
        id=ids.event_id("size", name, "snapshot", snapshot.id),
        kind="size",
        key=size_key(name),
        size=snapshot.added_files_size or 0,
    )
