"""Routes of actions on runs: cancel, ping, run again, read logs (W6, W15)."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.web.http import answer, caller, number, query, request_id
from chalicelib.web.quotas import check_waiting
from chalicelib.web.routing import IDEMPOTENCY_KEY, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

ONE = "/v1/runs/{run_id}"


@route(routes, "POST", ONE + "/cancel", needs="operate", status=(202,))
def cancel_run(run_id: str) -> Response:
    """Cancel a run. Sluice cancels it at its target, which takes a while; a pull worker gets the cancellation with its
    next heartbeat."""
    from chalicelib.flow.runs.actions import cancel
    from chalicelib.flow.views.views import run_view

    return answer(run_view(cancel(ports(), run_id, caller(routes.current_request))), 202)


@route(routes, "POST", ONE + "/ping", needs="operate", status=(202,))
def ping_run(run_id: str) -> Response:
    """Poll the target of an active run now. The run shows the result a second or two later."""
    from chalicelib.flow.runs.actions import ping
    from chalicelib.flow.views.views import run_view

    return answer(run_view(ping(ports(), run_id)), 202)


@route(routes, "POST", ONE + "/rerun", needs="operate", headers=(IDEMPOTENCY_KEY,), status=(202,))
def rerun_run(run_id: str) -> Response:
    """Run a finished run again, with its properties, data and context. The new job skips the trigger, but not the
    constraints. Requests with the same Idempotency-Key create one job; a repeat returns that job and its current state.
    """
    from chalicelib.flow.requests import became, has_made
    from chalicelib.flow.runs.actions import rerun

    request = request_id(routes.current_request)
    check_waiting(run_id.partition(".")[0], lambda: has_made(ports(), "rerun", run_id, request))
    job_id = rerun(ports(), run_id, request)
    return answer(became(ports(), job_id), 202)


@route(routes, "GET", ONE + "/logs", needs="read", query=("attempt", "lines"))
def read_logs(run_id: str) -> dict[str, Any]:
    """Read the last lines of an attempt's log, from an EMR driver or a pull worker."""
    from chalicelib.flow.views import logs

    request = routes.current_request
    attempt = number(request, "attempt", 0, 1_000) if query(request, "attempt") is not None else None
    return logs.of_run(ports(), run_id, attempt, number(request, "lines", 100, logs.MAX_LINES))
