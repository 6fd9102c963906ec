"""Build the run context: the events that fired a run, its properties, and the context of the upstream run (T17)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from chalicelib.core import ids
from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.backfills import backfill
from chalicelib.core.changes import replace
from chalicelib.core.dags import elements, rounds
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.events.build import reached, status_event
from chalicelib.core.events.periods import fields_of
from chalicelib.core.jobs import of_period
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.job import Progress
from chalicelib.core.rows.parts import Parts
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Version
from chalicelib.core.targets import registry as registry_of_targets
from chalicelib.core.time.periods import Period
from chalicelib.core.triggers import registry, tree
from chalicelib.core.triggers.parts import came, lacks, values_of
from chalicelib.flow import grants, lookup, many, period_jobs
from chalicelib.flow.ingest import roll_up, seen
from chalicelib.flow.periods import Periods
from chalicelib.ports import Ports

SCHEMA = 1
# Bytes of a run's named events. Its row holds 400 KB; the properties of workflow, schedule and request may have 300 KB.
MAX_NAMED = 64 * 1024
MAX_UPSTREAM, MAX_RESULTS = 100, 50_000  # runs whose ends started a run, and bytes of their results
MAX_LEVELS = 4  # upstream runs of an upstream run whose results a context has
MAX_MISSING = 1_000  # missing partitions that the context of a run names


def build(ports: Ports, run: Run, events: Sequence[Event] | None = None) -> dict[str, Any]:
    """The context document that a run gets by reference. Of upstream runs it has the contexts that are granted (O9).
    ``events`` are those of the run, if the caller has read them (`events_of`)."""
    document = _build(ports, run, events)
    upstream = document.get("upstream")
    known = _granted(ports, upstream, run.schedule.partition(".")[0], {}) if upstream is not None else None
    return document if known is upstream else {**document, "upstream": known}


def _granted(ports: Ports, context: Mapping[str, Any], by: str, read: grants.Rows) -> Mapping[str, Any] | None:
    """The context of an upstream run, and in it those of its own upstream runs; None in place of each that a namespace
    does not grant. A context belongs to the namespace of the schedule that started the run."""
    use = ForeignUse("context", str(context["schedule"]), by, str(context["workflow"]))
    if use.owner != by and grants.used_of(ports, [use], read).missing:
        return None
    inner = context.get("upstream")
    known = _granted(ports, inner, by, read) if inner is not None else None
    return context if known is inner else {**context, "upstream": known}


def _build(ports: Ports, run: Run, known: Sequence[Event] | None) -> dict[str, Any]:
    """The context of a run, with that of its upstream run.

    It has exactly the events of the run's job, and the data that a user named for it. A list longer than
    ``inline_events`` is stored as a manifest instead.
    """
    if run.rerun_of is not None and (first := ports.payloads.context(run.rerun_of)) is not None:
        return {**first, **_of_attempt(ports, run), **_of_dag(run), **_of_spread(run), "rerun_of": run.rerun_of}
    if run.element is not None and (whole := ports.payloads.context(str(run.element["of"]))) is not None:
        return {**whole, **_of_attempt(ports, run), "each": elements.context_of(run.element)}
    kept = ports.payloads.context(run.run_id) if run.traits.redelivers and run.event is None else None
    if kept is not None:
        # The events lie under the generation that gathered them and expire with it, so use the stored context.
        return {**kept, **_of_attempt(ports, run)}
    events = known if known is not None else events_of(ports, run)
    inline = len(events) <= ports.settings.inline_events
    given, by = _results_of(ports, events), run.schedule.partition(".")[0]
    known_events = zip(describe_events(ports, events), events, strict=True)
    described = [_with_result(each, event, by, given) for each, event in known_events]
    upstream = _upstream(ports, run.event, events, given)
    return {
        "schema": SCHEMA,
        **_of_attempt(ports, run),
        "schedule": run.schedule,
        "workflow": run.workflow,
        "logical_start_time": _begun_at(run, upstream),
        "correlation": rounds.without(run.correlation),
        "events": described if inline else [],
        "manifest": None if inline else ports.payloads.put_manifest(run.run_id, described),
        "upstream": upstream,
        **({"data": dict(run.request.data)} if run.request.data is not None else {}),
        **(_of_start(upstream) if _is_node(run) else _of_period(ports, run)),
        **_of_dag(run),
        **_of_spread(run),
        **({"rerun_of": run.rerun_of} if run.rerun_of is not None else {}),
    }


def _of_attempt(ports: Ports, run: Run) -> dict[str, Any]:
    """The fields that an attempt does not share with those before it. ``result_uri`` is where a program that reports
    to nobody writes its result."""
    stores = registry_of_targets.of_run(run).stores_result
    uri = {"result_uri": ports.payloads.result_uri(run.run_id, run.attempt)} if stores else {}
    return {"run_id": run.run_id, "attempt": run.attempt, "properties": dict(run.request.properties), **uri}


def _results_of(ports: Ports, events: Sequence[Event]) -> dict[str | None, Any]:
    """The results of the runs whose success is among the events of a run, by their ids (W18). Of many the newest: each
    is read, and a target may get no more than 256 KB."""
    ended = [
        str(event.run_id)
        for event in events
        if event.kind == "program_status" and event.status == "COMPLETED" and not ids.is_dag_graph(event.workflow or "")
    ]
    found: dict[str | None, Any] = {}
    room = MAX_RESULTS
    for run in _succeeded(ports, list(dict.fromkeys(reversed(ended)))[:MAX_UPSTREAM]) if ended else ():
        room -= len(json.dumps(run.result)) if run.result is not None else 0
        if run.result is not None and room >= 0:
            found[run.run_id] = run.result
    return found


def _with_result(
    described: Mapping[str, Any], event: Event, by: str, given: Mapping[str | None, Any]
) -> dict[str, Any]:
    """An event with the result of its run, if that is of the same namespace. That of another one is a part of its
    context, which needs a grant."""
    is_own = (event.schedule or "").partition(".")[0] == by
    return {**described, "result": given[event.run_id]} if is_own and event.run_id in given else dict(described)


def _succeeded(ports: Ports, run_ids: Sequence[str]) -> Iterator[Run]:
    """The attempts that succeeded of these runs."""
    first = {row.run_id: row for row in ports.runs.several([(run_id, 1) for run_id in run_ids])}
    for run_id in run_ids:
        row = first.get(run_id)
        if row is not None and row.state != "SUCCEEDED":
            row = ports.runs.attempts(run_id)[-1]
        if row is not None and row.state == "SUCCEEDED":
            yield row


def _begun_at(run: Run, upstream: Mapping[str, Any] | None) -> int:
    """The logical start of a run, in ms. All nodes of a DAG run have that of its start, also in later rounds."""
    return int(upstream["logical_start_time"]) if upstream is not None and _is_node(run) else logical_start(run)


def _is_node(run: Run) -> bool:
    return rounds.of_run(run) is not None and not ids.is_dag_graph(run.workflow)


def _of_start(upstream: Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields about a period that a node has from the runs before it, and these from the start of the DAG."""
    return {name: upstream[name] for name in ("period", "missing") if name in upstream} if upstream is not None else {}


