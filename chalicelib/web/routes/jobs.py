"""Routes of waiting jobs: their lists, what they wait for, and the decisions of people about them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal, get_args

from chalice.app import Request

from chalicelib.core.states import JobKind, JobState
from chalicelib.core.views import Code, Sentence, View
from chalicelib.flow.jobs.actions import approve, refuse, withdraw
from chalicelib.flow.lookup import existing, find_job, require
from chalicelib.flow.schedules import messages
from chalicelib.flow.views import explain
from chalicelib.flow.views.chosen import Chosen
from chalicelib.flow.views.lists import jobs_of_namespace, jobs_of_queue, jobs_of_schedule
from chalicelib.flow.views.queues import Queues
from chalicelib.flow.views.views import record_view
from chalicelib.web import access, filters, unseen
from chalicelib.web.access import sees
from chalicelib.web.bodies import Verdict
from chalicelib.web.http import Json, caller, choice, parse, query
from chalicelib.web.paging import listing
from chalicelib.wiring import ports


class RefusedView(View):
    """A job that a refusal has ended."""

    job_id: str
    state: Literal["ABORTED"]
    reason: Sentence
    code: Code


def schedule_jobs(request: Request, name: str) -> Json:
    """List the waiting jobs of a schedule. With a filter, a page may hold fewer than ``limit``, even none, and still
    have a next page."""
    existing(ports(), name)
    queues = Queues(ports())
    read = filters.chosen_by(request, _wanted(request, name), partial(jobs_of_schedule, ports(), name))
    return listing(request, queues.page(read), queues.job)


def why_schedule(request: Request, name: str) -> Json:
    """Explain why a schedule has not run: its state, and what its jobs wait for."""
    return unseen.why(explain.why_schedule(ports(), name), sees(request))


def why_message(request: Request, name: str) -> Json:
    """Explain why a message has not been sent: when it is due, and what its jobs wait for."""
    app, _, short = name.rpartition(".")
    stored = messages.get(ports(), app, short)
    return unseen.why(explain.why_schedule(ports(), stored.schedule_state.schedule), sees(request))


def list_jobs(request: Request, ns: str) -> Json:
    """List the waiting jobs of a namespace, each with its place in its queue. A request reads a bounded number of jobs,
    so a page may hold fewer than ``limit``, even none, and still have a next page."""
    wanted, limit_name = _wanted(request, ns), query(request, "queued_in")
    require(ports(), "namespace", ns)
    read = partial(jobs_of_namespace, ports(), ns)
    if limit_name is not None:
        read = partial(jobs_of_queue, ports(), ns, limit_name)
    queues = Queues(ports())
    return listing(request, queues.page(filters.chosen_by(request, wanted, read)), queues.job)


def get_job(request: Request, job_id: str) -> Json:
    """Read a waiting job."""
    return Queues(ports()).job(find_job(ports(), job_id))


def why_job(request: Request, job_id: str) -> Json:
    """Explain what a job waits for, and what will wake it."""
    return unseen.why(explain.why_job(ports(), find_job(ports(), job_id)), sees(request))


def cancel_job(request: Request, job_id: str) -> Json:
    """Cancel a waiting job, and record this. To cancel a job that has become a run, cancel the run."""
    return record_view(withdraw(ports(), job_id, caller(request)))


def approve_job(request: Request, job_id: str) -> Json:
    """Approve a job that waits for an approval. The identity that signs the request is recorded as the approver."""
    verdict = parse(Verdict, request)
    return Queues(ports()).job(approve(ports(), job_id, caller(request), verdict.reason, access.duty(request)))


def refuse_job(request: Request, job_id: str) -> RefusedView:
    """Refuse a job that waits for an approval. The job is aborted, and this is recorded."""
    why = refuse(ports(), job_id, caller(request), parse(Verdict, request).reason, access.duty(request))
    return {"job_id": job_id, "state": "ABORTED", "reason": why, "code": why.code}


def _wanted(request: Request, name: str) -> Chosen:
    """The filters of a list of jobs, of a namespace or of a schedule, by its name. Raises ``invalid`` for an unknown
    state or kind."""
    ns, _, rest = name.partition(".")
    wanted = filters.of(request, ns, get_args(JobState), rest.partition(".")[0] or None)
    return replace(wanted, kind=choice(request, "kind", get_args(JobKind)))
