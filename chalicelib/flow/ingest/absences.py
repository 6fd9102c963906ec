"""What a fire of an absent leaf says: what did not come, and what did (T18, T29)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events.periods import partitions_of
from chalicelib.core.instants import Instant
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event, NewestPartition, Partition
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import TimedLeaf
from chalicelib.core.triggers.parts import SHOWN
from chalicelib.core.writes import ExpectNoPartition, Write
from chalicelib.flow import many
from chalicelib.ports import Ports


def described(leaf: TimedLeaf, event: Event) -> Event:
    """The event of a fire, with what the leaf tells about it: what did not come, and in which span."""
    dataset = next((found.name for found in leaf.datasets()), None)
    return replace(event, dataset=dataset, payload=leaf.told(event.instant))


def of_period(ports: Ports, leaf: TimedLeaf, event: Event) -> tuple[Event, list[Write]] | str:
    """The event that the partition of a period is absent, and the condition that it has not come by the commit. In
    place of both, why the fire does not count, in words.

    The event has the values of the partition that is missing, and the partition that came last. If a period has
    several, the event has the values that name the period, and under ``missing`` those of the first that are."""
    [name], due = leaf.periodic(), event.instant
    found = _of_due(ports, leaf, due)
    if found is None:
        return f"{name} has no period that is due at this instant"
    if not found.missing:
        return f"{'every' if found.several else 'the'} partition of {name} has come"
    newest = ports.rows.get(NewestPartition, name)
    last = {"partition": dict(newest.partition), "at": newest.at} if newest is not None else None
    absent = replace(described(leaf, event), partition=found.of_period)
    told = {**(absent.payload or {}), "newest": last}
    if found.several:
        told |= {"missing": list(found.missing[:SHOWN]), "missing_count": len(found.missing)}
    return replace(absent, payload=told), [ExpectNoPartition(name, tuple(found.missing[0].values()))]


def missing(ports: Ports, leaf: TimedLeaf, due: Instant) -> tuple[dict[str, str], ...] | None:
    """The values of the partitions that are not registered, of the period of which a leaf is due at an instant. None if
    the dataset has no such period, or another instant for it: its periods have changed."""
    found = _of_due(ports, leaf, due)
    return found.missing if found is not None else None


def over(ports: Ports, schedule: Schedule, job: Job | None, leaves: Sequence[str]) -> tuple[str, ...]:
    """Those of the absent ``leaves`` of which nothing is missing any more. They are about the period of the event that
    has come, which may be one of several partitions of the period."""
    return tuple(leaf for leaf in leaves if job is None or not _lasts(ports, schedule, job.leaves.get(leaf), leaf))


def _lasts(ports: Ports, schedule: Schedule, progress: Progress | None, leaf: str) -> bool:
    rule = next((each.trigger for each in tree.timed_leaves(schedule.trigger) if each.id == leaf), None)
    if progress is None or rule is None or not rule.correlates:
        return False
    return bool(missing(ports, rule, progress.last_at))


@dataclass(frozen=True, slots=True)
class _Due:
    """The partitions of a period that are ``missing``, the values that name the period, and whether it has ``several``
    partitions."""

    missing: tuple[dict[str, str], ...]
    of_period: dict[str, str]
    several: bool


def _of_due(ports: Ports, leaf: TimedLeaf, due: Instant) -> _Due | None:
    """The partitions of the period of which a leaf is due; None as for `missing`."""
    [name] = leaf.periodic()
    row = ports.rows.get(Definition, "dataset", name)
    period = leaf.period_due_at(due) if row is not None else None
    if row is None or period is None or leaf.next_due(due, due - 1) != due:
        return None
    dataset = Dataset.model_validate(row.document)
    expected = partitions_of(dataset, period)
    came = {row.values for row in many.rows(ports, Partition, ((name, tuple(each.values())) for each in expected))}
    lacking = tuple(values for values in expected if tuple(values.values()) not in came)
    named = {key: value for key, value in (expected[0] if expected else {}).items() if key not in dataset.listed}
    return _Due(lacking, named, bool(dataset.listed))