def _of_dag(run: Run) -> dict[str, Any]:
    """The field about the DAG run that a run belongs to; empty if there is none."""
    dag = rounds.dag_view(run)
    return {"dag": dag} if dag is not None else {}


def _of_spread(run: Run) -> dict[str, Any]:
    """The field about the place of a run among the events of its fire; empty for a fire without a spread."""
    return {"spread": {"index": run.spread[0], "count": run.spread[1]}} if run.spread else {}


def events_of(ports: Ports, run: Run, most: int | None = None) -> tuple[Event, ...]:
    """The events that a run has counted, in the order in which they were accepted; with ``most`` only that many."""
    if run.event is not None:
        return (run.event, *(run.named if run.named is not None else _named(ports, run, run.event)))
    parts = _parts_of(ports, run)
    if parts is not None:
        return _of_parts(ports, parts.values(), most)
    # A redrive may have another generation than the job that gathered the events. The id of that job names its own.
    gatherer = str((run.element or {}).get("of") or run.rerun_of or run.run_id)
    gathered = ids.parse_job_id(gatherer)
    found = ports.jobs.events_of(gatherer, run.schedule, gathered.generation if gathered else run.generation, most)
    return tuple(sorted(found, key=lambda event: (event.accepted_at, event.path or "", event.id)))


def _parts_of(ports: Ports, run: Run) -> Mapping[str, Parts] | None:
    """The parts of a period that the job of a run had; None for any other run."""
    if run.period_parts is not None or not run.correlation or (run.attempt == 1 and run.rerun_of is None):
        return run.period_parts
    first = ports.rows.get(Run, run.rerun_of or run.run_id, 1)
    return first.period_parts if first is not None else None


def _of_parts(ports: Ports, found: Iterable[Parts], most: int | None) -> tuple[Event, ...]:
    """The events of the parts that have come: those of their registered partitions."""
    keys = ((each.dataset, tuple(values_of(each, part).values())) for each in found for part in came(each))
    rows = many.rows(ports, Partition, islice(dict.fromkeys(keys), most))
    return tuple(sorted((row.event for row in rows), key=lambda event: (event.accepted_at, event.path or "")))


