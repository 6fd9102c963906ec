"""Routes of schedules: documents, and what people do to them."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

from chalice.app import Blueprint, Response

from chalicelib.web.definitions import APP
from chalicelib.web.history import in_state
from chalicelib.web.http import answer, caller, day, document, gone, if_match, number, parse
from chalicelib.web.paging import PAGING, Read, listing
from chalicelib.web.routing import IDEMPOTENCY_KEY, IF_MATCH, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

ONE = APP + "/schedules/{name}"
MOST_FIRES = 1000
LAST_DAY = 253_402_300_799_999  # ms: 31 December 9999, beyond which no calendar goes


@route(routes, "GET", APP + "/schedules", query=PAGING)
def list_schedules(ns: str, app: str) -> dict[str, Any]:
    """List the schedules of an app."""
    from chalicelib.flow.definitions import require
    from chalicelib.ports import Page

    require(ports(), "app", f"{ns}.{app}")

    def read(limit: int, cursor: str | None) -> Page[Any]:
        page = ports().catalog.schedules(f"{ns}.{app}", limit, cursor)
        views = (_living(name) for name in page.items)
        return Page(tuple(view for view in views if view is not None), page.cursor)

    return listing(routes.current_request, read, lambda view: view)


@route(routes, "PUT", ONE, body="NewSchedule", headers=(IF_MATCH,), status=(200, 201))
def put_schedule(ns: str, app: str, name: str) -> Response:
    """Create or replace a schedule. A new one is disabled, a replaced one keeps its state, unless ``enabled`` says."""
    from chalicelib.flow.definitions import require
    from chalicelib.flow.schedules import put
    from chalicelib.web.bodies import NewSchedule

    request = routes.current_request
    require(ports(), "app", f"{ns}.{app}")
    _, new = put(ports(), f"{ns}.{app}.{name}", parse(NewSchedule, request), caller(request), if_match(request))
    return _shown(ns, app, name, 201 if new else 200)


@route(routes, "GET", ONE)
def get_schedule(ns: str, app: str, name: str) -> Response:
    """Read a schedule."""
    return _shown(ns, app, name)


@route(routes, "DELETE", ONE, headers=(IF_MATCH,), status=(204,))
def delete_schedule(ns: str, app: str, name: str) -> Response:
    """Delete a schedule. Its waiting jobs are dropped on record, its runs go on."""
    from chalicelib.flow.schedules import delete

    request = routes.current_request
    delete(ports(), f"{ns}.{app}.{name}", caller(request), if_match(request))
    return gone()


@route(routes, "POST", ONE + "/enable")
def enable_schedule(ns: str, app: str, name: str) -> Response:
    """Enable a schedule: what is accepted from now on counts."""
    from chalicelib.flow.schedules import enable

    enable(ports(), f"{ns}.{app}.{name}", caller(routes.current_request))
    return _shown(ns, app, name)


@route(routes, "POST", ONE + "/disable")
def disable_schedule(ns: str, app: str, name: str) -> Response:
    """Disable a schedule. Its waiting jobs are dropped on record, its runs go on."""
    from chalicelib.flow.schedules import disable

    disable(ports(), f"{ns}.{app}.{name}", caller(routes.current_request))
    return _shown(ns, app, name)


@route(routes, "POST", ONE + "/run", body="RunNow", headers=(IDEMPOTENCY_KEY,), status=(202,))
def run_now(ns: str, app: str, name: str) -> Response:
    """Run now, past the trigger but not past the constraints. One Idempotency-Key, one job."""
    from chalicelib.flow.schedules import run_now as start
    from chalicelib.web.bodies import RunNow

    request = routes.current_request
    wish = parse(RunNow, request)
    # A caller that repeats a request under one key gets one job; without a key each request is a wish of its own.
    request_id = request.headers.get(IDEMPOTENCY_KEY) or request.context.get("requestId") or uuid4().hex
    return answer({"job_id": start(ports(), f"{ns}.{app}.{name}", wish.properties, request_id)}, 202)


@route(routes, "GET", ONE + "/jobs", query=PAGING)
def schedule_jobs(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the jobs of a schedule that wait."""
    from chalicelib.flow.lists import jobs_of_schedule
    from chalicelib.flow.read import job_view
    from chalicelib.flow.schedules import existing

    full = f"{ns}.{app}.{name}"
    existing(ports(), full)
    return listing(routes.current_request, partial(jobs_of_schedule, ports(), full), job_view)


