"""Datasets of Sluice as OpenLineage names and describes them (H6).

A prefix of S3 has the namespace `s3://bucket` and the prefix as name, without the slash at its end. A table that is in
the Glue catalog has its name there as a further identifier. https://openlineage.io/docs/spec/naming
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.dags import rounds
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.openlineage.facets import DATASET, SUBSET, described, facet
from chalicelib.core.rows.event import Event

MAX_PARTITIONS = 100  # partitions of a dataset that an event names

Values = Mapping[str, str]
Datasets = Mapping[str, Dataset]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the installation is: partition, region and account of AWS; empty if they are unknown."""

    partition: str = "aws"
    region: str = ""
    account: str = ""


NOWHERE = Place()


def partitions_of(events: Iterable[Event]) -> dict[str, list[Values]]:
    """The datasets of which a run got events, with the partitions of these, each once, in order."""
    found: dict[str, list[Values]] = {}
    for event in events:
        if event.dataset is None:
            continue
        known, values = found.setdefault(event.dataset, []), rounds.without(event.partition)
        if values and values not in known:
            known.append(values)
    return found


def inputs(names: Iterable[str], parts: Mapping[str, list[Values]], known: Datasets, place: Place) -> list[Any]:
    """The datasets that a run reads: those with these names, then those of ``parts``, each with its partitions."""
    return [
        _dataset(known[name], place) | _subset("input", known[name], parts.get(name, []))
        for name in dict.fromkeys((*names, *parts))
        if name in known
    ]


def outputs(names: Iterable[str], registered: Mapping[str, Values], known: Datasets, place: Place) -> list[Any]:
    """The datasets that a run writes, each with the partition that the run has registered, if any."""
    return [
        _dataset(known[name], place)
        | _subset("output", known[name], [registered[name]] if registered.get(name) else [])
        for name in dict.fromkeys((*names, *registered))
        if name in known
    ]


def name_of(dataset: Dataset) -> tuple[str, str]:
    """The namespace and the name of a dataset."""
    return f"s3://{dataset.bucket}", dataset.prefix.rstrip("/")


def _dataset(dataset: Dataset, place: Place) -> dict[str, Any]:
    namespace, name = name_of(dataset)
    facets = described(DATASET, dataset)
    if dataset.format == "iceberg":
        facets["storage"] = facet("StorageDatasetFacet", storageLayer="iceberg")
    if dataset.glue_table is not None and place.region and place.account:
        facets["symlinks"] = facet("SymlinksDatasetFacet", identifiers=[_in_glue(dataset.glue_table, place)])
    return {"namespace": namespace, "name": name, "facets": facets}


def _in_glue(table: str, place: Place) -> dict[str, str]:
    catalog = f"arn:{place.partition}:glue:{place.region}:{place.account}"
    return {"namespace": catalog, "name": f"table/{table.replace('.', '/')}", "type": "TABLE"}


def _subset(side: str, dataset: Dataset, parts: list[Values]) -> dict[str, Any]:
    """The facet with the partitions of a dataset that a run reads or writes; empty if they are unknown."""
    if not parts:
        return {}
    listed = [{"identifier": _folder(dataset, values), "dimensions": dict(values)} for values in parts[:MAX_PARTITIONS]]
    condition = {"type": "partition", "partitions": listed}
    return {f"{side}Facets": {"subset": facet(SUBSET[side], **{f"{side}Condition": condition})}}


def _folder(dataset: Dataset, values: Values) -> str:
    """The partition as its page names it, such as ``day=2026-03-01``."""
    known = [*(key for key in dataset.keys if key in values), *sorted(set(values) - set(dataset.keys))]
    return "/".join(f"{key}={values[key]}" for key in known)
