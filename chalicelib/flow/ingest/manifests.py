"""Whether a partition with a manifest is ready: all objects that the manifest lists are there (T8).

The manifest is read, and its folder listed, when the manifest comes, and when one of the missing objects comes. A row
names that object; as long as it is missing, no other object can make the partition ready. It is chosen by a digest, so
for n missing objects in any order some log n listings are enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from chalicelib.core import ids
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events import manifests, versions
from chalicelib.core.events.partitions import Located, ObjectCreated
from chalicelib.core.events.versions import ObjectVersion
from chalicelib.core.instants import DAY, Millis
from chalicelib.core.rows.event import ManifestRow, Partition
from chalicelib.core.writes import Create, Replace
from chalicelib.flow import registered
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, Ports, StoredObject, too_many_conflicts

MAX_FOLDERS = 20  # outside the folder of the partition, that are listed for one manifest
# How long the row of a complete manifest is kept, so that an invocation that has listed earlier meets it.
COMPLETE_LIFE: Millis = DAY


def key_of(dataset: Dataset, located: Located) -> str:
    """The key of the manifest of a partition."""
    return f"{located.folder}{dataset.ready.manifest}"


def complete(
    ports: Ports, name: str, dataset: Dataset, located: Located, created: ObjectCreated
) -> ObjectVersion | Partition | str:
    """The version of the manifest of an object's partition, if all that it lists is there; else what is missing. The
    partition, if it was ready before, and the object is neither the manifest nor one that is missing."""
    is_manifest = created.key == key_of(dataset, located)
    for _ in range(MAX_CONFLICTS):
        row = ports.rows.get(ManifestRow, name, located.values)
        known = _known(ports, name, dataset, located, created, row) if not is_manifest else None
        if known is not None:
            return known
        checked = _check(ports, name, dataset, located, created, row)
        if checked is None:
            return "its manifest has not come"
        if _same(checked, row):
            break
        if ports.ledger.commit([Create(checked) if row is None else Replace(checked)]) is None:
            if checked.problem:
                extra = {"dataset": name, "key": checked.object_key, "expected": checked.problem}
                logger.error("bad manifest", extra=extra)
            break
    else:
        raise too_many_conflicts(f"checking the manifest {key_of(dataset, located)}", "its notification comes again")
    return checked.why if checked.waits else _version(checked)


def _known(
    ports: Ports, name: str, dataset: Dataset, located: Located, created: ObjectCreated, row: ManifestRow | None
) -> Partition | str | None:
    """What is known without a look into the bucket: what is missing besides this object, or the partition."""
    if row is not None and row.waits:
        return row.why if row.waits_for != created.key else None
    return registered.of_folder(ports, name, dataset, located.texts)


def _check(
    ports: Ports, name: str, dataset: Dataset, located: Located, created: ObjectCreated, row: ManifestRow | None
) -> ManifestRow | None:
    """The row of a manifest as the bucket is now; None if there is no manifest."""
    now, key = ports.clock.now(), key_of(dataset, located)
    fresh = ManifestRow(name, located.values, key, created.at)
    if row is not None:
        fresh = replace(fresh, rev=row.rev + 1, unknown=row.unknown)
    try:
        stored = ports.lake.stored(dataset.bucket, key, manifests.MAX_MANIFEST)
        if stored is None:
            return None
        version = _read_version(stored, created if created.key == key else None)
        etag, sequencer = version.etag or None, version.sequencer or None
        fresh = replace(fresh, put_at=version.at, put_etag=etag, sequencer=sequencer)
        wanted = manifests.keys_of(stored.content, dataset.bucket, located.folder)
    except ValueError as error:
        return replace(fresh, problem=f"{error}; put a correct manifest")
    problem = _foreign_inside(ports, name, dataset, located, wanted)
    if not problem:
        inside, outside = manifests.split(wanted, located.folder)
        there = ports.lake.names(dataset.bucket, located.folder)
        missing = [each for each in inside if each not in there]
        if missing:
            return replace(fresh, waits_for=min(missing, key=ids.digest), missing=len(missing))
        problem = _outside(ports, name, dataset, outside)
    return replace(fresh, problem=problem, expires_at=None if problem else now + COMPLETE_LIFE)


def _outside(ports: Ports, name: str, dataset: Dataset, wanted: Iterable[str]) -> str:
    """What is missing of the objects outside the partition's folder; empty if nothing is. No notification of them leads
    to this partition. Whether objects of other namespaces exist is not told."""
    folders = {key[: key.rfind("/") + 1] or key for key in wanted}
    if len(folders) > MAX_FOLDERS:
        return f"expected objects in at most {MAX_FOLDERS} other folders, got {len(folders)}; put a shorter manifest"
    namespace = name.partition(".")[0]
    from chalicelib.flow.definitions.prefixes import Place, is_foreign  # few objects are manifests

    foreign = [each for each in sorted(folders) if is_foreign(ports, namespace, Place(dataset.bucket, each))]
    if foreign:
        return _belongs_to_others(dataset, foreign[0])
    there = {key for folder in folders for key in ports.lake.names(dataset.bucket, folder)}
    missing = [f"s3://{dataset.bucket}/{key}" for key in wanted if key not in there]
    hint = "they are outside the folder of the partition: put the manifest again when they are there"
    return f"expected {manifests.others(missing)}, got nothing; {hint}" if missing else ""


def _foreign_inside(ports: Ports, name: str, dataset: Dataset, located: Located, wanted: Iterable[str]) -> str:
    """What is wrong if objects in the partition's folder are for another namespace, to which a prefix in it belongs. No
    notification of them leads to this partition, either."""
    from chalicelib.flow.definitions.prefixes import Place, foreign_in  # few objects are manifests

    place = Place(dataset.bucket, located.folder)
    found = foreign_in(ports, name.partition(".")[0], place, wanted)
    return _belongs_to_others(dataset, min(found)) if found else ""


def _belongs_to_others(dataset: Dataset, folder: str) -> str:
    got = f"s3://{dataset.bucket}/{folder}"
    return f"expected objects that belong to no other namespace, got some in {got}; put a manifest without them"


def _read_version(stored: StoredObject, created: ObjectCreated | None) -> ObjectVersion:
    """The version of the manifest that was read: that of its own notification, if this is about the same one."""
    read = ObjectVersion(stored.at, stored.etag)
    if created is None:
        return read
    reported = created.version
    equal = bool(read.etag) and read.etag == reported.etag
    return reported if equal or versions.is_same(read, reported) else read


def _version(row: ManifestRow) -> ObjectVersion:
    return ObjectVersion(row.put_at, row.put_etag or "", row.sequencer or "")


def _same(checked: ManifestRow, row: ManifestRow | None) -> bool:
    """Whether the stored row already says what a check has found."""
    return row is not None and replace(checked, rev=row.rev, expires_at=row.expires_at) == row
