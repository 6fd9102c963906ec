"""Routes of backfills: start, list, read and cancel a backfill (L12)."""

from __future__ import annotations

from typing import Any

from chalice.app import Request, Response

from chalicelib.core.backfills.request import Backfill
from chalicelib.core.rows.backfill import Backfill as BackfillRow
from chalicelib.flow.backfills.backfill import begin, existing, id_of, preview, stop
from chalicelib.flow.backfills.view import backfill_views, plan_view, shown_view
from chalicelib.ports import Page
from chalicelib.web.http import Json, answer, caller, cancels_runs, parse, request_id
from chalicelib.web.paging import listing, newest_first
from chalicelib.web.quotas import check_waiting
from chalicelib.web.routes.schedules import known
from chalicelib.wiring import ports


def begin_backfill(request: Request, ns: str, app: str, name: str) -> Response:
    """Run a schedule for a past interval of its time trigger, or for partitions that it waits for, a few at a time. A
    dry run returns the number of runs, and the first and last of them. Requests with the same Idempotency-Key start
    one backfill."""
    full = f"{ns}.{app}.{name}"
    request_data = parse(Backfill, request)
    if request_data.dry_run:
        return answer(plan_view(full, preview(ports(), full, request_data)))
    check_waiting(ns, lambda: ports().rows.get(BackfillRow, full, id_of(full, request_id(request))) is not None)
    row = begin(ports(), full, request_data, caller(request), request_id(request))
    return answer(shown_view(ports(), row), 201)


def list_backfills(request: Request, ns: str, app: str, name: str) -> Json:
    """List the backfills of a schedule, newest first. Finished backfills are kept as long as runs are."""
    full = known(ns, app, name)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        page = newest_first(ports().jobs.backfills(full), limit, cursor)
        return Page(tuple(backfill_views(ports(), page.items)), page.cursor)

    return listing(request, read)


def show_backfill(request: Request, ns: str, app: str, name: str, backfill_id: str) -> Json:
    """Read the progress of a backfill: which runs are active, waiting and finished."""
    return shown_view(ports(), existing(ports(), known(ns, app, name), backfill_id))


def cancel_backfill(request: Request, ns: str, app: str, name: str, backfill_id: str) -> Json:
    """Cancel a backfill. It starts no more runs; active runs continue, unless ``runs=cancel``."""
    with_runs, full = cancels_runs(request), known(ns, app, name)
    return shown_view(ports(), stop(ports(), full, backfill_id, with_runs, caller(request)))
