"""The events of OpenLineage about a run: pure functions of its row and of what it read and wrote (H6).

A change of a run's row has at most two events. The first change of an attempt is its START. RUNNING, COMPLETE, FAIL and
ABORT have the instant of the state in the row, so each later change of the row in that state gives the same event.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chalicelib.core import ids, masks, states
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import MINUTE, Instant, Millis, iso
from chalicelib.core.openlineage import datasets, subjects
from chalicelib.core.openlineage.datasets import NOWHERE, Place
from chalicelib.core.openlineage.facets import EVENT_SCHEMA, JOB, PRODUCER, described, facet, tags_of
from chalicelib.core.openlineage.subjects import Family
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.states import RunState
from chalicelib.core.targets import registry
from chalicelib.core.why import Why, readers_of

EventType = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"]
Document = dict[str, Any]

VERSION = "0.1.0"
MAX_MESSAGE = 2_000  # characters of an error
MAX_UPSTREAM = 100  # runs whose ends have started a run, that an event names
# Bytes of an event. SQS takes a message, and a batch of messages, of 256 KB; ten events make a batch.
MAX_EVENT = 200_000
# The longest time from the instant that a row names to its commit: a Lambda ends after two minutes, and clocks differ
# by a second. A row that is written later is not the one that reached its state.
LATEST_COMMIT: Millis = 15 * MINUTE

_TYPE: Mapping[RunState, EventType] = {
    "RUNNING": "RUNNING",
    "SUCCEEDED": "COMPLETE",
    "FAILED": "FAIL",
    "RETRYING": "FAIL",
    "CANCELLED": "ABORT",
    "ABORTED": "ABORT",
}


@dataclass(frozen=True, slots=True)
class Known:
    """What events say besides the row: the documents of the run's schedule and workflow, the datasets by their full
    names, and the events that have started the run."""

    schedule: Schedule | None = None
    workflow: Workflow | None = None
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Step:
    """What a change of a run's row reports: the type of the event, and when that was."""

    type: EventType
    at: Instant
    reason: Why


def steps(run: Run, first: bool, written: Instant) -> list[Step]:
    """What a change of a run's row reports, in order. ``first``: the change has created the row. ``written`` is when
    the table wrote it, in whole seconds. A row that is imported or restored later reports nothing of its past."""
    found = [Step("START", run.claimed_at, run.fired_by)] if first and _is_of(run.claimed_at, written) else []
    step = _step(run) if is_new(run, written) else None
    return found if step is None else [*found, step]


def is_new(row: Run | Record, written: Instant) -> bool:
    """Whether a change wrote the state of a row, and not something else later."""
    return _is_of(row.recorded_at if isinstance(row, Record) else _reached(row), written)


def _is_of(at: Instant, written: Instant) -> bool:
    """Whether what happened then is what a change wrote."""
    return written - at <= LATEST_COMMIT


def _reached(run: Run) -> Instant:
    """When the row got its state, by the clock of Sluice."""
    return run.state_at if run.state_at is not None else run.claimed_at


def _step(run: Run) -> Step | None:
    kind = _TYPE.get(run.state)
    if ids.is_dag_graph(run.workflow) and run.state == "SUCCEEDED" and not run.request.target.get("lasts"):
        kind = "RUNNING"  # the start is over, and the DAG run goes on
    if kind is None or run.leases:
        return None
    if kind == "RUNNING":
        return Step(kind, run.started_at if run.started_at is not None else _reached(run), run.reason)
    return Step(kind, run.ended_at if run.ended_at is not None else _reached(run), run.reason)


def is_group(run: Run) -> bool:
    """Whether a run only groups others: a DAG run, or a node with elements. These read and write the data."""
    return ids.is_dag_graph(run.workflow) or registry.of_run(run).of_elements


def dataset_names(run: Run, known: Known) -> list[str]:
    """The full names of the datasets that a run reads and writes, each once."""
    reads, writes = _declared(run, known)
    return list(dict.fromkeys((*reads, *datasets.partitions_of(known.events), *writes, *_registered(run))))


def event_of(prefix: str, run: Run, step: Step, known: Known, namespaces: Collection[str] = frozenset()) -> Document:
    """One event about a run, with its datasets unless it is RUNNING, whose START had them. It names jobs of these
    ``namespaces``; empty: of all."""
    family = subjects.family(prefix, run)
    reads, writes = _declared(run, known)
    own_events = () if is_group(run) else known.events
    ins, outs = [], []
    if step.type != "RUNNING":
        ins = datasets.inputs(reads, datasets.partitions_of(own_events), known.datasets, known.place)
        outs = datasets.outputs(writes, _registered(run), known.datasets, known.place)
    facets = {
        **_time(run, known),
        **_parent(family),
        "processing_engine": facet("ProcessingEngineRunFacet", version=VERSION, name="Sluice"),
        "tags": facet("TagsRunFacet", tags=tags_of(_tags(run), "SLUICE")),
        **_upstream(prefix, run, known, namespaces),
        **_error(step, run.schedule),
    }
    return fitted(_document(family, step, facets, _job(run, known), ins, outs))


def dag_ended(prefix: str, start: Run, step: Step, known: Known) -> Document:
    """The event about the end of a DAG run, which the run ``start`` has begun."""
    return event_of(prefix, start, step, known)


