"""Routes of pull workers: claim runs of a pool, keep them by heartbeats, report their ends, give them back (W5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chalice.app import Blueprint

from chalicelib.web.http import parse
from chalicelib.web.routing import route
from chalicelib.wiring import ports

if TYPE_CHECKING:
    from chalicelib.core.runs.workers import LeaseId

routes = Blueprint(__name__)


@route(routes, "POST", "/v1/workers/{pool}/claim", body="Claim")
def claim_runs(pool: str) -> dict[str, Any]:
    """Take runs of a pool, the most urgent first. If there are none, ``retry_after`` says in how many seconds to ask
    again, and ``wait`` for how many a claim may wait here. Each run is leased to this worker alone, until it has not
    been heard of for ``heartbeat_seconds``."""
    from chalicelib.flow.runs.workers import claim
    from chalicelib.web.bodies import Claim

    request_data = parse(Claim, routes.current_request)
    made = claim(ports(), pool, request_data.worker, request_data.capacity, round(request_data.wait * 1000))
    return {"leases": made.leases, "retry_after": made.retry_after / 1000, "wait": made.wait / 1000}


@route(routes, "POST", "/v1/leases/{lease_id}/heartbeat", body="Heartbeat")
def beat_heart(lease_id: str) -> dict[str, Any]:
    """Keep a lease, and hear whether its run is to end. The first heartbeat says that the work has begun."""
    from chalicelib.flow.runs.workers import heartbeat
    from chalicelib.web.bodies import Heartbeat

    told = parse(Heartbeat, routes.current_request)
    return heartbeat(ports(), _lease(lease_id), told.worker, told.message, told.metrics or None)


@route(routes, "POST", "/v1/leases/{lease_id}/report", body="Report")
def report_end(lease_id: str) -> dict[str, Any]:
    """Say how an attempt ended. Said twice, it is said once; ``lease_lost`` tells who has the run now."""
    from chalicelib.flow.runs import workers
    from chalicelib.web.bodies import Report

    told = parse(Report, routes.current_request)
    succeeded = told.state == "succeeded"
    end = workers.Report(succeeded, told.exit_code, told.message, told.output, told.metrics or None)
    return workers.report(ports(), _lease(lease_id), told.worker, end)


@route(routes, "POST", "/v1/leases/{lease_id}/release", body="Release")
def release_run(lease_id: str) -> dict[str, Any]:
    """Give a run back that was not begun. It goes to another worker, and no attempt is used up."""
    from chalicelib.flow.runs.workers import release
    from chalicelib.web.bodies import Release

    told = parse(Release, routes.current_request)
    return release(ports(), _lease(lease_id), told.worker, told.message)


def _lease(text: str) -> LeaseId:
    from chalicelib.core.runs.workers import parse_lease_id

    parsed = parse_lease_id(text)
    if parsed is None:
        raise ValueError("expected a lease id that the route has checked")
    return parsed
