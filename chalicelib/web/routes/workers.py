"""Routes of pull workers: claim runs of a pool, send heartbeats, report ends, release runs (W5)."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from chalice.app import Request

from chalicelib.core.runs.workers import parse_lease_id
from chalicelib.flow.runs import workers
from chalicelib.flow.runs.workers import check_pool, claim, heartbeat, release
from chalicelib.web.bodies import Claim, Heartbeat, Release, Report
from chalicelib.web.http import Json, parse
from chalicelib.wiring import ports

if TYPE_CHECKING:
    from chalicelib.core.runs.workers import LeaseId


def claim_runs(request: Request, pool: str) -> Json:
    """Claim runs of a pool, the most urgent first. If there are none, ``retry_after`` is the number of seconds until
    the next request. ``wait`` is the number of seconds that a claim may wait here. Each run is leased to one worker;
    the lease ends if no heartbeat arrives within ``heartbeat_seconds``."""
    request_data = parse(Claim, request)
    check_pool(ports(), pool)
    wait = round(request_data.wait * 1000)
    made = claim(ports(), pool, request_data.worker, request_data.capacity, wait, secrets.token_hex(16))
    return {"leases": made.leases, "retry_after": made.retry_after / 1000, "wait": made.wait / 1000}


def beat_heart(request: Request, lease_id: str) -> Json:
    """Extend a lease, and read whether the run must end. The first heartbeat reports that the work has started."""
    beat = parse(Heartbeat, request)
    return heartbeat(ports(), _lease(lease_id), beat.worker, beat.message, beat.metrics or None)


def report_end(request: Request, lease_id: str) -> Json:
    """Report the end of an attempt, and its result. Repeated reports count once. The error ``lease_lost`` names the
    present holder."""
    report = parse(Report, request)
    succeeded = report.state == "succeeded"
    said = (report.exit_code, report.message, report.output, report.metrics or None)
    end = workers.Report(succeeded, *said, report.handed_on)
    return workers.report(ports(), _lease(lease_id), report.worker, end)


def release_run(request: Request, lease_id: str) -> Json:
    """Return a run that was not started. It goes to another worker, and uses up no attempt."""
    request_data = parse(Release, request)
    return release(ports(), _lease(lease_id), request_data.worker, request_data.message)


def _lease(text: str) -> LeaseId:
    parsed = parse_lease_id(text)
    if parsed is None:
        raise ValueError("expected a lease id; the route checks it before this call")
    return parsed
