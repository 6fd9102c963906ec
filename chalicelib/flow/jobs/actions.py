"""What users do to a waiting job: approve it or refuse it (C16), or cancel it (W8).

A refused or cancelled job is dropped on record, with the user and the instant, and releases its permits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from chalicelib.core import errors
from chalicelib.core.constraints import approval
from chalicelib.core.constraints.approval import Approval
from chalicelib.core.dags import elements
from chalicelib.core.definitions import overrides
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.jobs import check, claim, gather
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.triggers import tree
from chalicelib.core.why import Why, mention
from chalicelib.flow import fire_events, lookup
from chalicelib.flow.jobs import arrangers
from chalicelib.flow.jobs.drop import drop_job
from chalicelib.flow.lookup import find_job
from chalicelib.ports import MAX_CONFLICTS, Ports

Duty = Callable[[str], bool]  # whether the caller has the duty to approve in the namespace of a full name or an id


def _everywhere(_: str) -> bool:
    return True


def approve(ports: Ports, job_id: str, by: str, reason: str = "", duty: Duty = _everywhere) -> Job:
    """Give every approval that the job waits for and the caller may give. Returns the job; a repeat changes nothing.

    An approval holds for this job and for the attempts of its run that run the same. Raises ``conflict`` if the
    job waits for no approval, ``forbidden`` if the caller may give none or has arranged the job, and
    ``changed_meanwhile`` if the job keeps changing.
    """
    for _ in range(MAX_CONFLICTS):
        now = ports.clock.now()
        job = _found(ports, job_id)
        asked = _asked(ports, job)
        given = _given(asked, job, by, duty)
        missing = [each for each in given if not _has(job, each.key, asked.content)]
        if not missing:
            return job
        arrangers.check(ports, job, by, " or ".join(constraint.describe() for constraint in given))
        new = {each.key: {"by": by, "at": now, "why": reason, "of": asked.content} for each in missing}
        due = max(now, job.due_at if job.due_at is not None else now)
        later = replace(job, approvals={**(job.approvals or {}), **new}, rev=job.rev + 1, wake_at=due, leases=0)
        later = claim.detached_from_emitter(job, later)
        if ports.ledger.commit(claim.moved(job, later)) is None:
            ports.hints.send([ref_of(later)], due, now)
            return later
    raise errors.changed_meanwhile(f"job {job_id}")


def refuse(ports: Ports, job_id: str, by: str, reason: str = "", duty: Duty = _everywhere) -> Why:
    """Drop a job that waits for an approval, as ABORTED. Returns the reason on record. Raises as ``approve`` does."""
    for _ in range(MAX_CONFLICTS):
        now = ports.clock.now()
        job = lookup.find_job(ports, job_id)
        _given(_asked(ports, job), job, by, duty)
        why = Why.of("refused", f"refused by {by} at {iso(now)}{f': {reason}' if reason else ''}")
        # It may be a prepared fire whose workflow did not ask for an approval yet.
        ports.ledger.count_closing(job.schedule.partition(".")[0])
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
    detached = ports.rows.get(Job, job.schedule, job.generation, gather.detached_key(job))
    return detached if detached is not None and detached.job_id == job_id else job


def workflow_to_approve(ports: Ports, job_id: str) -> str | None:
    """The full name of the workflow whose approval a waiting job needs; None if its workflow asks for none, or there is
    no such job. The owners of a workflow approve its jobs, also those of schedules that they may not read."""
    job = ports.jobs.find(job_id)
    if job is None or job.closed:
        return None
    wanted = [each for each in _asked(ports, job).approvals if each.place(job_id) != job_id]
    return wanted[0].place(job_id) if wanted else None


class _Asked(NamedTuple):
    """The approvals that a job needs: those of its schedule, and that of its workflow. ``content`` stands for what it
    runs now."""

    approvals: list[Approval]
    content: str = ""


def _has(job: Job, key: str, content: str) -> bool:
    given = (job.approvals or {}).get(key)
    return given is not None and approval.holds(given, content)


def _asked(ports: Ports, job: Job) -> _Asked:
    schedule = lookup.definition_of(ports, ports.rows.get(ScheduleState, job.schedule))
    if schedule is None or (check.is_prepared(job) and not tree.is_single_time(schedule.trigger)):
        return _Asked([])  # such a fire is an event for the gathering job, and only that job waits for the approval
    workflow = lookup.workflow_of(ports, schedule.workflow)
    if workflow is not None:
        schedule, workflow = elements.seen_by(job, schedule, workflow)
    asked = approval.approvals_of(overrides.constraints_of(schedule, workflow))
    return _Asked(asked, overrides.content_of(schedule, workflow))


def _given(asked: _Asked, job: Job, by: str, duty: Duty) -> list[Approval]:
    """The approvals of a job that this caller may give. Raises ``conflict`` if the job needs no approval, and
    ``forbidden`` if the caller may give none of them."""
    wanted = asked.approvals
    if not wanted:
        raise SluiceError("conflict", f"expected a job that waits for an approval, got {job.job_id}", "job_id", None)
    named = [constraint for constraint in wanted if constraint.may_be_given_by(by)]
    given = [constraint for constraint in named if duty(constraint.place(job.job_id))]
    if given:
        return given
    if not named:
        rules = "; ".join(constraint.describe() for constraint in wanted)
        raise SluiceError("forbidden", f"expected the job to be {rules}, got {by}", None, "ask one of these to do it")
    spaces = " and ".join(sorted({each.place(job.job_id).partition(".")[0] for each in named}))
    message = f"expected the role approver in namespace {spaces}, to approve this job; {by} does not have it"
    raise SluiceError("forbidden", message, None, f"an admin of {spaces} can give it: sluice access {spaces}")


def withdraw(ports: Ports, job_id: str, by: str) -> Record:
    """Cancel a job that is not yet a run; once this returns, it never becomes one. Returns the record of the job.

    A repeat by the same caller returns that record. Raises ``not_found`` (404) with the outcome of the job if it no
    longer waits. Cancelling a retry ends its run as FAILED.
    """
    why = Why.of("cancelled", "cancelled by ", mention("person", by))
    for _ in range(MAX_CONFLICTS):
        before, now = ports.rows.get(Record, job_id), ports.clock.now()
        if (
            before is not None
            and before.kind == "DROPPED"
            and (before.reason.code, *before.reason.named("person")) == (why.code, by)
        ):
            return before
        job = find_job(ports, job_id)
        ports.ledger.count_closing(job.schedule.partition(".")[0])
        fire_events.take_out(ports, job_id)  # else its bundle would be dropped, or nothing
        if drop_job(ports, job, "DROPPED", why, now, exact=True) is not None:
            return record_of(job, "DROPPED", why, now)
    raise errors.changed_meanwhile(f"job {job_id}")
