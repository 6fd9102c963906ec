"""The source gives namespaces up that were exported: from then on nothing of them starts there.

Their rows are deleted, schedule states first: a claim and a start call expect the state, so both are refused. History
stays: ended runs, records and dead letters. Active runs and waiting jobs release what they hold of limits that stay.
Those are the limits of other namespaces, and each limit of which a row of another namespace holds a permit: it stays
until the holder has ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from chalicelib.core.archive import manifest
from chalicelib.core.archive.limits import Moving, held, is_active, used
from chalicelib.core.archive.manifest import MANIFEST, Manifest
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant
from chalicelib.core.limits import returns
from chalicelib.core.limits.writes import LeaveQueue
from chalicelib.core.rows.backfill import PlanPart
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import DeadLetter, Offer, Output, Pointer, Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import queued
from chalicelib.core.writes import Delete, RemoveWaiter, Write
from chalicelib.flow.archive.export import TABLES, Wanted, digest, pages_of, put_manifest
from chalicelib.ports import Archive, Copies, JobTable, Ledger, StoredCopy

STARTED = "giving-up.json"  # in the archive: rows are being deleted
BATCH = 500
_HISTORY = (Record, Output, Pointer, DeadLetter)


def give_up(copies: Copies, archive: Archive, ledger: Ledger, jobs: JobTable, now: Instant) -> Manifest:
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
    moving = Moving(wanted.namespaces, _used_by_others(copies, wanted))
    for table in TABLES:
        for copy in pages_of(copies, table):
            if wanted.has(copy) and isinstance(copy.row, Job | Run):
                _release(ledger, jobs, copy.row, moving, now)
    # While the rows that name them are there: a command that broke off finds the parts of plans by these names.
    _delete(copies, wanted, lambda copy: isinstance(copy.row, PlanPart))
    _delete(copies, wanted, lambda copy: _goes(copy, moving))
    closed = made.model_copy(update={"closed": True})
    put_manifest(archive, closed)
    return closed


def _delete(copies: Copies, wanted: Wanted, goes: Callable[[StoredCopy], bool]) -> None:
    found: list[StoredCopy] = []
    for table in TABLES:
        for copy in pages_of(copies, table):
            if wanted.has(copy) and goes(copy):
                found.append(copy)
            if len(found) >= BATCH:
                copies.delete(found)
                found = []
    copies.delete(found)


def _used_by_others(copies: Copies, wanted: Wanted) -> frozenset[str]:
    """The limits of the namespaces that count jobs or runs of other namespaces."""
    if not wanted.namespaces:
        return frozenset()
    own, found = Moving(wanted.namespaces), set[str]()
    for table in TABLES:
        for copy in pages_of(copies, table):
            if isinstance(copy.row, Job | Run) and not wanted.has(copy):
                found.update(filter(own.is_of_namespaces, used(copy.row)))
    return frozenset(found)


def _goes(copy: StoredCopy, moving: Moving) -> bool:
    """Whether a row is deleted: history stays, for as long as history is kept."""
    row = copy.row
    if isinstance(row, Run):
        return is_active(row)
    if isinstance(row, LimitState):
        return moving.has(row.limit_name)
    return isinstance(row, Offer) or not isinstance(row, _HISTORY)


def _release(ledger: Ledger, jobs: JobTable, row: Job | Run, moving: Moving, now: Instant) -> None:
    """Delete a job or an active run together with what it holds of limits that stay."""
    if not is_active(row):
        return
    stay = moving.others(held(row))
    limit_states = {name: jobs.limit_state(name) for name in stay}
    plan: list[Write] = [Delete(row)]
    if isinstance(row, Job):
        plan += returns.return_held(replace(row, held=stay), limit_states, now)
    else:
        plan += returns.give_back(stay, limit_states, now, row)
    waiter = queued.waiter_of(row)
    if waiter is not None and not moving.has(waiter.limit_name) and jobs.is_queued(waiter):
        plan += [RemoveWaiter(waiter), LeaveQueue(waiter.limit_name)]
    if len(plan) > 1 and ledger.commit(plan) is not None:
        what = waiter.job_id if waiter else "a row"
        message = f"expected {what} as it was exported, got a changed one: the source still runs"
        raise SluiceError("conflict", message, None, "freeze the installation, then repeat the command")
