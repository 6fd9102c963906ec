"""Routes of pull workers: claim runs of a pool, send heartbeats, report ends, release runs (W5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chalice.app import Blueprint

from chalicelib.web.http import parse
from chalicelib.web.routing import route
from chalicelib.wiring import ports

if TYPE_CHECKING:
    from chalicelib.core.runs.workers import LeaseId

routes = Blueprint(__name__)


@route(routes, "POST", "/v1/workers/{pool}/claim", needs="work", body="Claim")
def claim_runs(pool: str) -> dict[str, Any]:
    """Claim runs of a pool, the most urgent first. If there are none, ``retry_after`` is the number of seconds until
    the next request. ``wait`` is the number of seconds that a claim may wait here. Each run is leased to one worker;
    the lease ends if no heartbeat arrives within ``heartbeat_seconds``."""
    from secrets import token_hex

    from chalicelib.flow.runs.workers import check_pool, claim
    from chalicelib.web.bodies import Claim

    request_data = parse(Claim, routes.current_request)
    check_pool(ports(), pool)
    wait = round(request_data.wait * 1000)
    made = claim(ports(), pool, request_data.worker, request_data.capacity, wait, token_hex(16))
    return {"leases": made.leases, "retry_after": made.retry_after / 1000, "wait": made.wait / 1000}


@route(routes, "POST", "/v1/leases/{lease_id}/heartbeat", needs="work", body="Heartbeat")
def beat_heart(lease_id: str) -> dict[str, Any]:
    """Extend a lease, and read whether the run must end. The first heartbeat reports that the work has started."""
    from chalicelib.flow.runs.workers import heartbeat
    from chalicelib.web.bodies import Heartbeat

    beat = parse(Heartbeat, routes.current_request)
    return heartbeat(ports(), _lease(lease_id), beat.worker, beat.message, beat.metrics or None)


@route(routes, "POST", "/v1/leases/{lease_id}/report", needs="work", body="Report")
def report_end(lease_id: str) -> dict[str, Any]:
    """Report the end of an attempt. Repeated reports count once. The error ``lease_lost`` names the present holder."""
    from chalicelib.flow.runs import workers
    from chalicelib.web.bodies import Report

    report = parse(Report, routes.current_request)
    succeeded = report.state == "succeeded"
    end = workers.Report(succeeded, report.exit_code, report.message, report.output, report.metrics or None)
    return workers.report(ports(), _lease(lease_id), report.worker, end)


@route(routes, "POST", "/v1/leases/{lease_id}/release", needs="work", body="Release")
def release_run(lease_id: str) -> dict[str, Any]:
    """Return a run that was not started. It goes to another worker, and uses up no attempt."""
    from chalicelib.flow.runs.workers import release
    from chalicelib.web.bodies import Release

    request_data = parse(Release, routes.current_request)
    return release(ports(), _lease(lease_id), request_data.worker, request_data.message)


def _lease(text: str) -> LeaseId:
    from chalicelib.core.runs.workers import parse_lease_id

    parsed = parse_lease_id(text)
    if parsed is None:
        raise ValueError("expected a lease id; the route checks it before this call")
    return parsed
