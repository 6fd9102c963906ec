"""Routes of re-processings: begin, list, read and cancel (L21)."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.core import errors
from chalicelib.core.errors import SluiceError
from chalicelib.web import unseen
from chalicelib.web.access import require_right, sees
from chalicelib.web.http import answer, caller, parse, query, request_id
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.quotas import check_waiting
from chalicelib.web.routing import IDEMPOTENCY_KEY, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

ALL = "/v1/namespaces/{ns}/reprocess"


@route(routes, "POST", ALL, needs="operate", body="Reprocess", headers=(IDEMPOTENCY_KEY,), status=(200, 201))
def begin_reprocess(ns: str) -> Response:
    """Run partitions of a dataset again, with everything downstream of them, in order. A dry run returns what would
    run, and why. Requests with the same Idempotency-Key begin one re-processing. The signer needs the right in the
    namespace of each schedule that runs."""
    from chalicelib.core.backfills.request import Reprocess
    from chalicelib.core.names import dataset_name
    from chalicelib.flow.backfills.reprocess import Plan, begin, id_of, preview
    from chalicelib.flow.backfills.reprocess_view import plan_view, shown_view

    request = routes.current_request
    request_data = parse(Reprocess, request)
    if request_data.dataset is not None:
        name = dataset_name(request_data.dataset, ns)
        require_right(request, [name], "read", lambda _: errors.unknown_reference("dataset", "dataset", name))

    def check(plan: Plan) -> None:
        require_right(request, [step.schedule for step in plan.steps], "operate", _refused)

    if request_data.dry_run:
        plan = preview(ports(), ns, request_data)
        check(plan)
        return answer(plan_view(ns, plan))
    check_waiting(ns, lambda: ports().rows.get(Reprocess, ns, id_of(ns, request_id(request))) is not None)
    row = begin(ports(), ns, request_data, caller(request), request_id(request), check)
    return answer(unseen.reprocess(shown_view(ports(), row), sees(request)), 201)


def _refused(schedules: list[str]) -> SluiceError:
    """The error for schedules of other namespaces that the signer may not run. It does not name them."""
    expected = "expected schedules of namespaces in which you have the role operator, author or admin"
    hint = "send scope: only, or upto with a workflow before these; or send the request as an operator of the others"
    return SluiceError("forbidden", f"{expected}, got {len(schedules)} of others", "scope", hint)


@route(routes, "GET", ALL, needs="read", query=PAGING)
def list_reprocesses(ns: str) -> dict[str, Any]:
    """List the re-processings of a namespace, newest first. Finished ones are kept as long as runs are."""
    from chalicelib.flow.backfills.reprocess_view import reprocess_view
    from chalicelib.flow.lookup import require
    from chalicelib.ports import Page

    require(ports(), "namespace", ns)
    visible = sees(routes.current_request)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        rows = {f"{row.created_at:015d}{row.id}": row for row in ports().jobs.reprocesses(ns)}
        older = sorted((position for position in rows if cursor is None or position < cursor), reverse=True)
        page = older[:limit]
        return Page(tuple(rows[position] for position in page), page[-1] if len(older) > limit else None)

    return listing(routes.current_request, read, lambda row: unseen.reprocess(reprocess_view(ports(), row), visible))


@route(routes, "GET", ALL + "/{reprocess_id}", needs="read")
def show_reprocess(ns: str, reprocess_id: str) -> dict[str, Any]:
    """Read the progress of a re-processing: its steps, and how many runs of each wait, run and have ended."""
    from chalicelib.flow.backfills.reprocess import existing
    from chalicelib.flow.backfills.reprocess_view import shown_view

    row = existing(ports(), ns, reprocess_id)
    return unseen.reprocess(shown_view(ports(), row), sees(routes.current_request))


@route(routes, "POST", ALL + "/{reprocess_id}/cancel", needs="operate", query=("runs",))
def cancel_reprocess(ns: str, reprocess_id: str) -> dict[str, Any]:
    """Cancel a re-processing. It starts no more runs; active runs continue, unless ``runs=cancel``."""
    from chalicelib.core.errors import invalid
    from chalicelib.flow.backfills.reprocess import stop
    from chalicelib.flow.backfills.reprocess_view import shown_view

    request = routes.current_request
    runs = query(request, "runs")
    if runs not in (None, "cancel"):
        raise invalid("runs", "cancel, or no value", runs, "leave out the parameter to let active runs continue")
    row = stop(ports(), ns, reprocess_id, runs is not None, caller(request))
    return unseen.reprocess(shown_view(ports(), row), sees(request))
