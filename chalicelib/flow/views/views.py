"""Views of rows for the API, the CLI and the console: one shape each, with instants in RFC 3339."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, NotRequired, cast

from chalicelib.core import ids, text
from chalicelib.core.access.allowed import Allowed
from chalicelib.core.dags import elements, rounds
from chalicelib.core.definitions import diff
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events.periods import period_of
from chalicelib.core.fires import bundles
from chalicelib.core.history.durations import late_by, took, waited
from chalicelib.core.instants import Instant, iso
from chalicelib.core.jobs.dry_run import Step
from chalicelib.core.rows.audit import AuditOutcome, AuditRow
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.event import CLAIMED_LIFE, Partition
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, RecordKind, Run
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.rows.stops import marks_of
from chalicelib.core.runs import costs, sends
from chalicelib.core.states import FailureKind, JobKind, RunState
from chalicelib.core.targets.bills import LIST, Prices
from chalicelib.core.triggers import tree
from chalicelib.core.views import At, Code, Sentence, View, shown, stored
from chalicelib.core.why import MentionKind, joined, mention, plain
from chalicelib.flow.runs import context
from chalicelib.flow.schedules.stops import view_of
from chalicelib.ports import Ports

if TYPE_CHECKING:
    from chalicelib.flow.definitions.uses import Uses


OF_OTHERS: Mapping[str, MentionKind] = {"run_id": "run", "schedule": "schedule"}  # fields of events of other runs


class OwnedPrefixView(View):
    """A prefix of a bucket, the namespace to which it belongs, and the dataset there, if there is one. ``given``: an
    administrator gave it to the namespace."""

    bucket: str
    prefix: str
    namespace: str
    dataset: str | None
    given: bool


class RefusedUseView(View):
    """A use of a document, such as ``workflow demo.flights.clean``, that would be refused, and why."""

    document: str
    field: str
    why: str


class ProposedAllowedView(View):
    """An allow-list for a namespace. ``refused`` is what the namespace uses and may not use without a list, once the
    installation has several namespaces. ``allowed`` is its present list with one for each kind of these, and
    ``left_out`` what no pattern can name. Unless it is ``complete``, not all documents were read."""

    name: str
    refused: list[RefusedUseView]
    allowed: Allowed
    left_out: list[RefusedUseView]
    complete: bool


class PartOfDagView(View):
    """The DAG run that a run or job is a part of."""

    name: str
    run_id: str
    round: int
    node: str | None


class BilledView(View):
    """What a target has billed for a run, in hours, and in dollars at list price."""

    cost_usd: float | None


class PlaceInFireView(View):
    """The number of an event among those of its fire, from 0 on, and how many events the fire has: null if the row does
    not say so. Of many events in one row, the number of the first."""

    index: int
    count: int | None


class SendsView(View):
    """The first and the last send of events that share a row, and how late they were in ms: half of them at most
    ``late_p50``, all at most ``late_max``."""

    first: At
    last: At
    late_p50: int
    late_max: int


class PartitionOfRunView(View):
    """A dataset of which the success of a run registers a partition: the partition, or why there is none."""

    dataset: str
    partition: dict[str, str] | None
    why: str


class ElementOfRunView(View):
    """The element of a list for which a node of a DAG runs (W19)."""

    index: int
    count: int
    value: Any


class RunView(View):
    """An attempt of a run. Its instants are in the order of its life, from that of its job to ``ended_at``.

    ``count`` is how many sent events of a large ``fire`` the run stands for; 1 for any other run. ``sends`` are those
    of several events. In a list, one run stands for all of them on the page. ``spread`` is for an event of a spread.
    ``took_ms`` is null while the attempt goes on. ``late_by_ms`` is by how much it was late for its instant or for a
    deadline, 0 if it was on time, and null if nothing says when it was due.
    ``registered`` is there if its success has registered partitions, or should have. ``each`` is the element for which
    a node of a DAG runs. ``result`` is the JSON value that it has handed on, and ``result_refused`` says why there is
    none although its program gave one.
    """

    run_id: str
    attempt: int
    attempts: int
    schedule: str
    workflow: str
    workflow_version: int | None
    state: RunState
    reason: Sentence
    code: Code | None
    fired_by: Sentence
    kind: JobKind
    number: int | None
    waited_for: Sentence | None
    waited_ms: int
    took_ms: int | None
    start_by: At | None
    end_by: At | None
    billed: BilledView | None
    backfill: str | None
    rerun_of: str | None
    requested_by: str | None
    outcome: FailureKind | None
    metrics: dict[str, Any] | None
    priority: int
    correlation: dict[str, str] | None
    partition: dict[str, str] | None
    dag: PartOfDagView | None
    properties: dict[str, Any]
    target: dict[str, Any]
    target_id: str | None
    context: str
    created_at: At
    nominal_at: At | None
    due_at: At | None
    late: bool
    lateness_ms: int | None
    late_by_ms: int | None
    accepted_at: At | None
    claimed_at: At
    start_requested_at: At | None
    started_at: At | None
    ended_at: At | None
    start_calls: int
    count: int
    fire: str | None
    spread: PlaceInFireView | None
    sends: SendsView | None
    registered: NotRequired[list[PartitionOfRunView]]
    each: NotRequired[ElementOfRunView]
    result: NotRequired[Any]
    result_refused: NotRequired[str]


class EventOfRunView(View):
    """An event that started a run, with the fields of its kind: see docs/run-context.md. ``instant`` is in ms, and so
    are the instants of its ``period``, if its partition is one."""

    kind: str
    id: str
    instant: int


class LineageOfRunView(View):
    """The run of OpenLineage that an attempt is, and its job (H6)."""

    namespace: str
    job: str
    run_id: str


class RunInFullView(RunView):
    """The last attempt of a run, with the events that started it, and all attempts as its history. ``lineage`` is there
    if the installation sends events of OpenLineage."""

    lineage: NotRequired[LineageOfRunView]

    events: list[EventOfRunView]
    history: list[RunView]


class RecordView(View):
    """Work that never became a run, and why: ``count`` fires that were skipped, or events of a fire."""

    id: str
    kind: RecordKind
    schedule: str
    reason: Sentence
    code: Code | None
    at: At
    count: int


class EndedWorkView(View):
    """Work that never ran, or whose run was aborted or cancelled."""

    id: str
    kind: str
    schedule: str
    reason: Sentence
    code: Code | None
    at: At
    count: int


class VersionOfScheduleView(View):
    version: int
    created_at: At
    created_by: str
    changes: list[str]
    definition: dict[str, Any]


class StepView(View):
    at: At
    event: str
    touched: bool
    fires: bool
    why: Sentence
    arrived: list[str]
    missing: list[str]


class OpenMatchView(View):
    why: Sentence
    changes_at: At | None
    correlation: dict[str, str] | None


class DryRunOfTriggerView(View):
    """The state of a trigger after each event."""

    steps: list[StepView]
    fires: int
    left: list[OpenMatchView]
    why: Sentence


class PeriodView(View):
    """The period that a partition is. ``end`` is the first instant after it; ``label`` is such as ``2026-03-01T07``."""

    start: At
    end: At
    zone: str
    label: str


class LatePartitionView(View):
    """A schedule that has ignored a partition, because it came after the start of a job to which it belongs."""

    schedule: str
    reason: Sentence
    at: At


class RegisteredPartitionView(View):
    """A partition that is ready. ``period`` is there if its dataset has periods; null if its values name none, because
    they are older than the dataset's format. ``late`` is there, in a list, if schedules have ignored it."""

    dataset: str
    partition: dict[str, str]
    path: str
    ready_at: At
    put_at: At
    object: str | None
    snapshot: NotRequired[dict[str, Any] | None]
    period: NotRequired[PeriodView | None]
    late: NotRequired[list[LatePartitionView]]


