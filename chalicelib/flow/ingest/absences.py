"""What a fire of an absent leaf says: what did not come, and what did (T18, T29)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events.periods import partitions_of
from chalicelib.core.instants import Instant
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event, NewestPartition, Partition
from chalicelib.core.triggers.leaf import TimedLeaf
from chalicelib.core.writes import ExpectNoPartition, Write
from chalicelib.ports import Ports


def described(leaf: TimedLeaf, event: Event) -> Event:
    """The event of a fire, with what the leaf tells about it: what did not come, and in which span."""
    dataset = next((found.name for found in leaf.datasets()), None)
    return replace(event, dataset=dataset, payload=leaf.told(event.instant))


def of_period(ports: Ports, leaf: TimedLeaf, event: Event) -> tuple[Event, list[Write]] | str:
    """The event that the partition of a period is absent, and the condition that it has not come by the commit. In
    place of both, why the fire does not count, in words.

    The event has the values of the partition that is missing, and the partition that came last."""
    [name], due = leaf.periodic(), event.instant
    lacking = missing(ports, leaf, due)
    if lacking is None:
        return f"{name} has no period that is due at this instant"
    if not lacking:
        return f"the partition of {name} has come"
    newest = ports.rows.get(NewestPartition, name)
    last = {"partition": dict(newest.partition), "at": newest.at} if newest is not None else None
    absent = replace(described(leaf, event), partition=lacking[0])
    absent = replace(absent, payload={**(absent.payload or {}), "newest": last})
    return absent, [ExpectNoPartition(name, tuple(lacking[0].values()))]


def missing(ports: Ports, leaf: TimedLeaf, due: Instant) -> list[dict[str, str]] | None:
    """The values of the partitions that are not registered, of the period of which a leaf is due at an instant. None if
    the dataset has no such period, or another instant for it: its periods have changed."""
    [name] = leaf.periodic()
    row = ports.rows.get(Definition, "dataset", name)
    period = leaf.period_due_at(due) if row is not None else None
    if row is None or period is None or leaf.next_due(due, due - 1) != due:
        return None
    expected = partitions_of(Dataset.model_validate(row.document), period)
    return [values for values in expected if ports.rows.get(Partition, name, tuple(values.values())) is None]
