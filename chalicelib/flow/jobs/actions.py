"""Approvals: a person lets a job go on, or takes it out; who and when is on record (C16).

Take one waiting job off because somebody wishes it: on record, giving back what it holds (W8).
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
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.rows.run import Record
from chalicelib.core.triggers import tree
from chalicelib.flow import lookup
from chalicelib.flow.jobs.drop import drop_job, record_of
from chalicelib.flow.lookup import find_job
from chalicelib.ports import MAX_RACES, Ports


def approve(ports: Ports, job_id: str, by: str, reason: str = "") -> Job:
    """Approve of a job, for every approval that it waits for and the caller may give. Saying it again changes nothing.

    Holds for this job alone, and for the attempts of its run."""
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        job = _found(ports, job_id)
        given = _given(ports, job, by)
        open_ = [each for each in given if each.key not in job.approvals]
        if not open_:
            return job
        said = {each.key: {"by": by, "at": now, "why": reason} for each in open_}
        due = max(now, job.due_at if job.due_at is not None else now)
        later = replace(job, approvals={**job.approvals, **said}, rev=job.rev + 1, wake_at=due, leases=0)
        later = claim.detached_from_emitter(job, later)
        if ports.ledger.commit(claim.moved(job, later)) is None:
            ports.hints.send([ref_of(later)], due, now)
            return later
    raise errors.changed_meanwhile(f"job {job_id}")


def refuse(ports: Ports, job_id: str, by: str, reason: str = "") -> str:
    """Take a job out, on record. Returns what stands there."""
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        job = lookup.find_job(ports, job_id)
        _given(ports, job, by)
        why = f"refused by {by} at {iso(now)}{f': {reason}' if reason else ''}"
        if drop_job(ports, job, "ABORTED", why, now) is not None:
            return why
    raise errors.changed_meanwhile(f"job {job_id}")


def _found(ports: Ports, job_id: str) -> Job:
    """A job where it waits. Of a fire that was approved before, and which its emitter has written again, that is not
    the place of the emitter."""
    job = lookup.find_job(ports, job_id)
    if not check.is_prepared(job):
        return job
    detached = ports.jobs.job(job.schedule, job.generation, gather.detached_key(job))
    return detached if detached is not None and detached.job_id == job_id else job


def _given(ports: Ports, job: Job, by: str) -> list[Approval]:
    """The approvals of a job that this caller may give; refused if it wants none, or none of this caller."""
    schedule = lookup.definition_of(ports, ports.catalog.schedule_state(job.schedule))
    wanted = approval.approvals_of(schedule.constraints) if schedule is not None else []
    if schedule is not None and check.is_prepared(job) and not tree.is_single_time(schedule.trigger):
        wanted = []  # it is an event, which counts for the job that waits for the approval
    if not wanted:
        raise SluiceError("conflict", f"expected a job that waits for an approval, got {job.job_id}", "job_id", None)
    given = [each for each in wanted if each.may_be_given_by(by)]
    if not given:
        rules = "; ".join(each.describe() for each in wanted)
        raise SluiceError("forbidden", f"expected it to be {rules}, got {by}", None, "ask one of these")
    return given


def withdraw(ports: Ports, job_id: str, by: str) -> Record:
    """Cancel a job that has not become a run; once this returns it never will. Returns the record of it.

    Refused with 404 if there is none any more, saying what became of it. A retry takes its run along, as FAILED.
    """
    why = f"cancelled by {by}"
    for _ in range(MAX_RACES):
        job, now = find_job(ports, job_id), ports.clock.now()
        if drop_job(ports, job, "DROPPED", why, now, exact=True) is not None:
            return record_of(job, "DROPPED", why, now)
    raise errors.changed_meanwhile(f"job {job_id}")
