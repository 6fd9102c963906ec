"""The period of a partition, by the ``period`` of its dataset (T24).

A period is an identity: ``hour=7`` and ``hour=07`` name one partition. Its values are those that the format of the
dataset writes, also if its folder is written in another way. Nothing stores the period itself: it follows from the
values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TypedDict

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.incomplete import Incomplete
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import Instant
from chalicelib.core.rows.parts import Parts
from chalicelib.core.time import period_names
from chalicelib.core.time.period_names import Names
from chalicelib.core.time.periods import Period
from chalicelib.core.triggers import parts
from chalicelib.core.triggers.leaf import Leaf
from chalicelib.core.triggers.parts import MAX_PARTS, UNSEEN, Seen


class PeriodFields(TypedDict):
    """A period in the context of a run, with instants in ms since 1970. ``end`` is the first instant after it."""

    start: Instant
    end: Instant
    zone: str
    label: str


def names_of(dataset: Dataset) -> Names | None:
    """How the folders of a dataset name its periods; None if it has none, or nothing says which partitions a period
    has: the values of a further key are not listed, or they are too many."""
    names = dataset.period.names if dataset.period is not None else None
    known = names is not None and set(dataset.keys) <= {*names.keys, *dataset.listed}
    return names if known and prod(map(len, dataset.listed.values())) <= MAX_PARTS else None


def partitions_of(dataset: Dataset, period: Period) -> tuple[dict[str, str], ...]:
    """The values of all partitions that a period of a dataset has, in the order of its keys: one, or one for each
    combination of the listed values."""
    names = names_of(dataset)
    if names is None:
        return ()
    of_keys = {**{key: (value,) for key, value in names.write(period).items()}, **dataset.listed}
    chosen = product(*(of_keys[key] for key in dataset.keys))
    return tuple(dict(zip(dataset.keys, values, strict=True)) for values in chosen)


def period_of(dataset: Dataset, values: Mapping[str, str]) -> Period | None:
    """The period that the values of a partition name. None if the dataset has no periods, or the values name none: they
    may be older than the format."""
    names = dataset.period.names if dataset.period is not None else None
    if names is None or not values.keys() >= set(names.keys):
        return None
    try:
        return names.read(values)
    except SluiceError:
        return None


def parts_of(
    name: str,
    dataset: Dataset,
    leaf: Leaf,
    period: Period,
    fixed: Mapping[str, str],
    incomplete: Incomplete | None = None,
    since: Instant = 0,
    seen: Seen = UNSEEN,
) -> Parts:
    """The parts of a dataset that a leaf needs for the job of a period, none of which have come. ``fixed`` are the
    values of the keys in ``by``. The spans of ``incomplete`` count from the end of the
    period, or from ``since`` if that is later. ``seen`` are the values of its key with ``seen_last``. Raises
    ``invalid`` if the dataset does not determine the parts."""
    rule = dataset.period
    if rule is None:
        hint = "give the dataset a period, which says how its folders name hours or days"
        raise invalid("trigger.dataset", "a dataset with a period, because of of: period", name, hint)
    named = period_names.keys_of(rule.format)
    values: dict[str, tuple[str, ...]] = {}
    for key in dataset.keys:
        if key in fixed and key not in named:
            values[key] = (fixed[key],)
        elif key in dataset.values:
            values[key] = seen.values if key == dataset.grows else dataset.listed[key]
        elif key not in named:
            hint = f"list its values in the dataset, or add it to by: then there is a job for each {key} of a period"
            raise invalid("trigger.dataset", f"a dataset whose values of {key} are known", name, hint)
    span, ended = incomplete.span if incomplete is not None else None, max(period.end, since)
    names = rule.names
    if names is None:
        raise invalid("zone", "a zone of the present rules", rule.zone)
    of, (start, end) = f"{period.label} {period.zone}", leaf.span_of(period, names.calendar)
    grows = dataset.grows if dataset.grows not in fixed else None
    return parts.begun(
        Parts(
            name, dataset.keys, rule.each, rule.format, rule.zone, rule.week_starts, values, start, end, of, need=0,
            allowed_at=ended + period_names.longest(rule.each),
            allow=incomplete.allow if incomplete is not None else None,
            open_at=ended + span if span is not None else None, around=(start, end) != (period.start, period.end),
            grows=grows, unsure=grows is not None and seen.first,
        )
    )  # fmt: skip


def fields_of(period: Period) -> PeriodFields:
    return {"start": period.start, "end": period.end, "zone": period.zone, "label": period.label}


def written(dataset: Dataset, values: Mapping[str, str]) -> dict[str, str]:
    """The values of a partition, or of its first keys, with those of its period as the format writes them. Raises
    ``invalid``, whose field is the key, if they name no period. If they have only some keys of the period, they stay as
    they are."""
    names = dataset.period.names if dataset.period is not None else None
    if names is None or not values.keys() >= set(names.keys):
        return dict(values)
    return {**values, **names.write(names.read(values))}


def identity(dataset: Dataset, values: Sequence[str]) -> tuple[str, ...]:
    """The values that identify a partition: as `written`, and as they are if they name no period."""
    named = dict(zip(dataset.keys, values, strict=False))
    try:
        return tuple(written(dataset, named).values())
    except SluiceError:
        return tuple(values)
