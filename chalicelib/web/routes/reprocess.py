"""Routes of re-processings: begin, list, read and cancel (L21)."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.web.http import answer, caller, parse, query, request_id
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.routing import IDEMPOTENCY_KEY, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

ALL = "/v1/namespaces/{ns}/reprocess"


@route(routes, "POST", ALL, needs="operate", body="Reprocess", headers=(IDEMPOTENCY_KEY,), status=(200, 201))
def begin_reprocess(ns: str) -> Response:
    """Run partitions of a dataset again, with everything downstream of them, in order. A dry run returns what would
    run, and why. Requests with the same Idempotency-Key begin one re-processing."""
    from chalicelib.core.backfills.request import Reprocess
    from chalicelib.flow.backfills.reprocess import begin, preview
    from chalicelib.flow.backfills.reprocess_view import plan_view, reprocess_view

    request = routes.current_request
    request_data = parse(Reprocess, request)
    if request_data.dry_run:
        return answer(plan_view(ns, preview(ports(), ns, request_data)))
    row = begin(ports(), ns, request_data, caller(request), request_id(request))
    return answer(reprocess_view(ports(), row), 201)


@route(routes, "GET", ALL, needs="read", query=PAGING)
def list_reprocesses(ns: str) -> dict[str, Any]:
    """List the re-processings of a namespace, newest first. Finished ones are kept as long as runs are."""
    from chalicelib.flow.backfills.reprocess_view import reprocess_view
    from chalicelib.flow.lookup import require
    from chalicelib.ports import Page

    require(ports(), "namespace", ns)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        rows = {f"{row.created_at:015d}{row.id}": row for row in ports().jobs.reprocesses(ns)}
        older = sorted((position for position in rows if cursor is None or position < cursor), reverse=True)
        page = older[:limit]
        return Page(tuple(rows[position] for position in page), page[-1] if len(older) > limit else None)

    return listing(routes.current_request, read, lambda row: reprocess_view(ports(), row))


@route(routes, "GET", ALL + "/{reprocess_id}", needs="read")
def show_reprocess(ns: str, reprocess_id: str) -> dict[str, Any]:
    """Read the progress of a re-processing: its steps, and how many runs of each wait, run and have ended."""
    from chalicelib.flow.backfills.reprocess import existing
    from chalicelib.flow.backfills.reprocess_view import reprocess_view

    return reprocess_view(ports(), existing(ports(), ns, reprocess_id))


@route(routes, "POST", ALL + "/{reprocess_id}/cancel", needs="operate", query=("runs",))
def cancel_reprocess(ns: str, reprocess_id: str) -> dict[str, Any]:
    """Cancel a re-processing. It starts no more runs; active runs continue, unless ``runs=cancel``."""
    from chalicelib.core.errors import invalid
    from chalicelib.flow.backfills.reprocess import stop
    from chalicelib.flow.backfills.reprocess_view import reprocess_view

    request = routes.current_request
    runs = query(request, "runs")
    if runs not in (None, "cancel"):
        raise invalid("runs", "cancel, or no value", runs, "leave out the parameter to let active runs continue")
    return reprocess_view(ports(), stop(ports(), ns, reprocess_id, runs is not None, caller(request)))