class IgnoredObjectView(View):
    """An object in the prefix of a dataset that belongs to no partition, and why. ``of`` is the folder that is wrong:
    its value is invalid, it names no period, or it is a second one of a period."""

    key: str
    at: At
    why: str
    code: Literal["no_folders", "invalid_value", "no_period", "other_folder"]
    of: str


class AuditRecordView(View):
    """A change, or a refusal. ``by`` is the ARN of the signer. A document above 4,000 bytes is given by its digest."""

    at: At
    namespace: str
    operation: str
    outcome: AuditOutcome
    kind: str
    name: str
    by: str | None
    account: str | None
    session: str | None
    unique_id: str | None
    source: str | None
    request_id: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    reason: str | None
    count: int


def definition_view(row: Definition) -> dict[str, Any]:
    return stored(row.name, row.kind, row.document, row.version, row)


def proposal_view(uses: Uses) -> ProposedAllowedView:
    """What a namespace would be refused without lists, the list that covers it, and what that list leaves out."""
    proposed: Any = dict(uses.proposed)
    refused, left_out = ([shown(RefusedUseView, use) for use in each] for each in (uses.refused, uses.left_out))
    return shown(ProposedAllowedView, uses, name=uses.namespace, allowed=proposed, refused=refused, left_out=left_out)


