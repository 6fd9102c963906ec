"""What users do to a waiting job: approve it or refuse it (C16), or cancel it (W8).

A refused or cancelled job is dropped on record, with the user and the instant, and releases its permits.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import errors
from chalicelib.core.constraints import approval
from chalicelib.core.constraints.approval import Approval
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.jobs import check, claim, gather
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.rows.run import Record
from chalicelib.core.triggers import tree
from chalicelib.flow import lookup
from chalicelib.flow.jobs.drop import drop_job
from chalicelib.flow.lookup import find_job
from chalicelib.ports import MAX_RACES, Ports


def approve(ports: Ports, job_id: str, by: str, reason: str = "") -> Job:
    """Give every approval that the job waits for and the caller may give. Returns the job; a repeat changes nothing.

    An approval holds for this job and for all attempts of its run. Raises ``conflict`` if the job waits for no
    approval, ``forbidden`` if the caller may give none, and ``changed_meanwhile`` if the job keeps changing.
    """
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        job = _found(ports, job_id)
        given = _given(ports, job, by)
        _check_requesters(ports, job, by)
        missing = [constraint for constraint in given if constraint.key not in job.approvals]
        if not missing:
            return job
        new = {constraint.key: {"by": by, "at": now, "why": reason} for constraint in missing}
        due = max(now, job.due_at if job.due_at is not None else now)
        later = replace(job, approvals={**job.approvals, **new}, rev=job.rev + 1, wake_at=due, leases=0)
        later = claim.detached_from_emitter(job, later)
        if ports.ledger.commit(claim.moved(job, later)) is None:
            ports.hints.send([ref_of(later)], due, now)
            return later
    raise errors.changed_meanwhile(f"job {job_id}")


def refuse(ports: Ports, job_id: str, by: str, reason: str = "") -> str:
    """Drop a job that waits for an approval, as ABORTED. Returns the reason on record. Raises as ``approve`` does."""
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        job = lookup.find_job(ports, job_id)
        _given(ports, job, by)
        why = f"refused by {by} at {iso(now)}{f': {reason}' if reason else ''}"
        if drop_job(ports, job, "ABORTED", why, now) is not None:
            return why
    raise errors.changed_meanwhile(f"job {job_id}")


def _found(ports: Ports, job_id: str) -> Job:
    """The job under the sort key at which it waits.

    An approval detaches a fire from the sort key of its emitter. A stalled emitter may write that key again later.
    """
    job = lookup.find_job(ports, job_id)
    if not check.is_prepared(job):
        return job
    detached = ports.jobs.job(job.schedule, job.generation, gather.detached_key(job))
    return detached if detached is not None and detached.job_id == job_id else job


def _given(ports: Ports, job: Job, by: str) -> list[Approval]:
    """The approvals of a job that this caller may give. Raises ``conflict`` if the job needs no approval, and
    ``forbidden`` if the caller may give none of them."""
    schedule = lookup.definition_of(ports, ports.catalog.schedule_state(job.schedule))
    wanted = approval.approvals_of(schedule.constraints) if schedule is not None else []
    if schedule is not None and check.is_prepared(job) and not tree.is_single_time(schedule.trigger):
        wanted = []  # this fire is an event for the gathering job, and only that job waits for the approval
    if not wanted:
        raise SluiceError("conflict", f"expected a job that waits for an approval, got {job.job_id}", "job_id", None)
    given = [constraint for constraint in wanted if constraint.may_be_given_by(by)]
    if not given:
        rules = "; ".join(constraint.describe() for constraint in wanted)
        raise SluiceError("forbidden", f"expected the job to be {rules}, got {by}", None, "ask one of these to do it")
    return given


def _check_requesters(ports: Ports, job: Job, by: str) -> None:
    """Raise ``forbidden`` if the caller has requested the job, or posted an event that it counts. The caller may still
    refuse it."""
    requesters = {job.requested_by, job.event.by if job.event is not None else None}
    if job.requested_by is not None and job.kind in ("gathering", "detached"):
        # The job names the last of its signers; earlier ones are those of its events.
        events = ports.jobs.events_of(job.job_id, job.schedule, job.generation)
        requesters |= {gather.event_requester(event, job.schedule) for event in events}
    if by in requesters:
        hint = "ask another person who may approve it; you may still refuse it"
        raise SluiceError(
            "forbidden", f"expected an approval by another person, got {by}, who requested it", None, hint
        )


def withdraw(ports: Ports, job_id: str, by: str) -> Record:
    """Cancel a job that is not yet a run; once this returns, it never becomes one. Returns the record of the job.

    Raises ``not_found`` (404) with the outcome of the job if it no longer waits. Cancelling a retry ends its run as
    FAILED.
    """
    why = f"cancelled by {by}"
    for _ in range(MAX_RACES):
        job, now = find_job(ports, job_id), ports.clock.now()
        if drop_job(ports, job, "DROPPED", why, now, exact=True) is not None:
            return record_of(job, "DROPPED", why, now)
    raise errors.changed_meanwhile(f"job {job_id}")
