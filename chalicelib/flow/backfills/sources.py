"""The dataset whose periods a schedule runs, and the values beside them (L23)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice, product

from chalicelib.core.backfills import backfill, periods
from chalicelib.core.backfills.periods import Values
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.events.periods import period_of
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather
from chalicelib.core.rows.definition import Definition
from chalicelib.core.time.period_names import Names
from chalicelib.core.triggers import tree
from chalicelib.flow import lookup
from chalicelib.ports import Ports

MAX_PARTITIONS = 5_000  # that are read to find the first period, and the values beside it
MAX_COMBINATIONS = 1_000  # of values beside a period


@dataclass(frozen=True, slots=True)
class Source:
    """The dataset whose periods a schedule runs. ``others`` are the combinations of the values beside the period that
    are registered, in the order of ``by`` without the keys of the period."""

    name: str
    dataset: Dataset
    names: Names
    first: Instant | None
    others: tuple[Values, ...]


def source_of(ports: Ports, schedule: Schedule, with_first: bool) -> Source:
    """The dataset whose periods a schedule runs: the first one of its trigger that has such. Its partitions are read
    ``with_first``, or if they say which values are beside the period. Raises ``invalid`` if there is none."""
    for name in backfill.datasets_of(schedule):
        row = ports.rows.get(Definition, "dataset", name)
        dataset = Dataset.model_validate(row.document) if row is not None else None
        names = _names_of(schedule, dataset) if dataset is not None else None
        if dataset is not None and names is not None:
            beside = tuple(key for key in schedule.keys if key not in names.keys)
            if with_first or beside:
                return _read(ports, name, dataset, names, schedule, beside)
            return Source(name, dataset, names, None, ((),))
    expected = "a schedule with a time in its trigger, with per, or with by that names the period of a dataset"
    hint = "give the dataset its period, and write per, or all keys of the period into by"
    raise invalid("name", expected, tree.describe(schedule.trigger), hint)


def _names_of(schedule: Schedule, dataset: Dataset) -> Names | None:
    """The names of the periods that a schedule runs; None if its ``by`` names none of the dataset."""
    if schedule.per is not None:
        return schedule.per.names(schedule.zone)
    rule = periods.rule_of(dataset, schedule.by)
    return rule.names if rule is not None else None


def _read(
    ports: Ports, name: str, dataset: Dataset, names: Names, schedule: Schedule, beside: Values
) -> Source:  # fmt: skip
    first: Instant | None = None
    listed = [schedule.values[key] for key in beside if key in schedule.values]
    are_known = len(listed) == len(beside)
    others: dict[Values, None] = dict.fromkeys(islice(product(*listed), MAX_COMBINATIONS)) if are_known else {}
    for row in islice(lookup.every(partial(ports.catalog.partitions, name)), MAX_PARTITIONS):
        values = dict(zip(dataset.keys, row.values, strict=True))
        period = period_of(dataset, values)
        if period is None:
            continue
        begins = names.calendar.at(period.start).start
        first = begins if first is None else min(first, begins)
        found = not are_known and len(others) < MAX_COMBINATIONS and all(key in values for key in beside)
        if found and gather.unlisted_of(schedule, values) is None:
            others[tuple(values[key] for key in beside)] = None
    return Source(name, dataset, names, first, tuple(sorted(others)))
