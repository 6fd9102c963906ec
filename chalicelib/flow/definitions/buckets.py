"""Check the buckets of datasets: Sluice gets notifications only from the buckets that it watches (T20)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from chalicelib.core.access.allowed import Named
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.definitions import allowed
from chalicelib.ports import Ports

HINT = (
    "turn on EventBridge notifications on the bucket, add the bucket to the stack parameter WatchedBuckets, "
    "and run `make deploy`"
)


def check(ports: Ports, namespace: str, dataset: Mapping[str, Any]) -> None:
    """Raise ``invalid`` for a dataset in a bucket that is not watched, or below a prefix that the list of its namespace
    lacks, unless an administrator gave it. ``bucket`` is a real name, not ``lake``."""
    bucket, prefix = dataset["bucket"], dataset["prefix"]
    check_watched(ports, bucket)
    try:
        allowed.check(ports, namespace, [Named("buckets", f"s3://{bucket}/{prefix}", "prefix")])
    except SluiceError:
        if all(row.owner != namespace for row in ports.catalog.prefixes_around(bucket, prefix)):
            raise


def check_watched(ports: Ports, bucket: str) -> None:
    """Raise ``invalid`` for a bucket that is not watched."""
    watched = ports.settings.notified_buckets
    if bucket not in watched:
        raise invalid("bucket", f"a bucket that this installation watches ({', '.join(watched)})", bucket, HINT)


def real_name(ports: Ports, bucket: str) -> str:
    """The name of a bucket: ``lake`` means the lake bucket that the template creates."""
    return ports.settings.lake_bucket if bucket == "lake" else bucket


def not_watched(ports: Ports, names: Collection[str]) -> list[str]:
    """A sentence for each of these datasets whose bucket is not watched.

    That happens if the bucket was removed from the parameter, or if the dataset is older than this check.
    """
    rows = [ports.rows.get(Definition, "dataset", name) for name in sorted(names)]
    buckets = {row.name: str(row.document["bucket"]) for row in rows if row is not None}
    return [
        f"dataset {name}: new objects are not noticed, because bucket {bucket} is not watched; {HINT}"
        for name, bucket in buckets.items()
        if bucket not in ports.settings.notified_buckets
    ]
