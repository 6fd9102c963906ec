"""Events after a restore: which count for which run, and which are applied again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import SECOND
from chalicelib.core.jobs.of_period import of_mark
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import AppliedEvent, CountedObject, Event, Partition, PostedEvent
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import Delete, Put
from chalicelib.flow.ingest import objects
from chalicelib.flow.ingest.objects import version_name
from sluice.operations.archive.export import pages_of
from sluice.operations.ports import Changed
from sluice.operations.repair.repair import Repair
from sluice.operations.repair.stock import Outbox, Stock
from sluice.operations.rules import adopted


def applied(repair: Repair) -> None:
    """The marks of events agree with the jobs and runs that counted them."""
    for run in list(repair.stock.runs.values()):
        counted = _counted(repair, run)
        if counted is None:
            continue
        marks = {mark.event.id: mark for mark in repair.stock.applied.get(run.run_id, ())}
        for described in counted:
            if described["id"] not in marks:
                _mark(repair, run, described)
        wanted = {described["id"] for described in counted}
        _forget(repair, [mark for mark in marks.values() if mark.event.id not in wanted], "its run began without it")
    known = {job.job_id for job in [*repair.stock.jobs.values(), *repair.stock.tombstones]}
    for job_id, marks_of in list(repair.stock.applied.items()):
        if job_id not in repair.stock.ended and job_id not in repair.stock.records and job_id not in known:
            _forget(repair, marks_of, "its job is lost")


def _counted(repair: Repair, run: Run) -> list[Mapping[str, Any]] | None:
    """The events in the context of a run since the instant; None if it has no list of events that it gathered. The run
    of a period keeps its parts, from which its events follow: they may have come before its schedule, without a
    mark."""
    if run.claimed_at < repair.since or run.event is not None or not run.traits.of_events:
        return None
    if run.period_parts is not None or run.element is not None:  # the events of an element are those of its node
        return None
    if repair.is_elsewhere(run):
        return None
    context = repair.context(run.run_id)
    if context is None:
        why = "missing or cut off: what its run has counted may count again; copy the old control bucket first"
        repair.found("context", run.run_id, why)
        return None
    if context.get("manifest") is not None or run.attempt > 1:
        return None
    return list(context.get("events", ()))


def _mark(repair: Repair, run: Run, described: Mapping[str, Any]) -> None:
    event = repair.stock.events().get(described["id"]) or adopted.event_of(described, run)
    repair.found("event", event.id, f"marked as counted by run {run.run_id}")
    mark = AppliedEvent(run.schedule, run.generation, event, run.run_id)
    repair.stock.applied[run.run_id].append(mark)
    repair.write(Put(mark))


def _forget(repair: Repair, marks: list[AppliedEvent], why: str) -> None:
    for mark in list(marks):  # they may be those of the stock itself
        repair.found("event", mark.event.id, f"counts again for {mark.schedule}: {why}")
        repair.stock.applied[mark.event_job].remove(mark)
        repair.again.append(mark)
        repair.write(Delete(mark))


def opened(repair: Repair) -> None:
    """Apply every event since the instant again: a schedule that has it is not changed. Register the objects that
    are in the buckets, and in no table."""
    for event in [of_mark(mark.event) for marks in repair.stock.applied.values() for mark in marks]:
        if event.accepted_at >= repair.since and event.id not in repair.stock.outboxes:
            outbox = _outbox_of(repair, event)
            if outbox is not None:
                repair.found("event", event.id, "registered again: only the schedules that counted it had it")
                repair.stock.outboxes[event.id] = outbox
                repair.write(Put(outbox))  # before the objects are matched, which would count again otherwise
    closed = [each for each in repair.stock.outboxes.values() if each.wake_at is None or each.cursor is not None]
    if closed:
        repair.found("outboxes", f"{len(closed)} events", "applied again to the schedules without them")
    if repair.dry_run:
        return
    for dataset in _datasets(repair):
        try:
            for changed in repair.changed(dataset.bucket, dataset.prefix, repair.since - SECOND):
                _match(repair, dataset, changed)
        except Exception as error:  # a bucket that cannot be listed
            _left_alone(repair, "dataset", f"s3://{dataset.bucket}/{dataset.prefix}", error)
    # Last, because an object that is matched applies its event and closes the outbox. So a repeated repair finds
    # each outbox open.
    for outbox in (repair.stock.outboxes | Stock.read(repair.copies, repair.since).outboxes).values():
        opened = replace(outbox, cursor=None, wake_at=repair.now)
        repair.write(Put(replace(opened, expires_at=None) if isinstance(opened, PostedEvent) else opened))


def _match(repair: Repair, dataset: Dataset, changed: Changed) -> None:
    created = ObjectCreated(dataset.bucket, changed.key, changed.at, changed.size, changed.etag)
    try:
        objects.match_object(repair.ports, created)
    except Exception as error:  # what others have written may be anything, and must not stop the repair
        _left_alone(repair, "object", f"s3://{dataset.bucket}/{changed.key}", error)


def _left_alone(repair: Repair, kind: str, name: str, error: Exception) -> None:
    why = error.message if isinstance(error, SluiceError) else f"{type(error).__name__}: {error}"
    repair.found(kind, name, f"left alone: {why}; mend it, and repair again")


def _datasets(repair: Repair) -> Iterator[Dataset]:
    for copy in pages_of(repair.copies, "catalog"):
        row = copy.row
        if isinstance(row, Definition) and row.kind == "dataset":
            yield Dataset.model_validate(row.document)


def _outbox_of(repair: Repair, event: Event) -> Outbox | None:
    """The row that registers an event, made from the event itself; None for an event of another kind."""
    if event.kind == "event":
        return PostedEvent(event)
    stored = repair.ports.rows.get(Definition, "dataset", event.dataset) if event.dataset else None
    if stored is None or event.dataset is None:
        return None
    dataset = Dataset.model_validate(stored.document)
    if event.kind == "partition" and event.partition is not None and dataset.format == "files":
        values = tuple(event.partition[key] for key in dataset.keys)
        if event.id != ids.event_id("partition", event.dataset, *values):
            return _version_of(repair, dataset, event)
        if repair.ports.rows.get(Partition, event.dataset, values) is None:
            return Partition(event.dataset, values, event, "")
    if event.kind == "size" and event.path is not None:
        key = event.path.removeprefix(f"s3://{dataset.bucket}/")
        return CountedObject(event.dataset, key, "", event)
    return None


def _version_of(repair: Repair, dataset: Dataset, event: Event) -> CountedObject | None:
    """The row of the version of a flag or manifest by which a partition was written again; None if it is stored."""
    flag = dataset.ready.done_flag or dataset.ready.manifest or ""
    key = (event.path or "").removeprefix(f"s3://{dataset.bucket}/") + flag
    name = version_name(event.instant - event.instant % SECOND)
    stored = repair.ports.rows.get(CountedObject, str(event.dataset), key, name)
    return CountedObject(str(event.dataset), key, name, event) if stored is None else None
