"""Turn an S3 notification into events, and apply these to the schedules that wait for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.events import build, partitions, versions
from chalicelib.core.events.partitions import NotCounted, ObjectCreated
from chalicelib.core.events.versions import ObjectVersion
from chalicelib.core.instants import SECOND, Instant, iso
from chalicelib.core.partition_values import check_value
from chalicelib.core.rows.event import CountedObject, Outbox, Partition
from chalicelib.core.rows.ignored import IgnoredObjects, noted
from chalicelib.core.triggers.size import size_key
from chalicelib.core.writes import Create, Put
from chalicelib.flow import registered
from chalicelib.flow.ingest import manifests
from chalicelib.flow.ingest.outbox import apply_outbox
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
    if located is None or partitions.no_period(dataset, located) is not None:
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
    again = dataset.told_again_by == "objects"
    known = register(ports, name, dataset, located.texts, created.at, created.key, version if again else None)
    second = partitions.other_folder(dataset, located, known.event.path) if dataset.period is not None else None
    if second is not None:
        note_ignored(ports, name, created, second)
        return f"in a second folder of partition {values} of {name}{counted}"
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
    are its values as they stand in the folder. A partition that was registered with these before its dataset had a
    period stays as it is. ``version`` is that of its flag or manifest, if a further one makes it ready again."""
    now, values = ports.clock.now(), partitions.identity(dataset, texts)
    older = registered.as_in_folder(ports, name, dataset, texts)
    if older is not None:
        return apply_outbox(ports, older) if older.wake_at is not None else older
    event = replace(build.partition_event(name, dataset, texts, at, now), by=ports.requester)
    partition = Partition(name, values, event, object_key, wake_at=now)
    if version is not None:
        etag, sequencer = version.etag or None, version.sequencer or None
        partition = replace(partition, put_at=version.at, put_etag=etag, sequencer=sequencer)
    if ports.ledger.commit([Create(partition)]) is not None:
        partition = ports.rows.get(Partition, name, values) or partition
        if partition.wake_at is None:
            return partition  # registered before, and applied to every schedule
    return apply_outbox(ports, partition, watched=dataset.fresh is not None)


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
    registered.require_new(ports, name, dataset, texts, "partition")
    return register(ports, name, dataset, texts, ports.clock.now(), "")


def resume(ports: Ports, outbox: Outbox | None) -> None:
    """Continue to apply an event whose outbox is still open."""
    if outbox is not None and outbox.wake_at is not None:
        apply_outbox(ports, outbox)


def register_again(ports: Ports, known: Partition, object_key: str, version: ObjectVersion) -> bool:
    """Apply the event that a known partition was written again, once for each version of its flag or manifest. Returns
    False for a report of the version that made it ready, or of an earlier one."""
    first = _first_version(known)
    if versions.is_same(first, version):
        if version.sequencer and not first.sequencer:
            ports.ledger.put_all([Put(replace(known, sequencer=version.sequencer))])
        return False
    if not versions.is_later(version, first):
        return False
    row = _known_version(ports, known.dataset, object_key, version) or _new_version(ports, known, object_key, version)
    if row.wake_at is not None:
        apply_outbox(ports, row)
    return True


def version_name(second: Instant) -> str:
    """The name of a version in the key of its row; only a second version of one second has a longer name."""
    return f"rewritten {second}"


def _first_version(known: Partition) -> ObjectVersion:
    at = known.put_at if known.put_at is not None else known.event.instant
    return ObjectVersion(at, known.put_etag or "", known.sequencer or "")


def _version_of(row: CountedObject) -> ObjectVersion:
    return ObjectVersion(row.event.instant, row.put_etag or "", row.sequencer or "")


def _known_version(ports: Ports, dataset: str, object_key: str, version: ObjectVersion) -> CountedObject | None:
    """The row of this version, from any report; None if there is none. A row whose report had no sequencer gets
    that of this report, so that the next version has another one."""
    found = [row for row in _near(ports, dataset, object_key, version) if versions.is_same(_version_of(row), version)]
    exact = next((row for row in found if row.sequencer and version.sequencer), None)
    row = exact or min(found, key=lambda row: abs(_version_of(row).second - version.second), default=None)
    if row is not None and version.sequencer and not row.sequencer:
        row = replace(row, sequencer=version.sequencer)
        ports.ledger.put_all([Put(row)])
    return row


def _near(ports: Ports, dataset: str, object_key: str, version: ObjectVersion) -> Iterator[CountedObject]:
    """The rows of the versions of about the same second."""
    for second in (version.second, version.second - SECOND, version.second + SECOND):
        for name in (version_name(second), _longer(second, version)):
            row = ports.rows.get(CountedObject, dataset, object_key, name)
            if row is not None:
                yield row


def _longer(second: Instant, version: ObjectVersion) -> str:
    return f"{version_name(second)} {version.sequencer.lower() or version.etag}"


def _new_version(ports: Ports, known: Partition, object_key: str, version: ObjectVersion) -> CountedObject:
    """The stored row of a new version. Another invocation may store it at the same time, or another of this second."""
    now = ports.clock.now()
    event = build.rewritten_event(known.event, version, now)
    for name in (version_name(version.second), _longer(version.second, version)):
        row = CountedObject(known.dataset, object_key, name, event, wake_at=now,
                            put_etag=version.etag or None, sequencer=version.sequencer or None)  # fmt: skip
        if ports.ledger.commit([Create(row)]) is None:
            return row
        stored = ports.rows.get(CountedObject, known.dataset, object_key, name)
        if stored is not None and versions.is_same(_version_of(stored), version):
            return stored
    raise RuntimeError(f"expected to store a version of {object_key}, got another one under its name; it comes again")
