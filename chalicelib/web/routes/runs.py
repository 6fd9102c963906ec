"""Routes of what has run: runs and records, logs, actions on a run (W6, W15), dead letters (E6), reports."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, get_args

from chalice.app import Request, Response

from chalicelib.core.documents import check_stored
from chalicelib.core.errors import invalid
from chalicelib.core.names import name_in
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import RecordKind, Run
from chalicelib.core.runs import fires
from chalicelib.core.states import RUN_MOVES
from chalicelib.core.views import View
from chalicelib.flow import lookup
from chalicelib.flow.dags.cancel import cancel
from chalicelib.flow.history.reports import newest_day, report
from chalicelib.flow.lookup import missing, require
from chalicelib.flow.requests import became, has_made
from chalicelib.flow.runs import dead_letters, failures
from chalicelib.flow.runs.actions import ping, rerun
from chalicelib.flow.schedules import messages
from chalicelib.flow.views import explain, logs
from chalicelib.flow.views.chosen import Chosen
from chalicelib.flow.views.views import RunInFullView, record_view, run_in_full, run_view
from chalicelib.ports import Page
from chalicelib.web import access, filters
from chalicelib.web.bodies import Redrive
from chalicelib.web.filters import MAX_READ
from chalicelib.web.http import Json, answer, caller, choice, day, gone, number, parse, query, request_id
from chalicelib.web.paging import Read, listing, only
from chalicelib.web.quotas import check_waiting
from chalicelib.web.routes.schedules import known
from chalicelib.wiring import ports


class RedrivenView(View):
    run_id: str
    attempt: int


class RedrivenLettersView(View):
    redriven: list[str]
    refused: list[Any]
    more: bool


def schedule_runs(request: Request, name: str) -> Json:
    """List the runs of a schedule, newest first. A deleted schedule keeps its history."""
    return _runs(request, name, partial(ports().runs.runs, "schedule", known(name)))


def schedule_records(request: Request, name: str) -> Json:
    """List the aborted, dropped, coalesced, skipped and expired jobs of a schedule, newest first. A request with a
    filter reads at most 500, so a page may hold fewer than ``limit``, even none, and still have a next page."""
    wanted = _of_records(request, name)
    read = filters.chosen_by(
        request, wanted, partial(ports().runs.records, "schedule", known(name)), sorted_by_time=True
    )
    return listing(request, read, record_view)


def message_runs(request: Request, name: str) -> Json:
    """List what a message has sent, newest first. A message that no longer exists keeps its history."""
    app, _, short = name.rpartition(".")
    full = messages.known(ports(), app, short)
    return _runs(request, name, partial(ports().runs.runs, "schedule", full))


def list_runs(request: Request, ns: str) -> Json:
    """List the runs of a namespace, newest first. Without ``day`` and ``from``, the list holds the last two weeks. A
    request reads a bounded number of days, and at most 500 runs if it has a filter, so a page may hold fewer than
    ``limit``, even none, and still have a next page."""
    require(ports(), "namespace", ns)
    return _runs(request, ns, None)


def list_records(request: Request, ns: str) -> Json:
    """List the aborted, dropped, coalesced, skipped and expired jobs of a namespace, newest first. A request reads a
    bounded number of days, and at most 500 records if it has a filter, so a page may hold fewer than ``limit``, even
    none, and still have a next page."""
    require(ports(), "namespace", ns)
    wanted = _of_records(request, ns)
    read = filters.chosen_by(request, wanted, filters.by_days(wanted, ns, ports().runs.records))
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
    next heartbeat. The run that has begun a DAG run stands for it: its active nodes are cancelled, and no other node
    starts."""
    return answer(run_view(cancel(ports(), run_id, caller(request))), 202)


def ping_run(request: Request, run_id: str) -> Response:
    """Poll the target of an active run now. The run shows the result a second or two later."""
    return answer(run_view(ping(ports(), run_id)), 202)


def rerun_run(request: Request, run_id: str) -> Response:
    """Run a finished run again, with its properties, data and context. The new job skips the trigger, but not the
    constraints. Requests with the same Idempotency-Key create one job; a repeat returns that job and its current state.
    """
    made = request_id(request)
    check_waiting(run_id, lambda: has_made(ports(), "rerun", run_id, made))
    job_id = rerun(ports(), run_id, made)
    return answer(became(ports(), job_id), 202)


def read_logs(request: Request, run_id: str) -> Json:
    """Read the last lines of an attempt's log, from an EMR driver or a pull worker."""
    attempt = number(request, "attempt", 0, 1_000) if query(request, "attempt") is not None else None
    return logs.of_run(ports(), run_id, attempt, number(request, "lines", 100, logs.MAX_LINES))


