"""The source gives namespaces up that were exported: from then on nothing of them starts there.

Their rows are deleted, schedule states first: a claim and a start call expect the state, so both are refused. History
stays: ended runs, records and dead letters. What active runs and waiting jobs hold of shared limits is released.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from chalicelib.core import states
from chalicelib.core.archive import manifest
from chalicelib.core.archive.manifest import MANIFEST, Manifest
from chalicelib.core.archive.owner import of_limit
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant
from chalicelib.core.limits import names, returns
from chalicelib.core.limits.writes import LeaveQueue, ReleasePermit
from chalicelib.core.rows.job import Job
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
    for table in TABLES:
        for copy in pages_of(copies, table):
            if wanted.has(copy) and isinstance(copy.row, Job | Run):
                _release(ledger, jobs, copy.row, now)
    _delete(copies, wanted, _goes)
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


def _goes(copy: StoredCopy) -> bool:
    """Whether a row is deleted: history stays, for as long as history is kept."""
    row = copy.row
    if isinstance(row, Run):
        return not states.is_terminal(row.state)
    return isinstance(row, Offer) or not isinstance(row, _HISTORY)


def _release(ledger: Ledger, jobs: JobTable, row: Job | Run, now: Instant) -> None:
    """Delete a job or an active run together with what it holds of limits that all namespaces share."""
    permits = row.held if isinstance(row, Job) else row.permits
    if isinstance(row, Run) and states.is_terminal(row.state):
        return
    shared = [name for name in permits if of_limit(name) is None and names.returns_permit(name)]
    plan: list[Write] = [Delete(row)]
    for name in shared:
        wake = now if jobs.limit_state(name).waiters else None
        plan.append(ReleasePermit(name, wake, units=returns.units_at(name, row.units)))
    waiter = queued.waiter_of(row)
    if waiter is not None and of_limit(waiter.limit_name) is None and jobs.is_queued(waiter):
        plan += [RemoveWaiter(waiter), LeaveQueue(waiter.limit_name)]
    if len(plan) > 1 and ledger.commit(plan) is not None:
        what = waiter.job_id if waiter else "a row"
        message = f"expected {what} as it was exported, got a changed one: the source still runs"
        raise SluiceError("conflict", message, None, "freeze the installation, then repeat the command")
