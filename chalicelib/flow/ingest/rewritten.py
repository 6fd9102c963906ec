"""Partitions that are written again: each version of a flag or manifest counts once, however it is reported (T22)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chalicelib.core.events import build, versions
from chalicelib.core.events.versions import ObjectVersion
from chalicelib.core.instants import SECOND, Instant
from chalicelib.core.rows.event import CountedObject, Partition
from chalicelib.core.writes import Create, Put
from chalicelib.flow.ingest.outbox import apply_outbox
from chalicelib.ports import Ports


def register_again(ports: Ports, known: Partition, object_key: str, version: ObjectVersion) -> bool:
    """Apply the event that a known partition was written again, once for each version of its flag or manifest. Returns
    False for a report of the version that made it ready, or of an earlier one."""
    first = _first(known)
    if versions.is_same(first, version):
        if version.sequencer and not first.sequencer:
            ports.ledger.put_all([Put(replace(known, sequencer=version.sequencer))])
        return False
    if not versions.is_later(version, first):
        return False
    row = _known(ports, known.dataset, object_key, version) or _created(ports, known, object_key, version)
    if row.wake_at is not None:
        apply_outbox(ports, row)
    return True


def version_name(second: Instant) -> str:
    """The name of a version in the key of its row; only a second version of one second has a longer name."""
    return f"rewritten {second}"


def _first(known: Partition) -> ObjectVersion:
    at = known.put_at if known.put_at is not None else known.event.instant
    return ObjectVersion(at, known.put_etag or "", known.sequencer or "")


def _of(row: CountedObject) -> ObjectVersion:
    return ObjectVersion(row.event.instant, row.put_etag or "", row.sequencer or "")


def _known(ports: Ports, dataset: str, object_key: str, version: ObjectVersion) -> CountedObject | None:
    """The row of this version, from any report; None if there is none. A row whose report had no sequencer gets
    that of this report, so that the next version has another one."""
    found = [row for row in _near(ports, dataset, object_key, version) if versions.is_same(_of(row), version)]
    exact = next((row for row in found if row.sequencer and version.sequencer), None)
    row = exact or min(found, key=lambda row: abs(_of(row).second - version.second), default=None)
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


def _created(ports: Ports, known: Partition, object_key: str, version: ObjectVersion) -> CountedObject:
    """The stored row of a new version. Another invocation may store it at the same time, or another of this second."""
    now = ports.clock.now()
    event = build.rewritten_event(known.event, version, now)
    for name in (version_name(version.second), _longer(version.second, version)):
        row = CountedObject(known.dataset, object_key, name, event, wake_at=now,
                            put_etag=version.etag or None, sequencer=version.sequencer or None)  # fmt: skip
        if ports.ledger.commit([Create(row)]) is None:
            return row
        stored = ports.rows.get(CountedObject, known.dataset, object_key, name)
        if stored is not None and versions.is_same(_of(stored), version):
            return stored
    raise RuntimeError(f"expected to store a version of {object_key}, got another one under its name; it comes again")
