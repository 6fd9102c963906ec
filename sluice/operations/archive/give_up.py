"""The source gives namespaces up that were exported: from then on nothing of them starts there.

Their rows are deleted, schedule states first: a claim and a start call expect the state, so both are refused. History
stays: ended runs, records and dead letters. Active runs and waiting jobs release what they hold of limits that stay.
Those are the limits of other namespaces, and each limit of which a row of another namespace holds a permit: it stays
until the holder has ended. Schedules of other namespaces still get the events that had not reached them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from chalicelib.core import ids
from chalicelib.core.backfills import reprocess
from chalicelib.core.errors import SluiceError
from chalicelib.core.limits import returns
from chalicelib.core.limits.writes import LeaveQueue
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.event import PostedEvent
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import TABLES
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.notice import PendingNotice
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import DeadLetter, Fire, Output, Pointer, Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Subscription
from chalicelib.core.runs import queued
from chalicelib.core.writes import Delete, Put, RemoveWaiter, Replace, Row, Write
from chalicelib.ports import Ports
from sluice.operations.archive.export import Wanted, digest, pages_of, put_manifest
from sluice.operations.ports import Archive, Copies, StoredCopy
from sluice.operations.rules import manifest
from sluice.operations.rules.limits import Moving, held, is_active, used
from sluice.operations.rules.manifest import MANIFEST, Manifest
from sluice.operations.rules.owner import notifies, plans_of, posted, unheard

STARTED = "giving-up.json"  # in the archive: rows are being deleted
BATCH = 500
_HISTORY = (Record, Fire, Output, Pointer, DeadLetter)


def give_up(copies: Copies, archive: Archive, ports: Ports) -> Manifest:
    """Delete what an export contains from its source, and mark the export as closed. Idempotent.

    Raises `SluiceError` if a file is not whole, or if the source has changed since the export."""
    made = manifest.read(archive.text(MANIFEST), copies.layout)
    if made.closed:
        return made
    for part in made.parts:
        manifest.checked(part, archive.text(part.file))
    wanted = Wanted(frozenset(made.namespaces))
    if archive.text(STARTED) is None:
        if digest(copies, wanted).as_text() != made.digest:
            message = "expected the rows as they were exported, got others: they have changed since"
            hint = "freeze the installation as docs/operations.md describes, and export again into an empty folder"
            raise SluiceError("conflict", message, None, hint)
        archive.put(STARTED, json.dumps({"exported_at": made.exported_at}))
    _delete(copies, wanted, lambda copy: isinstance(copy.row, ScheduleState))
    stays = Stays.read(copies, wanted)
    for copy in _rows(copies):
        if wanted.owns(copy):
            kept = [event for event in unheard(copy.row) if event.key in stays.keys]
            ports.ledger.put_all([Put(posted(event, ports.clock.now())) for event in kept])
            _release(ports, copy.row, stays)
            _ends_step(ports, copy.row, stays)
    # While the rows that name them are there: a command that broke off finds the parts of plans by these names.
    _delete(copies, wanted, lambda copy: isinstance(copy.row, PlanPart) and copy.row.plan not in stays.plans)
    _delete(copies, wanted, lambda copy: _goes(copy, stays))
    closed = made.model_copy(update={"closed": True})
    put_manifest(archive, closed)
    return closed


@dataclass(frozen=True, slots=True)
class Stays:
    """What rows of other namespaces still need in the source: the ``limits`` that move are those they do not use, and
    ``keys`` are those of the events for which their schedules wait. ``plans`` are those that their backfills and
    re-processings name."""

    limits: Moving
    keys: frozenset[str] = frozenset()
    plans: frozenset[str] = frozenset()

    @classmethod
    def read(cls, copies: Copies, wanted: Wanted) -> Stays:
        own = Moving(wanted.namespaces)
        if not wanted.namespaces:
            return cls(own)
        shared, keys, plans = set[str](), set[str](), set[str]()
        for copy in _rows(copies):
            if wanted.owns(copy):
                continue
            plans.update(plans_of(copy.row))
            if isinstance(copy.row, Job | Run):
                shared.update(filter(own.is_of_namespaces, used(copy.row)))
            elif isinstance(copy.row, Subscription):
                keys.add(copy.row.event_key)
        return cls(replace(own, shared=frozenset(shared)), frozenset(keys), frozenset(plans))


def _rows(copies: Copies) -> Iterator[StoredCopy]:
    return (copy for table in TABLES for copy in pages_of(copies, table))


def _delete(copies: Copies, wanted: Wanted, goes: Callable[[StoredCopy], bool]) -> None:
    found: list[StoredCopy] = []
    for copy in _rows(copies):
        if wanted.owns(copy) and goes(copy):
            found.append(copy)
        if len(found) >= BATCH:
            copies.delete(found)
            found = []
    copies.delete(found)


def _goes(copy: StoredCopy, stays: Stays) -> bool:
    """Whether a row is deleted: history stays, for as long as history is kept."""
    match copy.row:
        case Run():
            return is_active(copy.row)
        case LimitState():
            return stays.limits.has(copy.row.limit_name)
        case PlanPart():
            return copy.row.plan not in stays.plans
        case PostedEvent() if unheard(copy.row) and copy.row.event.key in stays.keys:
            return False
        case PendingNotice():
            return not stays.limits.namespaces or notifies(copy.row) in stays.limits.namespaces
        case row:
            return not isinstance(row, _HISTORY)


def _ends_step(ports: Ports, row: Row | LimitState, stays: Stays) -> None:
    """Wake the re-processing of another namespace of which a backfill is a step: it finds that the backfill is gone."""
    reprocess_id = ids.reprocess_of(row.id) if isinstance(row, Backfill) else None
    if not isinstance(row, Backfill) or row.namespace is None or reprocess_id is None:
        return
    parent = ports.rows.get(Reprocess, row.namespace, reprocess_id)
    if parent is not None and not stays.limits.moves(parent) and row.ended_at is None:
        ports.ledger.commit([Replace(reprocess.woken(parent, ports.clock.now()))])


def _release(ports: Ports, row: Row | LimitState, stays: Stays) -> None:
    """Delete a job or an active run together with what it holds of limits that stay."""
    if not isinstance(row, Job | Run) or not is_active(row):
        return
    others, now = stays.limits.others(held(row)), ports.clock.now()
    limit_states = {name: ports.jobs.limit_state(name) for name in others}
    plan: list[Write] = [Delete(row)]
    if isinstance(row, Job):
        plan += returns.return_held(replace(row, held=others), limit_states, now)
    else:
        plan += returns.give_back(others, limit_states, now, row)
    waiter = queued.waiter_of(row)
    if waiter is not None and not stays.limits.has(waiter.limit_name) and ports.jobs.is_queued(waiter):
        plan += [RemoveWaiter(waiter), LeaveQueue(waiter.limit_name)]
    if len(plan) > 1 and ports.ledger.commit(plan) is not None:
        what = waiter.job_id if waiter else "a row"
        message = f"expected {what} as it was exported, got a changed one: the source still runs"
        raise SluiceError("conflict", message, None, "freeze the installation, then repeat the command")
