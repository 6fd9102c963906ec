"""Routes of backfills: start, list, read and cancel a backfill (L12)."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.web.http import answer, caller, parse, query, request_id
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.quotas import check_waiting
from chalicelib.web.routes.schedules import ONE
from chalicelib.web.routing import IDEMPOTENCY_KEY, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

ALL = ONE + "/backfills"


@route(routes, "POST", ALL, needs="operate", body="Backfill", headers=(IDEMPOTENCY_KEY,), status=(200, 201))
def begin_backfill(ns: str, app: str, name: str) -> Response:
    """Run a schedule for a past interval of its time trigger, or for partitions that it waits for, a few at a time. A
    dry run returns the number of runs, and the first and last of them. Requests with the same Idempotency-Key start
    one backfill."""
    from chalicelib.core.backfills.request import Backfill
    from chalicelib.flow.backfills.backfill import begin, id_of, preview
    from chalicelib.flow.backfills.view import plan_view, shown_view

    request, full = routes.current_request, f"{ns}.{app}.{name}"
    request_data = parse(Backfill, request)
    if request_data.dry_run:
        return answer(plan_view(full, preview(ports(), full, request_data)))
    check_waiting(ns, lambda: ports().rows.get(Backfill, full, id_of(full, request_id(request))) is not None)
    row = begin(ports(), full, request_data, caller(request), request_id(request))
    return answer(shown_view(ports(), row), 201)


@route(routes, "GET", ALL, needs="read", query=PAGING)
def list_backfills(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the backfills of a schedule, newest first. Finished backfills are kept as long as runs are."""
    from chalicelib.flow.backfills.view import backfill_views
    from chalicelib.ports import Page

    full = _known(ns, app, name)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        rows = {f"{row.created_at:015d}{row.id}": row for row in ports().jobs.backfills(full)}
        older = sorted((position for position in rows if cursor is None or position < cursor), reverse=True)
        page = older[:limit]
        views = backfill_views(ports(), [rows[position] for position in page])
        return Page(tuple(views), page[-1] if len(older) > limit else None)

    return listing(routes.current_request, read, lambda view: view)


@route(routes, "GET", ALL + "/{backfill_id}", needs="read")
def show_backfill(ns: str, app: str, name: str, backfill_id: str) -> dict[str, Any]:
    """Read the progress of a backfill: which runs are active, waiting and finished."""
    from chalicelib.flow.backfills.backfill import existing
    from chalicelib.flow.backfills.view import shown_view

    return shown_view(ports(), existing(ports(), _known(ns, app, name), backfill_id))


@route(routes, "POST", ALL + "/{backfill_id}/cancel", needs="operate", query=("runs",))
def cancel_backfill(ns: str, app: str, name: str, backfill_id: str) -> dict[str, Any]:
    """Cancel a backfill. It starts no more runs; active runs continue, unless ``runs=cancel``."""
    from chalicelib.core.errors import invalid
    from chalicelib.flow.backfills.backfill import stop
    from chalicelib.flow.backfills.view import shown_view

    request = routes.current_request
    runs = query(request, "runs")
    if runs not in (None, "cancel"):
        raise invalid("runs", "cancel, or no value", runs, "leave out the parameter to let active runs continue")
    full = _known(ns, app, name)
    return shown_view(ports(), stop(ports(), full, backfill_id, runs is not None, caller(request)))


def _known(ns: str, app: str, name: str) -> str:
    """The full name of a schedule that exists or existed: its backfills outlive it. Raises ``not_found`` otherwise."""
    from chalicelib.flow.lookup import missing

    full = f"{ns}.{app}.{name}"
    if ports().rows.get(ScheduleState, full) is None:
        raise missing(ports(), "schedule", full)
    return full