def workflow_runs(request: Request, name: str) -> Json:
    """List the runs of a workflow, newest first. A deleted workflow keeps its history. The runs of a namespace that the
    signer may not read are left out."""
    visible, read = access.sees(request), partial(ports().runs.runs, "workflow", name)
    if ports().rows.get(Definition, "workflow", name) is None and not read(1, None).items:
        raise missing(ports(), "workflow", name)
    return _runs(request, name, only(read, lambda run: visible(run.schedule), MAX_READ))


def _of_records(request: Request, name: str) -> Chosen:
    """The filters of a list of records, of a namespace or of a schedule, by its name."""
    ns, _, rest = name.partition(".")
    wanted = filters.of(request, ns, app=rest.partition(".")[0] or None)
    return replace(wanted, state=choice(request, "kind", get_args(RecordKind)))


def _runs(request: Request, name: str, read: Read | None) -> Json:
    """A page of the runs that a request chooses, of a namespace or of something in it, by its name. ``read`` is newest
    first; None for all of the namespace. The sent events of a large fire on the page are one run."""
    ns, _, rest = name.partition(".")
    wanted = filters.of(request, ns, RUN_MOVES, rest.partition(".")[0] or None)
    by_days = filters.by_days(wanted, ns, ports().runs.runs)
    chosen = filters.chosen_by(request, wanted, read or by_days, sorted_by_time=True)
    return listing(request, _folded(chosen), partial(run_view, prices=ports().settings.prices))


def _folded(read: Read) -> Read:
    """The same read, with one run in place of those that stand for the sent events of one fire. It goes on until the
    page is full, as long as it reads no more than `MAX_READ` runs."""

    def folding(limit: int, cursor: str | None) -> Page[Any]:
        found: list[Run] = []
        searched = 0
        while True:
            page = read(limit - len(found), cursor)
            found, cursor = fires.folded([*found, *page.items]), page.cursor
            searched += len(page.items)
            if cursor is None or len(found) >= limit or searched >= MAX_READ or not page.items:
                return Page(tuple(found), cursor)

    return folding


def list_dead_letters(request: Request, ns: str) -> Json:
    """List the dead letters of a namespace, newest first, with their reasons. A request with a filter reads at most
    500, so a page may hold fewer than ``limit``, even none, and still have a next page."""
    require(ports(), "namespace", ns)
    named = query(request, "schedule")
    schedule = None if named is None else _full(ns, named)
    read = partial(dead_letters.listed, ports(), ns, schedule)
    chosen = filters.chosen_by(request, filters.of(request, ns), read, sorted_by_time=True)
    return listing(request, chosen, dead_letters.view)


def redrive_dead_letter(request: Request, ns: str, run_id: str) -> Response:
    """Deliver an event again, with the same id, as its next attempt. Repeated requests deliver it once."""
    check_waiting(ns)
    return answer(RedrivenView(run_id=run_id, attempt=dead_letters.redrive(ports(), ns, run_id)), 202)


def redrive_dead_letters(request: Request, ns: str) -> Response:
    """Deliver the dead letters of a schedule again, newest first, up to a limit. ``more`` is true if some remain."""
    request_data = parse(Redrive, request)
    require(ports(), "namespace", ns)
    check_waiting(ns)
    done = dead_letters.redrive_all(ports(), ns, _full(ns, request_data.schedule), request_data.limit)
    refused = [{"run_id": run_id, "why": why} for run_id, why in done.refused]
    return answer(RedrivenLettersView(redriven=list(done.run_ids), refused=refused, more=done.more), 202)


def drop_dead_letter(request: Request, ns: str, run_id: str) -> Response:
    """Drop a dead letter for good, and record this. Its run stays in the history as failed."""
    dead_letters.drop(ports(), ns, run_id, caller(request))
    return gone()


def _full(ns: str, name: str) -> str:
    """The full name of a schedule of this namespace, from ``app.name`` or the full name."""
    full = name_in(ns, check_stored(name, "schedule"))
    if full is None:
        raise invalid(
            "schedule",
            f"a schedule of namespace {ns}, as app.name or {ns}.app.name",
            name,
            "name one of this namespace, or send the request to the other",
        )
    return full


def read_report(request: Request, ns: str) -> Json:
    """Read the report of a day, workflow by workflow. Without a day, it is the newest report."""
    require(ports(), "namespace", ns)
    of = day(request) or newest_day(ports(), ns)
    return {"day": of, **listing(request, partial(report, ports(), ns, of), dict)}
