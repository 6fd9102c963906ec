"""The period of a partition, by the ``period`` of its dataset (T24).

A period is an identity: ``hour=7`` and ``hour=07`` name one partition. Its values are those that the format of the
dataset writes, also if its folder is written in another way. Nothing stores the period itself: it follows from the
values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant
from chalicelib.core.time.period_names import Names
from chalicelib.core.time.periods import Period


class PeriodFields(TypedDict):
    """A period in the context of a run, with instants in ms since 1970. ``end`` is the first instant after it."""

    start: Instant
    end: Instant
    zone: str
    label: str


def names_of(dataset: Dataset) -> Names | None:
    """How the folders of a dataset name its periods; None if it has none, or a partition has other keys besides: then
    nothing says which partitions a period has."""
    names = dataset.period.names if dataset.period is not None else None
    return names if names is not None and set(dataset.keys) == set(names.keys) else None


def partitions_of(dataset: Dataset, period: Period) -> tuple[dict[str, str], ...]:
    """The values of all partitions that a period of a dataset has, in the order of its keys."""
    names = names_of(dataset)
    if names is None:
        return ()
    written = names.write(period)
    return ({key: written[key] for key in dataset.keys},)


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