def prefix_view(row: PrefixRow) -> OwnedPrefixView:
    return shown(OwnedPrefixView, row, given=row.owner != "")


def schedule_view(schedule_state: ScheduleState, schedule: Schedule) -> dict[str, Any]:
    name = schedule_state.schedule
    return {
        **stored(name, "schedule", schedule.model_dump(mode="json"), schedule_state.version, schedule_state),
        "state": schedule_state.mode,
        "enabled": schedule_state.mode == "enabled",
        "pause_reason": schedule_state.reason or None,
        "stops": [view_of(stop) for stop in marks_of(schedule_state)],
        "skips": [iso(at) for at in schedule_state.skips],
        "triggered_by": ids.plain_in(tree.describe(schedule.trigger)),
        "generation": schedule_state.generation,
        **({"dag": ids.dag_of(name)} if ids.is_of_dag(name) else {}),
    }


def run_view(run: Run, prices: Prices = LIST) -> RunView:
    registered = [cast("PartitionOfRunView", dict(each)) for each in run.registered]
    return shown(
        RunView,
        run,
        workflow_version=run.workflow_version or None,
        number=run.number or None,
        waited_ms=waited(run),
        took_ms=took(run),
        billed=_billed(run, prices),
        metrics=dict(run.metrics) if run.metrics else None,
        correlation=rounds.without(run.correlation),
        partition=rounds.without(run.partition),
        dag=rounds.dag_view(run),
        properties=dict(run.request.properties),
        target=dict(run.request.target),
        context=run.request.context_uri,
        lateness_ms=run.lateness,
        late_by_ms=late_by(run),
        start_calls=run.calls,
        count=run.events,
        fire=bundles.fire_of(run.run_id),
        spread=None if not run.spread else {"index": run.spread[0], "count": run.spread[1]},
        sends=None if run.sends is None else sends_view(run.sends),
        **({"registered": registered} if registered else {}),
        **({"each": elements.context_of(run.element)} if run.element is not None else {}),
        **({"result": run.result} if run.result is not None else {}),
        **({"result_refused": run.result_refused} if run.result_refused else {}),
    )


def sends_view(known: Mapping[str, Any]) -> SendsView:
    """The sends of many events, as the run of their bundle keeps them (`core/runs/sends.py`)."""
    first, last = iso(known["first"]), iso(known["last"])
    return {"first": first, "last": last, "late_p50": sends.median(known), "late_max": int(known["max"])}


def run_in_full(ports: Ports, attempts: Sequence[Run]) -> RunInFullView:
    """The last of the attempts of a run, with all of them and the events that started it."""
    history = [run_view(run, ports.settings.prices) for run in attempts]
    found: dict[str, Any] = {**history[-1], "history": history, "events": events_view(ports, attempts[-1])}
    if ports.settings.lineage:
        from chalicelib.core.openlineage import subjects

        own = subjects.family(ports.settings.lineage, attempts[-1]).own
        found["lineage"] = {"namespace": own.namespace, "job": own.job, "run_id": own.run_id}
    return cast("RunInFullView", found)


