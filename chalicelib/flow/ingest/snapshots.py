"""Turn a metadata file of an Iceberg table into one event for each new snapshot (T21).

A snapshot is a partition of the dataset. Its row registers the snapshot, and is the outbox of its event. Parents are
stored first. So all ancestors of a registered snapshot are registered, and a walk back along `main` ends there.
"""

from __future__ import annotations

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events import iceberg
from chalicelib.core.events.iceberg import Metadata, Snapshot
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.rows.definition import PrefixRow
from chalicelib.core.rows.event import CountedObject, Partition
from chalicelib.core.text import count_of
from chalicelib.core.triggers.size import size_key
from chalicelib.core.writes import Create
from chalicelib.flow.each import run_each
from chalicelib.flow.ingest.outbox import apply_outbox
from chalicelib.log import logger
from chalicelib.ports import Ports

# A commit updates the catalog right after it has written its file. A file that the catalog does not name within this
# time was not committed.
CONFIRM_WITHIN: Millis = 2 * MINUTE


class NotCommittedYet(RuntimeError):
    """The catalog does not name a recent metadata file yet; SQS delivers its notification again."""


def match_metadata(ports: Ports, name: str, dataset: Dataset, key: str, put_at: Instant) -> str:
    """Register the new committed snapshots of a metadata file and apply their events. Returns what was done, in words.

    Raises BadMetadata or NotCommittedYet: then SQS delivers the notification again.
    """
    if not iceberg.is_metadata(dataset, key):
        return f"no metadata file of the table {name}"
    metadata = read(ports, dataset, key)
    if metadata is None:
        return f"the metadata file of {name} is gone"
    committed = _committed(ports, name, dataset, key, put_at, metadata)
    if committed is None:
        return f"no catalog or later metadata file confirms what is new in {name}"
    new = unknown(ports, name, dataset, committed)
    # All snapshots are stored before any event is applied, so an error of one schedule does not stop later snapshots.
    stored = [row for snapshot in new for row in register(ports, name, dataset, snapshot, key)]
    run_each(stored, lambda row: apply_outbox(ports, row))
    left_out = sum(not iceberg.counts(dataset, snapshot) for snapshot in new)
    text = f"{count_of(len(new) - left_out, 'new snapshot')} of {name}"
    return f"{text}, {left_out} left out by operation" if left_out else text


def read(ports: Ports, dataset: Dataset, key: str) -> Metadata | None:
    """A metadata file; None if it does not exist. Raises BadMetadata with the address of the file."""
    try:
        content = ports.lake.content(dataset.bucket, key, iceberg.MAX_METADATA)
        return iceberg.parse(content) if content is not None else None
    except ValueError as error:
        raise iceberg.BadMetadata(f"s3://{dataset.bucket}/{key}: {error}") from error


def _committed(
    ports: Ports, name: str, dataset: Dataset, key: str, put_at: Instant, metadata: Metadata
) -> Metadata | None:
    """The metadata that was certainly committed: this file's, or that of the file on which it is based."""
    if dataset.single_writer or iceberg.is_counted(dataset, key):
        return metadata
    if dataset.glue_table is not None:
        return metadata if _is_in_catalog(ports, name, dataset, key, put_at) else None
    base = iceberg.key_of(dataset, metadata.former[-1]) if metadata.former else None
    return read(ports, dataset, base) if base is not None else None


def _is_in_catalog(ports: Ports, name: str, dataset: Dataset, key: str, put_at: Instant) -> bool:
    """Whether the catalog names, or has named, a metadata file as the current one of the table.

    Raises NotCommittedYet if it does not, but the file is younger than ``CONFIRM_WITHIN``.
    """
    location = ports.lake.metadata_location(str(dataset.glue_table))
    current = iceberg.key_of(dataset, location) if location is not None else None
    where = f"the table {dataset.glue_table} of the Glue catalog"
    if current == key:
        return True
    later = read(ports, dataset, current) if current is not None else None
    if later is not None and key in [iceberg.key_of(dataset, former) for former in later.former]:
        return True
    if ports.clock.now() - put_at < CONFIRM_WITHIN:
        raise NotCommittedYet(f"expected {where} to have named {key}, got {location}; Sluice will check again")
    extra = {"dataset": name, "key": key, "current": location}
    if current is None:
        hint = f"{where} with its metadata under s3://{dataset.bucket}/{dataset.prefix}"
        logger.error("table not in the catalog", extra={**extra, "expected": hint})
    else:
        logger.warning("metadata never committed", extra=extra)
    return False


def unknown(ports: Ports, name: str, dataset: Dataset, metadata: Metadata) -> list[Snapshot]:
    """The snapshots of `main` that are not registered, parents first. Snapshots older than the dataset do not count."""
    row = ports.rows.get(PrefixRow, dataset.bucket, dataset.prefix)
    since: Instant = row.since if row is not None else ports.clock.now()
    found: list[Snapshot] = []
    for snapshot in iceberg.main(metadata):
        if snapshot.committed_at < since or ports.rows.get(Partition, name, (snapshot.id,)) is not None:
            break
        found.append(snapshot)
    return found[::-1]


def register(
    ports: Ports, name: str, dataset: Dataset, snapshot: Snapshot, key: str
) -> list[Partition | CountedObject]:
    """Store a snapshot, with its bytes for size leaves, in one transaction. Returns the outboxes to apply.

    They are empty for a snapshot that is left out, and for one that another invocation has stored.
    """
    now = ports.clock.now()
    event = iceberg.snapshot_event(name, dataset, snapshot, now)
    if not iceberg.counts(dataset, snapshot):
        ports.ledger.commit([Create(Partition(name, (snapshot.id,), event, key))])
        return []
    rows: list[Partition | CountedObject] = [Partition(name, (snapshot.id,), event, key, wake_at=now)]
    if snapshot.added_files_size and ports.catalog.subscriptions(size_key(name), 1, None).items:
        sized = iceberg.size_event(name, dataset, snapshot, now)
        rows.append(CountedObject(name, f"snapshot {snapshot.id}", "", sized, wake_at=now))
    return rows if ports.ledger.commit([Create(row) for row in rows]) is None else []
