"""What the transaction of a request changes, as its audit record says it: kind, name, before and after.

A request commits more transactions than its own change: it wakes jobs, counts runs, drains a closed generation. These
follow from the change and have no record. `changes_of` returns the changes of a transaction; none for such a one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.core import ids, masks
from chalicelib.core.rows.access import AccessRow, AllowedRow, QuotasRow
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.event import Partition, PostedEvent
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job, Requested
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.rows.stops import Stop, StopsRow, stops_of
from chalicelib.core.why import readers_of
from chalicelib.core.writes import (
    Create,
    Delete,
    DeleteDeadLetter,
    DeleteJob,
    Put,
    PutDefinition,
    PutState,
    RemoveDefinition,
    Replace,
    Write,
)

MAX_DOCUMENT = 4_000  # bytes of JSON; a larger document is recorded by its digest and size
# Definitions and documents of a namespace have no list of versions, so their records hold the whole documents. No
# document is larger (`flow/definitions/store.py`), and a record with two of them fits into a row of 400 KB.
WHOLE = 100_000
OfNamespace = AccessRow | AllowedRow | GrantsRow | QuotasRow

Side = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Change:
    """What a transaction changes. ``before`` is None for what did not exist, ``after`` for what no longer does."""

    kind: str
    name: str
    before: Side = None
    after: Side = None

    @property
    def namespace(self) -> str:
        return self.name.partition(".")[0]

    def document(self) -> Mapping[str, Any]:
        """The sides that exist, as they are stored."""
        sides = {"before": self.before, "after": self.after}
        return {name: side for name, side in sides.items() if side is not None}


def changes_of(plan: Sequence[Write], target: str = "") -> list[Change]:
    """The changes that a transaction makes: one, or one of each schedule that it puts. Empty if it only follows from a
    change. ``target`` is the id of the job or run that the request names."""
    for find in (_of_definition, _of_stops, _of_row):
        for write in plan:
            found = find(write, plan)
            if found is not None:
                return [found]
    schedules = _of_states(plan)
    if schedules or not target:
        return schedules
    found = _of_target(plan, target)
    return [found] if found is not None else []


def shown(document: Mapping[str, Any], most: int = MAX_DOCUMENT) -> Mapping[str, Any]:
    """A document as a record has it: without secrets, and one above ``most`` bytes by its digest and size."""
    masked: Mapping[str, Any] = masks.masked(document)
    size = len(json.dumps(document, default=str))
    if size <= most:
        return masked
    return {"digest": ids.digest(json.dumps(masked, sort_keys=True, default=str), length=64), "size": size}


def _of_definition(write: Write, plan: Sequence[Write]) -> Change | None:
    match write:
        case PutDefinition(definition=row) if row.version != write.over and not ids.is_of_message(row.name):
            before = _side(write.before) if write.before is not None else None
            if before is None and write.over is not None:
                before = {"version": write.over}
            return Change(row.kind, row.name, before, _side(row))
        case RemoveDefinition(definition=row):
            return Change(row.kind, row.name, _side(row))
        case _:
            return None


def _side(row: Definition) -> Mapping[str, Any]:
    return {"version": row.version, "document": shown(row.document, WHOLE)}


# The kinds of the documents of a namespace whose rows have the version in `rev`.
_KINDS: dict[type, str] = {AccessRow: "access", AllowedRow: "allowed", QuotasRow: "quotas"}


def _versioned(kind: str, write: Create | Replace, row: OfNamespace) -> Change:
    """The change of a document of a namespace, with the former one."""
    old = write.before if isinstance(write, Replace) and not isinstance(write.before, StopsRow) else None
    before = {"version": old.version, "document": shown(old.document, WHOLE)} if old is not None else None
    return Change(kind, row.namespace, before, {"version": row.version, "document": shown(row.document, WHOLE)})


def _of_states(plan: Sequence[Write]) -> list[Change]:
    """The changes of schedules. A put of several schedules in one transaction changes each of them."""
    rows = [write.row for write in plan if isinstance(write, Create | Put)]
    documents = {row.schedule: row.definition for row in rows if isinstance(row, Version)}
    found = [_of_state(write, documents) for write in plan if isinstance(write, PutState)]
    return [change for change in found if change is not None]


def _of_state(write: PutState, documents: Mapping[str, Mapping[str, Any]]) -> Change | None:
    """The change of a schedule, a message, or the start of a DAG. The nodes of a DAG change with the DAG alone.
    ``documents`` are the new documents of schedules, by their names."""
    if ids.is_dag_node(write.schedule_state.schedule):
        return None
    after, before = write.schedule_state, write.over if write.over is not None and write.over.exists else None
    if before is not None and _facts(before) == _facts(after):
        return None
    kind, name = "schedule", after.schedule
    if ids.is_of_message(name):
        kind, name = "message", name.replace(f".{ids.MESSAGE}", ".")
    elif ids.is_of_dag(name):
        kind, name = "dag", ids.dag_of(name)
    own = documents.get(after.schedule)
    new = {**_facts(after), **({"document": shown(own)} if own is not None else {})} if after.exists else None
    return Change(kind, name, None if before is None else _facts(before), new)


def _facts(state: ScheduleState) -> Mapping[str, Any]:
    """What an operator sees of a schedule state: its mode, version, generation and skips."""
    skips = {"skips": list(state.skips)} if state.skips else {}
    stopped = {"timeouts": "stop"} if any(ended is None for _, ended in state.pauses) else {}
    return {"version": state.version, "state": state.mode, "generation": state.generation, **skips, **stopped}


def _of_row(write: Write, plan: Sequence[Write]) -> Change | None:
    if isinstance(write, DeleteDeadLetter):
        return _of_dead_letter(write, plan)
    if isinstance(write, Put | Delete) and isinstance(write.row, PrefixRow):
        return _of_prefix(write, write.row)
    if not isinstance(write, Create | Replace):
        return None
    row = write.row
    match row:
        case AccessRow() | AllowedRow() | QuotasRow():
            return _versioned(_KINDS[type(row)], write, row)
        case GrantsRow() if row.wake_at is not None:  # the write that ends the wake-up of its waiters changes nothing
            return _versioned("grants", write, row)
        case Backfill(namespace=None) if isinstance(write, Create) or row.state == "CANCELLED":
            return Change("backfill", row.schedule, _running(write, row), {**_begun(row), "runs": row.total})
        case Reprocess() if isinstance(write, Create) or row.state == "CANCELLED":
            after = {**_begun(row), "dataset": row.dataset, "first": row.first, "last": row.last}
            return Change("reprocess", row.namespace, _running(write, row), after)
        case Job() if _is_requested(plan):
            return Change("job", row.job_id, None, _job(row))
        case PostedEvent(event=event):
            return Change("event", event.key.partition(":")[2].replace(":", ".", 1), None, {"id": event.id})
        case Partition():
            return Change("partition", row.dataset, None, {"values": list(row.values)})
        case DagRun() if row.wake_at is not None and row.reruns:
            last = row.reruns[-1]
            again = {name: last[name] for name in ("what", "node") if name in last}
            return Change("dag_run", row.dag_run, None, {"rerun": len(row.reruns), **again})
        case _:
            return None


def _of_stops(write: Write, _: Sequence[Write]) -> Change | None:
    """A stop that begins, gets another reason, or is to end. That all schedules have it, or no longer, is no change by
    a request."""
    if not (isinstance(write, Create | Replace) and isinstance(write.row, StopsRow)):
        return None
    row, old = write.row, write.before if isinstance(write, Replace) and isinstance(write.before, StopsRow) else None
    if row.copy != "0":
        return None
    before = {stop.scope: _said_of_stop(stop) for stop in stops_of(old) if stop.is_live}
    after = {stop.scope: _said_of_stop(stop) for stop in stops_of(row) if stop.is_live}
    for scope in dict.fromkeys((*before, *after)):
        if before.get(scope) != after.get(scope):
            return Change("stop", scope, before.get(scope), after.get(scope))
    return None


def _said_of_stop(stop: Stop) -> Mapping[str, Any]:
    return {"reason": stop.reason, **({"timeouts": stop.timeouts} if stop.timeouts != "count" else {})}


def _of_prefix(write: Put | Delete, row: PrefixRow) -> Change:
    """A prefix that an administrator gives to a namespace, or takes back."""
    given = {"prefix": f"s3://{row.bucket}/{row.prefix}"}
    is_given = isinstance(write, Put) and row.owner != ""
    return Change("prefix", row.namespace, None if is_given else given, given if is_given else None)


def _begun(row: Backfill | Reprocess) -> Mapping[str, Any]:
    return {"id": row.id, "state": row.state}


def _running(write: Write, row: Backfill | Reprocess) -> Side:
    """What a backfill or re-processing was before a write: running, or nothing if the write creates it."""
    return None if isinstance(write, Create) else {"id": row.id, "state": "RUNNING"}


def _is_requested(plan: Sequence[Write]) -> bool:
    return any(isinstance(each, Create) and isinstance(each.row, Requested) for each in plan)


def _of_dead_letter(write: DeleteDeadLetter, plan: Sequence[Write]) -> Change:
    """A dead letter that is delivered again, or dropped."""
    letter = write.letter
    jobs = [each.row for each in plan if isinstance(each, Create) and isinstance(each.row, Job)]
    before = {"attempt": letter.attempt, "state": "FAILED"}
    return Change("dead_letter", letter.run_id, before, _job(jobs[0]) if jobs else None)


def _of_target(plan: Sequence[Write], target: str) -> Change | None:
    """What happens to the job or run that the request names."""
    puts = [write.row for write in plan if isinstance(write, Create | Put | Replace)]
    gone = [write.job for write in plan if isinstance(write, DeleteJob) and write.job.job_id == target]
    for row in puts:
        if isinstance(row, Job) and row.job_id == target:
            return Change("job", target, None, _job(row))
    before = _job(gone[0]) if gone else None
    for row in puts:
        if isinstance(row, Record) and row.id == target:
            return Change("job", target, before, {"state": row.kind, "reason": _reason(row)})
        if isinstance(row, Run) and row.run_id == target:
            after = {"attempt": row.attempt, "state": row.state, "cancel": row.cancel, "reason": _reason(row)}
            return Change("run", target, before, after)
    return Change("job", target, before) if gone else None


def _reason(row: Run | Record) -> str:
    return masks.text(row.reason.seen(readers_of(row.schedule)))


def _job(job: Job) -> Mapping[str, Any]:
    given = {"approvals": sorted(job.approved)} if job.approved else {}
    again = {"rerun_of": job.rerun_of} if job.rerun_of is not None else {}
    named = {"properties": sorted(job.properties)} if job.properties else {}
    return {"state": job.state, "kind": job.kind, **given, **again, **named}