def period_of(ports: Ports, run: Run) -> Period | None:
    """The period of a run, whose job was that of a period; None if it has none."""
    version = ports.rows.get(Version, run.schedule, run.version) if run.correlation else None
    return Schedule.model_validate(version.definition).period_of(run.correlation) if version is not None else None


def _of_period(ports: Ports, run: Run) -> dict[str, Any]:
    """The fields about the period of a run, and about the partitions that were missing at its claim; empty without."""
    period, parts = period_of(ports, run), _parts_of(ports, run) or {}
    absent = [
        {"dataset": each.dataset, "partition": values} for each in parts.values() for values in lacks(each, MAX_MISSING)
    ]
    own = {"period": fields_of(period)} if period is not None else {}
    return {**own, "missing": absent[:MAX_MISSING]} if absent else own


def stored_events(ports: Ports, run: Run) -> list[dict[str, Any]] | None:
    """The events in the stored context of a run, or in its manifest; None if they are not stored."""
    stored = ports.payloads.context(run.run_id)
    if stored is None or stored.get("manifest") is None:
        return list(stored["events"]) if stored is not None else None
    return ports.payloads.manifest(run.rerun_of or run.run_id)


def with_named(ports: Ports, run: Run, before: Run | None) -> Run:
    """A run at its claim, with the events of the data that its values name, as they are now. So a later read of the run
    finds the same. If it continues or repeats the run ``before``, it has the events of that run, and its place in the
    fire. Events that would make the row of the run too large are left out, and read when they are needed.

    The run of a period that a backfill has begun gets the parts that are there (T25)."""
    if before is None and run.attempt > 1:
        before = ports.rows.get(Run, run.run_id, run.attempt - 1)
    if before is not None and before.spread:
        run = replace(run, spread=before.spread)
    if run.traits.replays and run.event is None and before is None:
        return _with_parts(ports, run)
    if run.event is None or not rounds.without(run.correlation):
        return run
    known = before.named if before is not None else None
    if known is None:
        known = tuple(_named(ports, run, run.event))
    return replace(run, named=known) if len(repr(known).encode()) <= MAX_NAMED else run


def _named(ports: Ports, run: Run, event: Event) -> Iterator[Event]:
    """The events of the data that a user named for a run-now or a backfill by the run's correlation, besides its own
    ``event``. For the datasets that the schedule's trigger counts, they are the registered partitions with these
    values. For the workflows, they are the statuses of the newest runs with these values. If the trigger counts one
    dataset alone, a run-now has its partition in any case, as a backfill has. With a period they are the partitions
    that its job would wait for.
    """
    values = rounds.without(run.correlation)
    version = ports.rows.get(Version, run.schedule, run.version) if values else None
    if not values or version is None:
        return
    schedule = Schedule.model_validate(version.definition)
    if schedule.period_of(values) is not None:
        leaves = _of_whole_period(ports, run, schedule)
        yield from _of_parts(ports, [each.parts for each in leaves.values() if each.parts is not None], None)
        return
    counted, own = backfill.datasets_of(schedule), run.schedule.partition(".")[0]
    for name in counted:
        found = _of_dataset(ports, name, event, values, own, event.kind == "run_now" and len(counted) == 1)
        yield from (found,) if found is not None else ()
    if not ids.is_of_dag(run.schedule):  # a node's upstream runs are those of its round
        yield from _statuses(ports, schedule, event, values, own)


def _with_parts(ports: Ports, run: Run) -> Run:
    """The run of a period with the parts that are there, accepted when the last of them was."""
    version = ports.rows.get(Version, run.schedule, run.version)
    leaves = _of_whole_period(ports, run, Schedule.model_validate(version.definition)) if version is not None else {}
    if not leaves:
        return run
    parts = {leaf: each.parts for leaf, each in leaves.items() if each.parts is not None}
    return replace(run, period_parts=parts, accepted_at=max(each.last_at for each in leaves.values()))


def _of_whole_period(ports: Ports, run: Run, schedule: Schedule) -> dict[str, Progress]:
    """The registered partitions that the job of a period waits for, by its leaves; none if its datasets do not
    determine them, or one of another namespace is not granted."""
    own, datasets = run.schedule.partition(".")[0], period_jobs.datasets_of(ports, schedule)
    uses = [ForeignUse("datasets", name, own) for name in datasets if name.partition(".")[0] != own]
    if grants.used_of(ports, uses).missing:
        return {}
    try:
        values = partial(seen.by_leaf, ports, schedule, datasets=datasets)
        _, needed = of_period.needed_by(schedule, run.correlation or {}, datasets, values)
    except SluiceError:
        return {}
    return {leaf: roll_up.progress(ports, parts, run.claimed_at) for leaf, parts in needed.items()}


