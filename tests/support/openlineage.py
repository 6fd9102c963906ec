"""Events of OpenLineage, read by the classes of its official client, and the stream of the runs table that makes them.

The client's classes are generated from the JSON schemas of the specification. `parsed` builds them field by field:
it fails for a missing field, for one that the schema does not have, and for a value of another type.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import attr
from openlineage.client import event_v2, facet_v2
from openlineage.client.serde import Serde

from chalicelib.aws.tables import items
from chalicelib.core.openlineage.datasets import Place
from chalicelib.core.openlineage.outlets import Item, Outcome, Sent
from chalicelib.core.rows.run import Record, Run
from chalicelib.flow.openlineage.reader import Reader
from chalicelib.flow.openlineage.report import Changed, Reporter
from tests.support.world import World

PREFIX = "sluice-test"
AWS = Place("aws", "eu-west-1", "123456789012")
# The keys of facets, as the specification names them.
KINDS: dict[str, dict[str, type]] = {
    "run": {
        "errorMessage": facet_v2.error_message_run.ErrorMessageRunFacet,
        "jobDependencies": facet_v2.job_dependencies_run.JobDependenciesRunFacet,
        "nominalTime": facet_v2.nominal_time_run.NominalTimeRunFacet,
        "parent": facet_v2.parent_run.ParentRunFacet,
        "processing_engine": facet_v2.processing_engine_run.ProcessingEngineRunFacet,
        "tags": facet_v2.tags_run.TagsRunFacet,
    },
    "job": {
        "documentation": facet_v2.documentation_job.DocumentationJobFacet,
        "jobType": facet_v2.job_type_job.JobTypeJobFacet,
        "ownership": facet_v2.ownership_job.OwnershipJobFacet,
        "tags": facet_v2.tags_job.TagsJobFacet,
    },
    "dataset": {
        "documentation": facet_v2.documentation_dataset.DocumentationDatasetFacet,
        "ownership": facet_v2.ownership_dataset.OwnershipDatasetFacet,
        "storage": facet_v2.storage_dataset.StorageDatasetFacet,
        "symlinks": facet_v2.symlinks_dataset.SymlinksDatasetFacet,
        "tags": facet_v2.tags_dataset.TagsDatasetFacet,
    },
    "input": {"subset": facet_v2.base_subset_dataset.InputSubsetInputDatasetFacet},
    "output": {"subset": facet_v2.base_subset_dataset.OutputSubsetOutputDatasetFacet},
}
CONDITIONS = {"partition": facet_v2.base_subset_dataset.PartitionSubsetCondition}


def parsed(event: Mapping[str, Any]) -> event_v2.RunEvent:
    """The event as the official client has it. Raises AssertionError, TypeError or ValueError for one that differs from
    the schemas."""
    run, job = event["run"], event["job"]
    found = event_v2.RunEvent(
        eventType=event_v2.RunState(event["eventType"]),
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=event_v2.Run(run["runId"], _facets("run", run["facets"])),
        job=event_v2.Job(job["namespace"], job["name"], _facets("job", job["facets"])),
        inputs=[_dataset(event_v2.InputDataset, "input", each) for each in event["inputs"]],
        outputs=[_dataset(event_v2.OutputDataset, "output", each) for each in event["outputs"]],
    )
    assert found.schemaURL == event["schemaURL"]
    again, given = Serde.to_dict(found), _without_empty(event)
    assert _without_empty(again) == given, f"expected the same event, got {again}"
    return found


def _dataset(kind: type, side: str, document: Mapping[str, Any]) -> Any:
    own = _facets("dataset", document.get("facets", {}))
    facets = {f"{side}Facets": _facets(side, document.get(f"{side}Facets", {}))}
    return kind(document["namespace"], document["name"], facets=own, **facets)


def _facets(of: str, documents: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _facet(KINDS[of][name], document) for name, document in documents.items()}


def _facet(kind: Any, document: Mapping[str, Any]) -> Any:
    assert document["_schemaURL"] == kind._get_schema()
    fields = {name: value for name, value in document.items() if name != "_schemaURL"}
    return _built(kind, fields)


def _built(kind: Any, document: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(kind)
    known = {each.name: each for each in attr.fields(kind)}
    assert document.keys() <= known.keys(), f"{kind.__name__} has no {sorted(document.keys() - known.keys())}"
    given = {known[name].alias: _value(hints[name], value) for name, value in document.items()}
    return kind(**given)


def _value(hint: Any, value: Any) -> Any:
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    options = typing.get_args(hint) if is_union else (hint,)
    if isinstance(value, dict) and value.get("type") in CONDITIONS:
        return _built(CONDITIONS[value["type"]], value)
    for option in options:
        origin, inner = typing.get_origin(option), typing.get_args(option)
        if attr.has(option) and isinstance(value, dict):
            return _built(option, value)
        if origin is list and isinstance(value, list):
            return [_value(inner[0], each) for each in value]
        if origin is dict and isinstance(value, dict):
            return value
        if isinstance(option, type) and isinstance(value, option):
            return value
    raise TypeError(f"expected {hint}, got {value!r}")


def _without_empty(document: Any) -> Any:
    if isinstance(document, Mapping):
        found = {name: _without_empty(value) for name, value in document.items()}
        return {name: value for name, value in found.items() if value not in (None, {}, [])}
    return [_without_empty(each) for each in document] if isinstance(document, list) else document


class Collected:
    """An outlet in memory. ``answers`` are the outcomes of the next calls, by the job or by nothing."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.calls = 0
        self.judge: Any = lambda item: Sent()

    def send(self, found: Sequence[Item]) -> list[Outcome]:
        self.calls += 1
        outcomes = [self.judge(item) for item in found]
        self.events += [item.event for item, outcome in zip(found, outcomes, strict=True) if isinstance(outcome, Sent)]
        return outcomes


