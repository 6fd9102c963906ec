"""Requests that create a job, idempotent by their id: one request, one job (L11, W15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chalicelib.core import errors
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.rows.request import Requested, request_of
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.views import Code, Sentence, View, shown
from chalicelib.core.why import plain
from chalicelib.core.writes import Create, Write
from chalicelib.ports import MAX_CONFLICTS, MAX_DELAY, Ports


class AcceptedView(View):
    """A job that a request has begun."""

    job_id: str
    state: str | None
    reason: Sentence
    code: Code | None


@dataclass(frozen=True, slots=True)
class NewRequest:
    """The job that a request creates, and the conditions for it."""

    job: Job
    expects: Sequence[Write]


def once(ports: Ports, request: str, make: Callable[[], NewRequest], what: str) -> str:
    """Create the job of a request, or find the one that it created before. Returns the job's id.

    ``request`` is the id of the request. ``make`` reads the present facts and builds the job; it may raise SluiceError.
    ``what`` names the changed object in the error after too many conflicts. The row of the request is created together
    with the job. So two concurrent repeats create one job, even if the schedule begins a new generation between them.
    """
    for _ in range(MAX_CONFLICTS):
        before = ports.rows.get(Requested, request)
        if before is not None:
            _hint_again(ports, before.job_id)
            return before.job_id
        request_data = make()
        job, now = request_data.job, ports.clock.now()
        if ports.runs.attempts(job.job_id) or ports.rows.get(Record, job.job_id) is not None:
            return job.job_id  # a restore of the table of jobs has lost the row of the request
        create = Create(job)
        kept = Requested(request, job.job_id, max(now, job.created_at) + HISTORY)
        refused = ports.ledger.commit([create, *request_data.expects, Create(kept)])
        if refused is None or create in refused.writes:
            _hint(ports, job)
            return job.job_id
    raise errors.changed_meanwhile(what)


def has_made(ports: Ports, kind: str, name: str, request_id: str) -> bool:
    """Whether a request with this id has made its job before. ``kind`` is what it does with ``name``: run or rerun."""
    return ports.rows.get(Requested, request_of(kind, name, request_id)) is not None


def became(ports: Ports, job_id: str) -> AcceptedView:
    """The present state of the job of a request: of the waiting job, of its run, or of the record why it never ran."""
    job = ports.jobs.find(job_id)
    if job is not None and not job.closed:
        return shown(AcceptedView, job)
    attempts = ports.runs.attempts(job_id)
    if attempts:
        return shown(AcceptedView, attempts[-1], job_id=job_id)
    record = ports.rows.get(Record, job_id)
    if record is not None:
        return shown(AcceptedView, record, job_id=job_id, state=record.kind)
    expired = plain("the history of the job has expired")
    return {"job_id": job_id, "state": None, "reason": expired, "code": None}


def _hint_again(ports: Ports, job_id: str) -> None:
    """Hint the job of a repeated request: the first answer may have been lost together with the hint."""
    job = ports.jobs.find(job_id)
    if job is not None and not job.closed:
        _hint(ports, job)


def _hint(ports: Ports, job: Job) -> None:
    now = ports.clock.now()
    due = max(now, job.due_at if job.due_at is not None else now)
    if due - now <= MAX_DELAY:  # a tick hints a job that is due later
        ports.hints.send([ref_of(job)], due, now)