@route(routes, "GET", ONE + "/runs", query=("state", "day", *PAGING))
def schedule_runs(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the runs of a schedule, newest first. A deleted one keeps its history."""
    from chalicelib.flow.read import run_view

    request = routes.current_request
    full = _known(ns, app, name)
    read = _of_day(day(request), partial(ports().runs.runs, "schedule", full))
    return listing(request, in_state(request, read), run_view)


@route(routes, "GET", ONE + "/records", query=PAGING)
def schedule_records(ns: str, app: str, name: str) -> dict[str, Any]:
    """List what was aborted, dropped, coalesced or skipped of a schedule, newest first."""
    from chalicelib.flow.read import record_view

    full = _known(ns, app, name)
    return listing(routes.current_request, partial(ports().runs.records, "schedule", full), record_view)


@route(routes, "GET", ONE + "/why")
def why_schedule(ns: str, app: str, name: str) -> dict[str, Any]:
    """Tell why a schedule has not run: its state, and what its jobs wait for."""
    from chalicelib.flow import read

    return read.why_schedule(ports(), f"{ns}.{app}.{name}")


@route(routes, "GET", ONE + "/versions", query=PAGING)
def schedule_versions(ns: str, app: str, name: str) -> dict[str, Any]:
    """List every definition that a schedule ever had, newest first."""
    from chalicelib.core.calendar import iso
    from chalicelib.ports import Page

    full = _known(ns, app, name)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        older = [row for row in ports().catalog.versions(full) if cursor is None or row.version < int(cursor)]
        newest = tuple(reversed(older))[:limit]
        return Page(newest, str(newest[-1].version) if len(older) > limit else None)

    return listing(
        routes.current_request,
        read,
        lambda row: {
            "version": row.version,
            "created_at": iso(row.created_at),
            "created_by": row.by,
            "definition": dict(row.definition),
        },
    )


@route(routes, "GET", ONE + "/preview", query=("count",))
def preview(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the next fires of a schedule's time triggers; of a disabled one, those it would have if enabled now."""
    from chalicelib.core import emit
    from chalicelib.core.calendar import iso
    from chalicelib.flow.schedules import existing

    count = number(routes.current_request, "count", 10, MOST_FIRES)
    _, schedule = existing(ports(), f"{ns}.{app}.{name}")
    timer = ports().catalog.timer(f"{ns}.{app}.{name}")
    anchors = dict.fromkeys(timer.next, timer.anchor) if timer else None
    fires = emit.preview(schedule, ports().clock.now(), count, anchors)
    return {"items": [iso(fire) for fire in fires if fire <= LAST_DAY], "next_cursor": None}


def _shown(ns: str, app: str, name: str, status: int = 200) -> Response:
    from chalicelib.flow.read import schedule_view
    from chalicelib.flow.schedules import existing

    return document(schedule_view(*existing(ports(), f"{ns}.{app}.{name}")), status)


def _living(full: str) -> dict[str, Any] | None:
    """A schedule of a list, or None if it was deleted since the list was read."""
    from chalicelib.core.errors import SluiceError
    from chalicelib.flow.read import schedule_view
    from chalicelib.flow.schedules import existing

    try:
        return schedule_view(*existing(ports(), full))
    except SluiceError as error:
        if error.code != "not_found":
            raise
        return None


def _known(ns: str, app: str, name: str) -> str:
    """The full name of a schedule that is or was."""
    from chalicelib.core.errors import not_found

    full = f"{ns}.{app}.{name}"
    if ports().catalog.gate(full) is None:
        raise not_found("schedule", full)
    return full


def _of_day(wanted: str | None, read: Read) -> Read:
    """``?day`` of a schedule's runs: a run belongs to the day of its claim; after an older one there are no more."""
    from chalicelib.core.calendar import iso
    from chalicelib.ports import Page

    if wanted is None:
        return read

    def kept(limit: int, cursor: str | None) -> Page[Any]:
        page = read(limit, cursor)
        days = [iso(run.claimed_at)[:10] for run in page.items]
        runs = tuple(run for run, day_of in zip(page.items, days, strict=True) if day_of == wanted)
        return Page(runs, None if days and days[-1] < wanted else page.cursor)

    return kept
