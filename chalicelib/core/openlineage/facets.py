"""Facets: the parts of an event of OpenLineage, each with the address of its schema (H6).

Each schema has a version of its own; `tests/core/openlineage` compares the addresses with those of the official client.
"""

from __future__ import annotations

from typing import Any

from chalicelib.core.documents import Described

PRODUCER = "urn:sluice:0.1.0"
EVENT_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets/"

# The version of the schema of each facet, and its file if that has another name.
VERSIONS: dict[str, tuple[str, str]] = {
    "DocumentationDatasetFacet": ("1-1-0", ""),
    "DocumentationJobFacet": ("1-1-0", ""),
    "ErrorMessageRunFacet": ("1-0-1", ""),
    "InputSubsetInputDatasetFacet": ("1-0-0", "BaseSubsetDatasetFacet"),
    "JobDependenciesRunFacet": ("1-0-1", ""),
    "JobTypeJobFacet": ("2-0-4", ""),
    "NominalTimeRunFacet": ("1-0-1", ""),
    "OutputSubsetOutputDatasetFacet": ("1-0-0", "BaseSubsetDatasetFacet"),
    "OwnershipDatasetFacet": ("1-0-1", ""),
    "OwnershipJobFacet": ("1-0-1", ""),
    "ParentRunFacet": ("1-2-0", ""),
    "ProcessingEngineRunFacet": ("1-1-1", ""),
    "StorageDatasetFacet": ("1-0-1", ""),
    "SymlinksDatasetFacet": ("1-0-1", ""),
    "TagsDatasetFacet": ("1-0-0", ""),
    "TagsJobFacet": ("1-0-0", ""),
    "TagsRunFacet": ("1-0-0", ""),
}
JOB, DATASET = "JobFacet", "DatasetFacet"  # what a description is of
SUBSET = {"input": "InputSubsetInputDatasetFacet", "output": "OutputSubsetOutputDatasetFacet"}


def facet(kind: str, **fields: Any) -> dict[str, Any]:
    """A facet of this kind; fields without a value are left out."""
    version, file = VERSIONS[kind]
    known = {name: value for name, value in fields.items() if value is not None}
    return {"_producer": PRODUCER, "_schemaURL": f"{_FACETS}{version}/{file or kind}.json#/$defs/{kind}", **known}


def described(of: str, *documents: Described) -> dict[str, Any]:
    """The description, owner and tags of a job or a dataset: of each the first that the documents have."""
    text = next((each.description for each in documents if each.description), "")
    owner = next((each.owner for each in documents if each.owner), "")
    tags = next((each.tags for each in documents if each.tags), {})
    found = {
        "documentation": facet(f"Documentation{of}", description=text) if text else None,
        "ownership": facet(f"Ownership{of}", owners=[{"name": owner, "type": "OWNER"}]) if owner else None,
        "tags": facet(f"Tags{of}", tags=tags_of(tags, "USER")) if tags else None,
    }
    return {name: each for name, each in found.items() if each is not None}


def tags_of(tags: dict[str, str], source: str) -> list[dict[str, str]]:
    return [{"key": key, "value": value, "source": source} for key, value in tags.items()]