class Letters:
    def __init__(self) -> None:
        self.kept: list[tuple[dict[str, Any], str]] = []
        self.unread: list[tuple[Any, str]] = []

    def keep(self, item: Item, why: str) -> None:
        self.kept.append((item.event, why))

    def keep_change(self, sequence: str, keys: Mapping[str, Any], why: str) -> None:
        self.unread.append((keys, why))


class Lineage:
    """The stream of a world's runs table, and the Lambda `lineage` that reads it."""

    def __init__(self, world: World, namespaces: Sequence[str] = ()) -> None:
        self.world, self.namespaces = world, namespaces
        self.outlet, self.letters = Collected(), Letters()
        self.changes: list[Changed] = []
        self._number = 0
        world.tables.as_stored = self._stored
        self.restart()

    def restart(self) -> None:
        """A new process, which remembers nothing."""
        self.reader = Reader(self.world.ports, AWS)
        self.reporter = Reporter(self.reader, self.outlet, self.letters, PREFIX, self.namespaces)

    def _stored(self, before: Any, item: Any) -> Any:
        is_run = item["sk"]["S"].startswith("A#")
        if item["pk"]["S"].startswith("RUN#") and (is_run or item["sk"]["S"] == "RECORD"):
            self._number += 1
            row = items.from_item(Run if is_run else Record, item)
            now = self.world.clock.now() // 1000 * 1000
            keys = {"pk": item["pk"], "sk": item["sk"]}
            self.changes.append(Changed(f"{self._number:020d}", row, before is None, now, keys))
        return item

    def work(self) -> list[dict[str, Any]]:
        """Deliver what the stream has. Returns the events that this has sent."""
        before = len(self.outlet.events)
        failed = self.reporter.report(self.changes)
        first = min(failed, default=None)
        self.changes = [each for each in self.changes if first is not None and each.sequence >= first]
        return self.outlet.events[before:]

    def said(self) -> list[tuple[str, str]]:
        """The jobs and types of the events so far, in order."""
        return [(event["job"]["name"], event["eventType"]) for event in self.outlet.events]

    def of(self, job: str, kind: str = "COMPLETE") -> dict[str, Any]:
        """The only event of a job of this type."""
        [found] = [e for e in self.outlet.events if (e["job"]["name"], e["eventType"]) == (job, kind)]
        return found
