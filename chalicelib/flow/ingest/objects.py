"""Turn an S3 notification into events, and apply these to the schedules that wait for them."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events import build, partitions
from chalicelib.core.events.partitions import Located, ObjectCreated
from chalicelib.core.events.values import decoded
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.event import CountedObject, Outbox, Partition
from chalicelib.core.rows.ignored import noted
from chalicelib.core.triggers.size import size_key
from chalicelib.core.writes import Create, Put
from chalicelib.flow.ingest.outbox import apply_outbox
from chalicelib.flow.ingest.snapshots import match_metadata
from chalicelib.log import logger
from chalicelib.ports import Ports


def match_object(ports: Ports, created: ObjectCreated) -> str:
    """Find the partition of an object and, if it is ready now, apply its event. Returns what was done, in words.

    Raises ``invalid`` for an object in a folder that is no valid partition. Its notification then goes to the
    dead-letter queue of objects, which has an alarm."""
    found = ports.catalog.dataset_of(created.bucket, created.key)
    if found is None:
        return "no dataset has this prefix"
    name, dataset = found
    if dataset.format == "iceberg":
        return match_metadata(ports, name, dataset, created.key, created.at)
    located = partitions.locate(dataset, created.key)
    note_ignored(ports, name, created, partitions.why_ignored(dataset, created.key, located))
    if located is not None:
        partitions.check_values(dataset, located)
    counted = count_object(ports, name, dataset, created)
    if located is None:
        return f"not in a partition of {name}{counted}"
    values = "/".join(located.values)
    if not is_ready(ports, dataset, located):
        return f"partition {values} of {name} is not ready yet{counted}"
    known = register(ports, name, dataset, located.texts, created.at, created.key)
    if partitions.is_rewritten(dataset, located, known.event.instant, created.at):
        register_again(ports, known, created.at, created.key)
        return f"partition {values} of {name} was written again{counted}"
    return f"partition {values} of {name} is ready{counted}"


def note_ignored(ports: Ports, name: str, created: ObjectCreated, why: str) -> None:
    """Note an object of a dataset that belongs to no partition for ``why``, if that is a reason: the dataset and its
    schedules say so."""
    if not why:
        return
    now, shown = ports.clock.now(), "".join(sign if sign.isprintable() else "?" for sign in created.key)
    found = {"key": shown, "at": iso(created.at), "why": why}
    row = noted(ports.catalog.ignored(name), name, found, now)
    if row is not None:
        ports.ledger.commit([Put(row)])


def is_ready(ports: Ports, dataset: Dataset, located: Located) -> bool:
    """Whether the partition of an object is ready now. S3 reads are strongly consistent, so the notification of the
    last listed object finds all of them (T8)."""
    if not partitions.makes_ready(dataset, located):
        return False
    if dataset.ready.manifest is None:
        return True
    manifest = ports.lake.text(dataset.bucket, located.folder + dataset.ready.manifest)
    if manifest is None:
        return False
    names = partitions.listed(manifest)
    if names is None:
        hint = "a JSON list of names, an object with files or entries, or one name to a line"
        logger.error("bad manifest", extra={"folder": located.folder, "expected": hint})
        return False
    prefix = f"s3://{dataset.bucket}/"
    wanted = {name.removeprefix(prefix) if name.startswith(prefix) else located.folder + name for name in names}
    return wanted <= ports.lake.names(dataset.bucket, located.folder)


def count_object(ports: Ports, name: str, dataset: Dataset, created: ObjectCreated) -> str:
    """Count the bytes of an object once, if a size leaf needs them (T9). Returns what was done, in words. An empty
    object has none: if content follows under its key, that counts."""
    is_data = created.size > 0 and partitions.is_data(created.key.removeprefix(dataset.prefix))
    if not is_data or not ports.catalog.subscriptions(size_key(name), 1, None).items:
        return ""
    now = ports.clock.now()
    event = build.size_event(name, dataset, created.key, created.etag, created.size, created.at, now)
    etag = created.etag if dataset.count_overwrites else ""
    row = CountedObject(name, created.key, etag, event, wake_at=now)
    if ports.ledger.commit([Create(row)]) is not None:
        row = ports.catalog.counted_object(name, created.key, etag) or row
        if row.wake_at is None:
            return ", its bytes were counted before"
    apply_outbox(ports, row)
    return f", its {created.size} bytes counted"


def register(
    ports: Ports, name: str, dataset: Dataset, texts: tuple[str, ...], at: Instant, object_key: str
) -> Partition:
    """Store that a partition is ready, then apply its event to the schedules that wait for it. Idempotent. ``texts``
    are its values as they stand in the folder."""
    now, values = ports.clock.now(), tuple(map(decoded, texts))
    event = replace(build.partition_event(name, dataset, texts, at, now), by=ports.requester)
    partition = Partition(name, values, event, object_key, wake_at=now)
    if ports.ledger.commit([Create(partition)]) is not None:
        partition = ports.catalog.partition(name, values) or partition
        if partition.wake_at is None:
            return partition  # registered before, and applied to every schedule
    return apply_outbox(ports, partition)


def register_again(ports: Ports, known: Partition, at: Instant, object_key: str) -> None:
    """Apply the event that a known partition was written again, once for each instant of its flag or manifest (T22)."""
    now = ports.clock.now()
    event = build.rewritten_event(known.event, at, now)
    row = CountedObject(known.dataset, object_key, f"rewritten {at}", event, wake_at=now)
    if ports.ledger.commit([Create(row)]) is not None:
        row = ports.catalog.counted_object(row.dataset, row.object_key, row.etag) or row
        if row.wake_at is None:
            return  # a repeat of the notification
    apply_outbox(ports, row)


def resume(ports: Ports, outbox: Outbox | None) -> None:
    """Continue to apply an event whose outbox is still open."""
    if outbox is not None and outbox.wake_at is not None:
        apply_outbox(ports, outbox)
