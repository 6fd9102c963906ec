"""The partition of a dataset that a run produces: the one with the values of the run's correlation (L22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events import periods
from chalicelib.core.events.values import folders


@dataclass(frozen=True, slots=True)
class Product:
    """A dataset that a workflow produces. ``registers``: Sluice registers the partition when a run has succeeded."""

    name: str
    dataset: Dataset
    registers: bool = False


def partition_of(dataset: Dataset, correlation: Mapping[str, str]) -> tuple[str, ...] | None:
    """The values of the partition that a run with this correlation produces, in the order of the keys. Those of a
    period are as the format writes them. None if the correlation lacks a key. Further keys of it do not matter."""
    if not set(dataset.keys) <= correlation.keys():
        return None
    return periods.identity(dataset, [correlation[key] for key in dataset.keys])


def why_none(name: str, dataset: Dataset, correlation: Mapping[str, str]) -> str:
    """Why a run with this correlation produces no partition of a dataset that is known."""
    missing = [key for key in dataset.keys if key not in correlation]
    of = folders(tuple(correlation), tuple(correlation.values())).rstrip("/") or "nothing"
    return f"a run for {of} names no {', '.join(missing)}, which a partition of {name} has"
