"""Routes of jobs, runs, records and health."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from chalice.app import Blueprint, Request

from chalicelib.web import unseen
from chalicelib.web.access import SIGNED, sees
from chalicelib.web.http import caller, day, query
from chalicelib.web.paging import PAGING, Read, listing
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import route
from chalicelib.wiring import ports

if TYPE_CHECKING:
    from chalicelib.core.rows.job import Job

routes = Blueprint(__name__)

# The most that a request with ``?state`` reads: this many pages, or this many runs, whichever is reached first.
MAX_PAGES, MAX_READ = 10, 500


@route(routes, "GET", "/v1/health", needs=SIGNED)
def health() -> dict[str, Any]:
    """Check that the API can read its tables. ``lake`` is the bucket that datasets can name ``lake``."""
    ports().catalog.definitions("namespace", "", 1, None)
    settings = ports().settings
    return {"status": "ok", "lake": settings.lake_bucket, "control": settings.control_bucket}


@route(routes, "GET", NS + "/jobs", needs="read", query=("state", "kind", "queued_in", *PAGING))
def list_jobs(ns: str) -> dict[str, Any]:
    """List the waiting jobs of a namespace, each with its place in its queue. A request reads a bounded number of jobs,
    so a page may hold fewer than ``limit``, even none, and still have a next page."""
    from chalicelib.flow.views.queues import Queues
    from chalicelib.flow.views.waiting import jobs_of_namespace, jobs_of_queue
    from chalicelib.web.filters import kept_jobs

    request = routes.current_request
    keep, limit_name = kept_jobs(request), query(request, "queued_in")
    _require_namespace(ns)
    read = partial(jobs_of_namespace, ports(), ns)
    if limit_name is not None:
        read = partial(jobs_of_queue, ports(), ns, limit_name)
    queues = Queues(ports())
    return listing(request, queues.holding.page(_fitting(read, keep)), queues.job)


@route(routes, "GET", NS + "/runs", needs="read", query=("state", "day", *PAGING))
def list_runs(ns: str) -> dict[str, Any]:
    """List the runs of a namespace, newest first. Without a day, the list holds the last two weeks."""
    from chalicelib.flow.views.lists import runs_of_namespace
    from chalicelib.flow.views.views import run_view

    request = routes.current_request
    _require_namespace(ns)
    read = partial(runs_of_namespace, ports(), ns, day(request))
    return listing(request, in_state(request, read), partial(run_view, prices=ports().settings.prices))


@route(routes, "GET", NS + "/records", needs="read", query=("day", *PAGING))
def list_records(ns: str) -> dict[str, Any]:
    """List the aborted, dropped, coalesced, skipped and expired jobs of a namespace, newest first."""
    from chalicelib.flow.views.lists import records_of_namespace
    from chalicelib.flow.views.views import record_view

    request = routes.current_request
    _require_namespace(ns)
    return listing(request, partial(records_of_namespace, ports(), ns, day(request)), record_view)


@route(routes, "GET", "/v1/jobs/{job_id}", needs="read")
def get_job(job_id: str) -> dict[str, Any]:
    """Read a waiting job."""
    from chalicelib.flow.lookup import find_job
    from chalicelib.flow.views.queues import Queues

    return Queues(ports()).job(find_job(ports(), job_id))


@route(routes, "GET", "/v1/jobs/{job_id}/why", needs="read")
def why_job(job_id: str) -> dict[str, Any]:
    """Explain what a job waits for, and what will wake it."""
    from chalicelib.flow import lookup
    from chalicelib.flow.views import explain

    return unseen.why(explain.why_job(ports(), lookup.find_job(ports(), job_id)), sees(routes.current_request))


@route(routes, "POST", "/v1/jobs/{job_id}/cancel", needs="operate")
def cancel_job(job_id: str) -> dict[str, Any]:
    """Cancel a waiting job, and record this. To cancel a job that has become a run, cancel the run."""
    from chalicelib.flow.jobs.actions import withdraw
    from chalicelib.flow.views.views import record_view

    return record_view(withdraw(ports(), job_id, caller(routes.current_request)))


@route(routes, "GET", "/v1/runs/{run_id}", needs="read")
def get_run(run_id: str) -> dict[str, Any]:
    """Read a run with its attempts and the events that triggered it."""
    from chalicelib.flow import lookup
    from chalicelib.flow.runs import failures
    from chalicelib.flow.views import views

    attempts = [failures.with_reason(ports(), run) for run in lookup.find_run(ports(), run_id)]
    prices = ports().settings.prices
    return {
        **views.run_view(attempts[-1], prices),
        "history": [views.run_view(run, prices) for run in attempts],
        "events": views.events_view(ports(), attempts[-1]),
    }


@route(routes, "GET", "/v1/runs/{run_id}/why", needs="read")
def why_run(run_id: str) -> dict[str, Any]:
    """Explain what triggered a run, and why it is in its state. For a job that ended without a run: how, when and
    why."""
    from chalicelib.flow.views import explain

    return explain.why_work(ports(), run_id)


def in_state(request: Request, read: Read) -> Read:
    """A read of the runs in the state ``?state=FAILED``. One request reads a bounded number of runs, so a page may hold
    fewer than ``limit``, even none, and still have a next page."""
    from chalicelib.core.errors import invalid
    from chalicelib.core.states import RUN_MOVES
    from chalicelib.ports import Page

    state = query(request, "state")
    if state is None:
        return read
    if state not in RUN_MOVES:
        raise invalid("state", f"one of {', '.join(RUN_MOVES)}", state, "use one of these, or leave state out")

    def kept(limit: int, cursor: str | None) -> Page[Any]:
        found: list[Any] = []
        searched = 0
        for _ in range(MAX_PAGES):
            page = read(limit - len(found), cursor)
            found += [run for run in page.items if run.state == state]
            searched, cursor = searched + len(page.items), page.cursor
            if cursor is None or len(found) == limit or searched >= MAX_READ:
                break
        return Page(tuple(found), cursor)

    return kept


def _fitting(read: Read, keep: Callable[[Job], bool]) -> Read:
    """A read that leaves out the jobs that do not fit. It goes on for some pages, so that a page is seldom empty."""
    from chalicelib.ports import Page

    def kept(limit: int, cursor: str | None) -> Page[Any]:
        found: list[Any] = []
        for _ in range(MAX_PAGES):
            page = read(limit - len(found), cursor)
            found += [job for job in page.items if keep(job)]
            cursor = page.cursor
            if cursor is None or len(found) == limit:
                break
        return Page(tuple(found), cursor)

    return kept


def _require_namespace(ns: str) -> None:
    from chalicelib.flow.lookup import require

    require(ports(), "namespace", ns)