def _billed(run: Run, prices: Prices) -> BilledView | None:
    """The billed usage of a run; None if the target bills nothing, or has not reported the usage yet."""
    bill = costs.bill_of(run, prices)
    billed: Any = {**asdict(bill[0]), "cost_usd": bill[1]} if bill is not None else None
    return cast("BilledView | None", billed)


def record_view(record: Record) -> RecordView:
    return shown(RecordView, record, at=iso(record.recorded_at))


def ended_view(run: Run) -> EndedWorkView:
    """A run that was aborted or cancelled, in the form of a record."""
    at = run.ended_at if run.ended_at is not None else run.claimed_at
    return shown(EndedWorkView, run, id=run.run_id, kind=run.state, at=iso(at), count=run.events)


def version_view(row: Version, before: Version | None) -> VersionOfScheduleView:
    """A version of a schedule, with its author, its instant and the fields that it changed (L7)."""
    changes = diff.changes(before.definition, row.definition) if before else ["created"]
    return shown(VersionOfScheduleView, row, created_by=row.by, changes=changes)


def dry_run_view(schedule: Schedule, steps: Sequence[Step], left: Sequence[Job], now: Instant) -> DryRunOfTriggerView:
    """The dry run of a trigger: its state after each event, and the events that it still waits for after the last."""
    fires, end = sum(step.fires for step in steps), steps[-1].at if steps else now
    waiting = [tree.evaluate(schedule.trigger, job.leaves, end) for job in left]
    waits = joined(verdict.why for verdict in waiting[:3])
    waits = waits or plain(f"waits for {tree.describe(schedule.trigger)}")
    return {
        "steps": [
            shown(StepView, step, arrived=list(step.verdict.arrived), missing=list(step.verdict.missing))
            for step in steps
        ],
        "fires": fires,
        "left": [
            shown(OpenMatchView, verdict, correlation=rounds.without(job.correlation))
            for job, verdict in zip(left, waiting, strict=True)
        ],
        "why": plain(f"fires {text.count_of(fires, 'time')}; then ", waits),
    }


def partition_view(row: Partition, dataset: Dataset) -> RegisteredPartitionView:
    event, values = row.event, dict(row.event.partition or {})
    own: dict[str, Any] = {"partition": values, "path": event.path, "object": row.object_key}
    own |= {"ready_at": iso(event.accepted_at), "put_at": iso(event.instant)}
    if event.payload is not None:
        own["snapshot"] = dict(event.payload)
    if dataset.period is not None:
        own["period"] = period_shown(dataset, values)
    return shown(RegisteredPartitionView, row, **own)


def period_shown(dataset: Dataset, values: Mapping[str, str]) -> PeriodView | None:
    """The period of a partition; None if its values name none."""
    found = period_of(dataset, values)
    return shown(PeriodView, found) if found is not None else None


def events_view(ports: Ports, run: Run) -> list[EventOfRunView]:
    """The events that a run got. The rows of those that it gathered expire before the run, and its stored context does
    not."""
    if run.event is None and ports.clock.now() - run.claimed_at >= CLAIMED_LIFE:
        kept = context.stored_events(ports, run)
        if kept is not None:
            return list(map(_event_view, kept))
    return list(map(_event_view, context.describe_events(ports, context.events_of(ports, run))))


def _event_view(described: Mapping[str, Any]) -> EventOfRunView:
    """An event as a run's context describes it. The run that reported a status may belong to another namespace."""
    event: Any = dict(described)
    for field, kind in OF_OTHERS.items():
        if event.get(field) is not None:
            event[field] = mention(kind, event[field])
    return cast("EventOfRunView", event)


def ignored_view(row: IgnoredObjects | None) -> list[IgnoredObjectView]:
    """The last objects of a dataset that belong to no partition, the newest first."""
    found: list[Any] = [dict(each) for each in (row.objects if row is not None else ())]
    return found


def audit_view(row: AuditRow) -> AuditRecordView:
    document = row.document
    at, by = iso(row.recorded_at), row.arn or None
    return shown(AuditRecordView, row, at=at, by=by, before=document.get("before"), after=document.get("after"))
