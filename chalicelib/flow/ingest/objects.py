"""Turn an S3 notification into events, and apply these to the schedules that wait for them."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events import build, partitions
from chalicelib.core.events.partitions import NotCounted, ObjectCreated
from chalicelib.core.events.values import decoded
from chalicelib.core.events.versions import ObjectVersion
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.event import CountedObject, Outbox, Partition
from chalicelib.core.rows.ignored import IgnoredObjects, noted
from chalicelib.core.triggers.size import size_key
from chalicelib.core.writes import Create, Put
from chalicelib.flow.ingest import manifests
from chalicelib.flow.ingest.outbox import apply_outbox
from chalicelib.flow.ingest.rewritten import register_again
from chalicelib.flow.ingest.snapshots import match_metadata
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
    if not partitions.makes_ready(dataset, located):
        return f"partition {values} of {name} is not ready yet{counted}"
    flag, version = created.key, created.version
    if dataset.ready.manifest is not None:
        listed = manifests.complete(ports, name, dataset, located, created)
        if isinstance(listed, str):
            return f"partition {values} of {name} is not ready yet: {listed}{counted}"
        if isinstance(listed, Partition):
            resume(ports, listed)
            return f"partition {values} of {name} is ready{counted}"
        flag, version = manifests.key_of(dataset, located), listed
    again = dataset.rewritten == "again"
    known = register(ports, name, dataset, located.texts, created.at, created.key, version if again else None)
    if again and register_again(ports, known, flag, version):
        return f"partition {values} of {name} was written again{counted}"
    return f"partition {values} of {name} is ready{counted}"


def note_ignored(ports: Ports, name: str, created: ObjectCreated, why: NotCounted | None) -> None:
    """Note an object of a dataset that belongs to no partition for ``why``, if that is a reason: the dataset and its
    schedules say so."""
    if why is None:
        return
    now, shown = ports.clock.now(), "".join(sign if sign.isprintable() else "?" for sign in created.key)
    found = {"key": shown, "at": iso(created.at), **why._asdict()}
    row = noted(ports.rows.get(IgnoredObjects, name), name, found, now)
    if row is not None:
        ports.ledger.commit([Put(row)])


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
        row = ports.rows.get(CountedObject, name, created.key, etag) or row
        if row.wake_at is None:
            return ", its bytes were counted before"
    apply_outbox(ports, row)
    return f", its {created.size} bytes counted"


def register(
    ports: Ports,
    name: str,
    dataset: Dataset,
    texts: tuple[str, ...],
    at: Instant,
    object_key: str,
    version: ObjectVersion | None = None,
) -> Partition:
    """Store that a partition is ready, then apply its event to the schedules that wait for it. Idempotent. ``texts``
    are its values as they stand in the folder. ``version`` is that of its flag or manifest, if a further one makes it
    ready again."""
    now, values = ports.clock.now(), tuple(map(decoded, texts))
    event = replace(build.partition_event(name, dataset, texts, at, now), by=ports.requester)
    partition = Partition(name, values, event, object_key, wake_at=now)
    if version is not None:
        etag, sequencer = version.etag or None, version.sequencer or None
        partition = replace(partition, put_at=version.at, put_etag=etag, sequencer=sequencer)
    if ports.ledger.commit([Create(partition)]) is not None:
        partition = ports.rows.get(Partition, name, values) or partition
        if partition.wake_at is None:
            return partition  # registered before, and applied to every schedule
    return apply_outbox(ports, partition)


def resume(ports: Ports, outbox: Outbox | None) -> None:
    """Continue to apply an event whose outbox is still open."""
    if outbox is not None and outbox.wake_at is not None:
        apply_outbox(ports, outbox)
