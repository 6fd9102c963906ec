"""Routes of approvals: a person approves a job, or refuses it."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint

from chalicelib.web import access
from chalicelib.web.http import caller, parse
from chalicelib.web.routing import route
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@route(routes, "POST", "/v1/jobs/{job_id}/approve", needs="approve", body="Verdict")
def approve_job(job_id: str) -> dict[str, Any]:
    """Approve a job that waits for an approval. The identity that signs the request is recorded as the approver."""
    from chalicelib.flow.jobs.actions import approve
    from chalicelib.flow.views.queues import Queues
    from chalicelib.web.bodies import Verdict

    request = routes.current_request
    verdict = parse(Verdict, request)
    return Queues(ports()).job(approve(ports(), job_id, caller(request), verdict.reason, access.duty(request)))


@route(routes, "POST", "/v1/jobs/{job_id}/refuse", needs="approve", body="Verdict")
def refuse_job(job_id: str) -> dict[str, Any]:
    """Refuse a job that waits for an approval. The job is aborted, and this is recorded."""
    from chalicelib.flow.jobs.actions import refuse
    from chalicelib.web.bodies import Verdict

    request = routes.current_request
    why = refuse(ports(), job_id, caller(request), parse(Verdict, request).reason, access.duty(request))
    return {"job_id": job_id, "state": "ABORTED", "reason": why.text}
