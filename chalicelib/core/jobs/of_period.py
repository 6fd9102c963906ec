"""The job of a period (T25): to which a partition belongs, and which parts its leaves wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.events.periods import parts_of
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.parts import Parts
from chalicelib.core.time.periods import Period
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.parts import number_of


@dataclass(frozen=True, slots=True)
class Place:
    """The job of a period to which a partition belongs: the ``period`` of the job, that of the partition (``part``),
    and the correlation of the job."""

    period: Period
    part: Period
    correlation: Mapping[str, str]


def place_of(schedule: Schedule, part: Period, by: Mapping[str, str]) -> Place | None:
    """The job to which a partition belongs: that of the period in which its own period begins. ``by`` are the values of
    the other correlation keys. None if the schedule has no job for each period."""
    names = schedule.per.names(schedule.zone) if schedule.per is not None else None
    if names is None:
        return None
    period = names.calendar.at(part.start)
    return Place(period, part, {**names.write(period), **by})


def parts_by_leaf(schedule: Schedule, place: Place, datasets: Mapping[str, Dataset]) -> dict[str, Parts]:
    """The parts that each leaf of the trigger waits for. Raises ``invalid`` if a dataset does not determine them, or is
    not among ``datasets``."""
    fixed, found = {key: place.correlation[key] for key in schedule.by}, {}
    for leaf in tree.leaves(schedule.trigger):
        [name] = (each.name for each in leaf.trigger.datasets())
        if name not in datasets:
            raise invalid("trigger.dataset", "a dataset that exists", name)
        found[leaf.id] = parts_of(name, datasets[name], leaf.trigger, place.period, fixed, schedule.incomplete)
    return found


def numbers(place: Place, event: Event, leaves: Mapping[str, Parts | None], counting: Sequence[str]) -> dict[str, int]:
    """The number of the part that a partition is, for each of the leaves ``counting`` to whose parts it belongs."""
    values, found = event.partition or {}, {}
    for leaf in counting:
        known = leaves.get(leaf)
        number = number_of(known, place.part, values) if known is not None else None
        if number is not None:
            found[leaf] = number
    return found
