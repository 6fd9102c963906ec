"""The job of a period (T25): to which a partition belongs, and which parts its leaves wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chalicelib.core.changes import replace
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.events.periods import parts_of
from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.parts import Parts
from chalicelib.core.time.periods import LATEST, Period
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.parts import MAX_JOBS, number_of

TOO_MANY = f"belongs to more than {MAX_JOBS:,} jobs and does not count; write a longer per, or a shorter window"


@dataclass(frozen=True, slots=True)
class Place:
    """A job of a period to which a partition belongs: the ``period`` of the job, that of the partition (``part``), the
    correlation of the job, and the leaves that wait for the partition. ``number`` counts the jobs to which it belongs.
    """

    period: Period
    part: Period
    correlation: Mapping[str, str]
    leaves: tuple[str, ...]
    number: int = 0

    def mark(self, event: Event) -> Event:
        """The event under the id of its mark: each job to which it belongs has one."""
        return replace(event, id=f"{event.id}@{self.period.label}") if self.number else event


def of_mark(event: Event) -> Event:
    """The event whose mark, for one of several jobs, is given under the id of `Place.mark`."""
    return replace(event, id=event.id.partition("@")[0])


def places_of(
    schedule: Schedule, dataset: Dataset, part: Period, by: Mapping[str, str], counting: Sequence[str]
) -> tuple[Place, ...]:
    """The jobs to which a partition of a dataset belongs, by the leaves ``counting``: that of the period in which its
    own period begins, those of the periods that lie in it, and those in whose windows it begins. ``by`` are the values
    of the other correlation keys. Empty if the schedule has no job for each period. One more than
    `MAX_JOBS` if there are more: then the partition counts for none of them (`TOO_MANY`)."""
    names = schedule.per.names(schedule.zone) if schedule.per is not None else None
    own = dataset.period.names if dataset.period is not None else None
    if names is None or own is None:
        return ()
    rules = {leaf.id: leaf.trigger for leaf in tree.leaves(schedule.trigger) if leaf.id in counting}

    def spans(job: Period) -> dict[str, tuple[Instant, Instant]]:
        return {leaf: rule.span_of(job, own.calendar) for leaf, rule in rules.items()}

    # A window may end after the period of its job, with the next one of the dataset.
    ahead, found = names.calendar.at(own.calendar.previous(part).start), list[Place]()
    period = ahead if any(part.start < end for _, end in spans(ahead).values()) else names.calendar.at(part.start)
    while period.end <= LATEST and len(found) <= MAX_JOBS:
        own_spans = spans(period)
        if all(part.start < start for start, _ in own_spans.values()):
            break
        leaves = tuple(leaf for leaf, (start, end) in own_spans.items() if start <= part.start < end)
        if leaves:
            found.append(Place(period, part, {**names.write(period), **by}, leaves, len(found)))
        period = names.calendar.next(period)
    return tuple(found)


def parts_by_leaf(
    schedule: Schedule, place: Place, datasets: Mapping[str, Dataset], since: Instant = 0
) -> dict[str, Parts]:
    """The parts that each leaf of the trigger waits for; ``since`` is as for `parts_of`. Raises ``invalid`` if a
    dataset does not determine them, or is not among ``datasets``."""
    fixed, found = {key: place.correlation[key] for key in schedule.by}, {}
    for leaf in tree.leaves(schedule.trigger):
        [name] = (each.name for each in leaf.trigger.datasets())
        if name not in datasets:
            raise invalid("trigger.dataset", "a dataset that exists", name)
        found[leaf.id] = parts_of(name, datasets[name], leaf.trigger, place.period, fixed, schedule.incomplete, since)
    return found


def numbers(place: Place, event: Event, leaves: Mapping[str, Parts | None]) -> dict[str, int]:
    """The number of the part that a partition is, for each leaf of its place to whose parts it belongs."""
    values, found = event.partition or {}, {}
    for leaf in place.leaves:
        known = leaves.get(leaf)
        number = number_of(known, place.part, values) if known is not None else None
        if number is not None:
            found[leaf] = number
    return found