def _of_dataset(
    ports: Ports, name: str, event: Event, values: Mapping[str, str], own: str, in_any_case: bool
) -> Event | None:
    """The event of the partition of a dataset with these values, other than the run's own ``event``. None if another
    namespace does not grant it, or if no such partition is registered, unless it has one ``in_any_case``."""
    if name.partition(".")[0] != own and grants.used_of(ports, [ForeignUse("datasets", name, own)]).missing:
        return None
    stored = ports.rows.get(Definition, "dataset", name) if name != event.dataset else None
    dataset = Dataset.model_validate(stored.document) if stored is not None else None
    if dataset is None or set(dataset.keys) != set(values):
        return None
    chosen = tuple(values[key] for key in dataset.keys)
    known = ports.rows.get(Partition, name, chosen)
    if known is not None:
        return known.event
    return backfill.unregistered(name, dataset, chosen, event.accepted_at) if in_any_case else None


def _statuses(ports: Ports, schedule: Schedule, event: Event, values: Mapping[str, str], own: str) -> Iterator[Event]:
    """The status of the newest run with these values of each workflow for which a trigger waits, other than that of the
    run's own ``event``. A workflow without such a run is left out, and so is a run whose status another namespace does
    not let ``own`` follow."""
    for upstream in tree.upstreams(schedule.trigger):
        for run in lookup.runs_for(ports, upstream, values) if upstream.workflow != event.workflow else ():
            use = ForeignUse("follow", run.schedule, own, run.workflow)
            if use.owner != own and grants.used_of(ports, [use]).missing:
                continue
            counted = [status for status in reached(run) if status in upstream.statuses]
            if counted:
                yield status_event(run, counted[-1])
                break


def partition_of(run: Run, events: Sequence[Event]) -> Mapping[str, str] | None:
    """The correlation values of a run for downstream schedules: its own, or those that all its events share."""
    own, of_dag = rounds.without(run.correlation), rounds.of_run(run)
    known = {tuple(sorted(keys.items())) for event in events if (keys := rounds.without(event.partition))}
    found = own or (dict(next(iter(known))) if len(known) == 1 else None)
    return {**(found or {}), rounds.KEY: of_dag} if of_dag else found


def logical_start(run: Run) -> int:
    """``logicalStartTime`` in ms: the nominal instant of a fire, else the instant at which its event was accepted."""
    return run.nominal_at or run.accepted_at or run.created_at


def describe_events(ports: Ports, events: Iterable[Event]) -> list[dict[str, Any]]:
    """The fields of events in a run's context and in its view. The leaf that counts the kind chooses them (T17). An
    event of a partition that is a period has that, too (T24)."""
    periods = Periods(ports)
    return [describe_event(event, periods.of(event)) for event in events]


def describe_event(event: Event, period: Period | None = None) -> dict[str, Any]:
    known = replace(event, partition=rounds.without(event.partition))
    found = {"kind": event.kind, "id": event.own_id, "instant": event.instant, **registry.event_fields(known)}
    return found if period is None else {**found, "period": fields_of(period)}


def _upstream(
    ports: Ports, own: Event | None, events: Sequence[Event], given: Mapping[str | None, Any]
) -> Mapping[str, Any] | None:
    """The context of the run that completed the trigger with its result, or None. It contains the context of its own
    upstream run. If the run's ``own`` event is a status, it counts before those of other upstream runs."""
    statuses = [event for event in events if event.kind == "program_status" and event.run_id]
    if own is not None and own in statuses:
        statuses = [own]
    last = max(statuses, key=lambda event: event.accepted_at, default=None)
    known = ports.payloads.context(str(last.run_id)) if last is not None else None
    if last is None or known is None or last.run_id not in given:
        return known
    return {**_without_old_results(known), "result": given[last.run_id]}


def _without_old_results(context: Mapping[str, Any], levels: int = MAX_LEVELS) -> Mapping[str, Any]:
    """A context without the results of its upstream runs beyond so many levels."""
    inner = context.get("upstream")
    if inner is None:
        return context
    kept = _without_old_results(inner, levels - 1)
    if levels < 1:
        kept = {name: value for name, value in kept.items() if name != "result"}
    return {**context, "upstream": kept}
