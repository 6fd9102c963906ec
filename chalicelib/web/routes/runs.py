"""Routes of runs and of records: their lists, one run and its logs, and actions on a run (W6, W15)."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Request, Response

from chalicelib.core.errors import invalid
from chalicelib.core.instants import iso
from chalicelib.core.rows.definition import Definition
from chalicelib.core.states import RUN_MOVES
from chalicelib.flow import lookup
from chalicelib.flow.lookup import missing, require
from chalicelib.flow.requests import became, has_made
from chalicelib.flow.runs import failures
from chalicelib.flow.runs.actions import cancel, ping, rerun
from chalicelib.flow.schedules import messages
from chalicelib.flow.views import explain, lists, logs
from chalicelib.flow.views.views import RunInFullView, record_view, run_in_full, run_view
from chalicelib.ports import Page
from chalicelib.web.http import (
    Json,
    answer,
    caller,
    day,
    number,
    query,
    request_id,
)
from chalicelib.web.paging import Read, listing, only
from chalicelib.web.quotas import check_waiting
from chalicelib.web.routes.schedules import known
from chalicelib.wiring import ports

MAX_READ = 500  # runs that a request with ``?state`` reads


def schedule_runs(request: Request, ns: str, app: str, name: str) -> Json:
    """List the runs of a schedule, newest first. A deleted schedule keeps its history."""
    full = known(ns, app, name)
    read = _of_day(day(request), partial(ports().runs.runs, "schedule", full))
    return _runs(request, read)


def schedule_records(request: Request, ns: str, app: str, name: str) -> Json:
    """List the aborted, dropped, coalesced, skipped and expired jobs of a schedule, newest first."""
    full = known(ns, app, name)
    return listing(request, partial(ports().runs.records, "schedule", full), record_view)


def message_runs(request: Request, ns: str, app: str, name: str) -> Json:
    """List what a message has sent, newest first. A message that no longer exists keeps its history."""
    full = messages.known(ports(), f"{ns}.{app}", name)
    return _runs(request, partial(ports().runs.runs, "schedule", full))


def list_runs(request: Request, ns: str) -> Json:
    """List the runs of a namespace, newest first. Without a day, the list holds the last two weeks."""
    require(ports(), "namespace", ns)
    read = partial(lists.of_namespace, ports(), ports().runs.runs, ns, day(request))
    return _runs(request, read)


def list_records(request: Request, ns: str) -> Json:
    """List the aborted, dropped, coalesced, skipped and expired jobs of a namespace, newest first."""
    require(ports(), "namespace", ns)
    read = partial(lists.of_namespace, ports(), ports().runs.records, ns, day(request))
    return listing(request, read, record_view)


def get_run(request: Request, run_id: str) -> RunInFullView:
    """Read a run with its attempts and the events that triggered it."""
    return run_in_full(ports(), [failures.with_reason(ports(), run) for run in lookup.find_run(ports(), run_id)])


def why_run(request: Request, run_id: str) -> Json:
    """Explain what triggered a run, and why it is in its state. For a job that ended without a run: how, when and
    why."""
    return explain.why_work(ports(), run_id)


def cancel_run(request: Request, run_id: str) -> Response:
    """Cancel a run. Sluice cancels it at its target, which takes a while; a pull worker gets the cancellation with its
    next heartbeat."""
    return answer(run_view(cancel(ports(), run_id, caller(request))), 202)


def ping_run(request: Request, run_id: str) -> Response:
    """Poll the target of an active run now. The run shows the result a second or two later."""
    return answer(run_view(ping(ports(), run_id)), 202)


def rerun_run(request: Request, run_id: str) -> Response:
    """Run a finished run again, with its properties, data and context. The new job skips the trigger, but not the
    constraints. Requests with the same Idempotency-Key create one job; a repeat returns that job and its current state.
    """
    made = request_id(request)
    check_waiting(run_id.partition(".")[0], lambda: has_made(ports(), "rerun", run_id, made))
    job_id = rerun(ports(), run_id, made)
    return answer(became(ports(), job_id), 202)


def read_logs(request: Request, run_id: str) -> Json:
    """Read the last lines of an attempt's log, from an EMR driver or a pull worker."""
    attempt = number(request, "attempt", 0, 1_000) if query(request, "attempt") is not None else None
    return logs.of_run(ports(), run_id, attempt, number(request, "lines", 100, logs.MAX_LINES))


def workflow_runs(request: Request, ns: str, app: str, name: str) -> Json:
    """List the runs of a workflow, newest first. A deleted workflow keeps its history."""
    full = f"{ns}.{app}.{name}"
    read = partial(ports().runs.runs, "workflow", full)
    if ports().rows.get(Definition, "workflow", full) is None and not read(1, None).items:
        raise missing(ports(), "workflow", full)
    return _runs(request, read)


def _of_day(wanted: str | None, read: Read) -> Read:
    """The runs of one ``?day`` of a schedule: a run belongs to the day of its claim. An older run ends the list."""
    if wanted is None:
        return read

    def kept(limit: int, cursor: str | None) -> Page[Any]:
        page = read(limit, cursor)
        days = [iso(run.claimed_at)[:10] for run in page.items]
        runs = tuple(run for run, day_of in zip(page.items, days, strict=True) if day_of == wanted)
        return Page(runs, None if days and days[-1] < wanted else page.cursor)

    return kept


def _runs(request: Request, read: Read) -> Json:
    """A page of runs, only of those in ``?state=FAILED`` if the request names one."""
    state = query(request, "state")
    if state not in (None, *RUN_MOVES):
        raise invalid("state", f"one of {', '.join(RUN_MOVES)}", state, "use one of these, or leave state out")
    wanted = read if state is None else only(read, lambda run: run.state == state, MAX_READ)
    return listing(request, wanted, partial(run_view, prices=ports().settings.prices))