def fitted(event: Document) -> Document:
    """The event, without the partitions, and then without the descriptions, of its datasets if it is too large."""
    if len(_text(event)) <= MAX_EVENT:
        return event
    sides = ("inputs", "outputs")
    plain = {side: [_without(each, "inputFacets", "outputFacets") for each in event[side]] for side in sides}
    if len(_text(event | plain)) <= MAX_EVENT:
        return event | plain
    return event | {side: [_without(each, "facets") for each in plain[side]] for side in sides}


def _text(event: Document) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def _without(document: Document, *names: str) -> Document:
    return {name: value for name, value in document.items() if name not in names}


def _document(family: Family, step: Step, facets: Document, job: Document, ins: list[Any], outs: list[Any]) -> Document:
    own = family.own
    return {
        "eventType": step.type,
        "eventTime": iso(step.at),
        "producer": PRODUCER,
        "schemaURL": EVENT_SCHEMA,
        "run": {"runId": own.run_id, "facets": facets},
        "job": {"namespace": own.namespace, "name": own.job, "facets": job},
        "inputs": ins,
        "outputs": outs,
    }


def _declared(run: Run, known: Known) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The datasets that the workflow of a run says it reads and writes."""
    if known.workflow is None or is_group(run):
        return (), ()
    own = run.workflow.partition(".")[0]
    return known.workflow.datasets_read(own), known.workflow.datasets_produced(own)


def _registered(run: Run) -> dict[str, Mapping[str, str]]:
    """The datasets of which the run has registered a partition, with its values."""
    return {str(each["dataset"]): each["partition"] for each in run.registered if each.get("partition")}


def _time(run: Run, known: Known) -> Document:
    """The period of a run, or the nominal instant of its fire; empty for any other run."""
    period = known.schedule.period_of(run.correlation) if known.schedule is not None else None
    if period is not None:
        times = {"nominalStartTime": iso(period.start), "nominalEndTime": iso(period.end)}
    elif run.nominal_at is not None:
        times = {"nominalStartTime": iso(run.nominal_at)}
    else:
        return {}
    return {"nominalTime": facet("NominalTimeRunFacet", **times)}


def _parent(family: Family) -> Document:
    if family.parent is None or family.root is None:
        return {}
    above, top = (
        {"run": {"runId": each.run_id}, "job": {"namespace": each.namespace, "name": each.job}}
        for each in (family.parent, family.root)
    )
    return {"parent": facet("ParentRunFacet", **above, root=top)}


def _tags(run: Run) -> dict[str, str]:
    """What identifies a run in Sluice."""
    found = {
        "sluice_run": run.run_id,
        "sluice_attempt": str(run.attempt),
        "sluice_schedule": ids.plain(run.schedule),
        "sluice_workflow": ids.plain(run.workflow),
        "sluice_target": run.target_kind,
        "sluice_target_id": run.target_id or "",
        "sluice_backfill": run.backfill or "",
        "sluice_rerun_of": run.rerun_of or "",
    }
    return {key: value for key, value in found.items() if value} | {
        f"sluice_{key}": value for key, value in (rounds.without(run.correlation) or {}).items()
    }


def _upstream(prefix: str, run: Run, known: Known, namespaces: Collection[str]) -> Document:
    """The jobs whose runs have started a run by how they ended, with these runs if their attempt is known."""
    found: dict[tuple[str, str], Document] = {}
    for event in known.events:
        if event.kind != "program_status" or event.schedule is None or event.workflow is None or run.element:
            continue
        if ids.is_dag_graph(event.workflow):
            continue  # the parent of a node
        if namespaces and event.schedule.partition(".")[0] not in namespaces:
            continue
        job = {
            "namespace": subjects.namespace_of(prefix, event.schedule),
            "name": subjects.job_of(event.schedule, event.workflow),
        }
        found[job["namespace"], job["name"]] = {"job": job, "dependency_type": "DIRECT_INVOCATION"}
    listed = list(found.values())[:MAX_UPSTREAM]
    return {"jobDependencies": facet("JobDependenciesRunFacet", upstream=listed)} if listed else {}


def _error(step: Step, schedule: str) -> Document:
    """Why a run failed or was aborted, without secrets and without names of other namespaces."""
    if step.type not in ("FAIL", "ABORT"):
        return {}
    text = masks.text(step.reason.seen(readers_of(schedule)))[:MAX_MESSAGE] or f"the run ended with {step.type}"
    return {"errorMessage": facet("ErrorMessageRunFacet", message=text, programmingLanguage="unknown")}


def _job(run: Run, known: Known) -> Document:
    kind = "DAG" if ids.is_dag_graph(run.workflow) else "TASK" if rounds.of_run(run) is not None else "JOB"
    documents = [each for each in (known.schedule, known.workflow) if each is not None]
    kinds = {"processingType": "BATCH", "integration": "SLUICE", "jobType": kind}
    return {"jobType": facet("JobTypeJobFacet", **kinds), **described(JOB, *documents)}


def is_over(run: Run) -> bool:
    """Whether an attempt has ended and no other one follows."""
    return states.is_terminal(run.state) and run.state != "RETRYING"
