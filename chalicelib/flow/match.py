"""match: an S3 notification becomes a partition, its event, and progress of the schedules that wait for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core import match
from chalicelib.core.calendar import Instant
from chalicelib.core.model import Dataset
from chalicelib.core.rows import Partition
from chalicelib.core.writes import Create, Put
from chalicelib.flow.apply import apply_to_all
from chalicelib.ports import Ports

PAGE = 200  # index rows; progress is kept after each page, so a crash repeats one page at most


@dataclass(frozen=True, slots=True)
class ObjectCreated:
    """An S3 notification, decoded: the key is as the object is named, the instant as S3 told it."""

    bucket: str
    key: str
    at: Instant


def match_object(ports: Ports, created: ObjectCreated) -> str:
    """Find the partition of an object and, if the object makes it ready, tell it. Returns what was done, in words."""
    found = ports.catalog.dataset_of(created.bucket, created.key)
    if found is None:
        return "no dataset has this prefix"
    name, dataset = found
    located = match.locate(dataset, created.key)
    if located is None:
        return f"not in a partition of {name}"
    if not match.makes_ready(dataset, located):
        return f"partition {'/'.join(located.values)} of {name} is not ready yet"
    register(ports, name, dataset, located.values, created.at, created.key)
    return f"partition {'/'.join(located.values)} of {name} is ready"


def register(
    ports: Ports, name: str, dataset: Dataset, values: tuple[str, ...], at: Instant, object_key: str
) -> Partition:
    """Store that a partition is ready, then tell every schedule that waits for it. Once, however often it is called."""
    now = ports.clock.now()
    event = match.partition_event(name, dataset, values, at, now)
    partition = Partition(name, values, event, object_key, wake_at=now)
    if ports.ledger.commit([Create(partition)]) is not None:
        partition = ports.catalog.partition(name, values) or partition
        if partition.wake_at is None:
            return partition  # seen before, and every schedule has it
    return tell(ports, partition)


def resume(ports: Ports, dataset: str, values: tuple[str, ...]) -> None:
    """Go on where somebody stopped telling a partition."""
    partition = ports.catalog.partition(dataset, values)
    if partition is not None and partition.wake_at is not None:
        tell(ports, partition)


def tell(ports: Ports, partition: Partition) -> Partition:
    """Apply the event of a partition to all schedules of its key, page by page; only then is it settled.

    A schedule that cannot take it keeps none of the others from it; the partition stays open then, and is told again.
    """
    failed: list[ExceptionGroup[Exception]] = []
    cursor = partition.cursor
    while True:
        now = ports.clock.now()
        page = ports.catalog.subscriptions(partition.event.key, PAGE, cursor)
        cursor = page.cursor
        try:
            apply_to_all(ports, partition.event, page.items, now)
        except ExceptionGroup as group:
            failed.append(group)
        if not failed:
            partition = replace(partition, cursor=cursor, leases=0, wake_at=now if cursor else None)
            ports.ledger.put_all([Put(partition)])
        if cursor is None and failed:
            raise ExceptionGroup(f"partition {partition.values} of {partition.dataset} is not told to all", failed)
        if cursor is None:
            return partition
