"""Routes of jobs, runs, records and health: what waits, what ran, what became of the rest, and why."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint

from chalicelib.web.definitions import NS
from chalicelib.web.http import SIGNED, answers, listing, paging, query
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@routes.route("/v1/health", methods=["GET"], authorizer=SIGNED)
@answers
def health() -> dict[str, Any]:
    """Answers when the tables can be read; ``lake`` is the bucket that datasets call ``lake``."""
    ports().catalog.definitions("namespace", "", 1, None)
    settings = ports().settings
    return {"status": "ok", "lake": settings.lake_bucket, "control": settings.control_bucket}


@routes.route(NS + "/jobs", methods=["GET"], authorizer=SIGNED)
@answers
def list_jobs(ns: str) -> dict[str, Any]:
    from chalicelib.flow.lists import jobs_of_namespace
    from chalicelib.flow.read import job_view

    return listing(jobs_of_namespace(ports(), ns, *paging(routes.current_request)), job_view)


@routes.route(NS + "/runs", methods=["GET"], authorizer=SIGNED)
@answers
def list_runs(ns: str) -> dict[str, Any]:
    from chalicelib.core.errors import invalid
    from chalicelib.core.states import RUN_MOVES
    from chalicelib.flow.lists import runs_of_namespace
    from chalicelib.flow.read import run_view
    from chalicelib.ports import Page

    request = routes.current_request
    state = query(request, "state")
    if state is not None and state not in RUN_MOVES:
        raise invalid("state", f"one of {', '.join(RUN_MOVES)}", state)
    page = runs_of_namespace(ports(), ns, query(request, "day"), *paging(request))
    kept = tuple(run for run in page.items if state in (None, run.state))
    return listing(Page(kept, page.cursor), run_view)


@routes.route(NS + "/records", methods=["GET"], authorizer=SIGNED)
@answers
def list_records(ns: str) -> dict[str, Any]:
    from chalicelib.flow.lists import records_of_namespace
    from chalicelib.flow.read import record_view

    request = routes.current_request
    return listing(records_of_namespace(ports(), ns, query(request, "day"), *paging(request)), record_view)


@routes.route("/v1/jobs/{job_id}", methods=["GET"], authorizer=SIGNED)
@answers
def get_job(job_id: str) -> dict[str, Any]:
    from chalicelib.flow.read import find_job, job_view

    return job_view(find_job(ports(), job_id))


@routes.route("/v1/jobs/{job_id}/why", methods=["GET"], authorizer=SIGNED)
@answers
def why_job(job_id: str) -> dict[str, Any]:
    from chalicelib.flow import read

    return read.why_job(ports(), read.find_job(ports(), job_id))


@routes.route("/v1/runs/{run_id}", methods=["GET"], authorizer=SIGNED)
@answers
def get_run(run_id: str) -> dict[str, Any]:
    from chalicelib.flow import read

    attempts = read.find_run(ports(), run_id)
    return {
        **read.run_view(attempts[-1]),
        "history": [read.run_view(run) for run in attempts],
        "events": read.events_view(ports(), attempts[-1]),
    }


@routes.route("/v1/runs/{run_id}/why", methods=["GET"], authorizer=SIGNED)
@answers
def why_run(run_id: str) -> dict[str, Any]:
    from chalicelib.flow import read

    return read.why_run(read.find_run(ports(), run_id)[-1])
