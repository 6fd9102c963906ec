"""Routes of backfills (L12) and re-processings (L21): begin, list, read and cancel."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Request, Response

from chalicelib.core import errors
from chalicelib.core.backfills.request import Backfill, Reprocess
from chalicelib.core.errors import SluiceError
from chalicelib.core.names import dataset_name
from chalicelib.core.rows.backfill import Backfill as BackfillRow
from chalicelib.core.rows.reprocess import Reprocess as ReprocessRow
from chalicelib.flow.backfills import backfill, reprocess, view
from chalicelib.flow.backfills.reprocess_view import plan_view, reprocess_view, shown_view
from chalicelib.flow.lookup import require
from chalicelib.ports import Page
from chalicelib.web import unseen
from chalicelib.web.access import require_right, sees
from chalicelib.web.http import Json, answer, caller, cancels_runs, parse, request_id
from chalicelib.web.paging import listing, newest_first
from chalicelib.web.quotas import check_waiting
from chalicelib.web.routes.schedules import known
from chalicelib.wiring import ports


def begin_backfill(request: Request, name: str) -> Response:
    """Run a schedule for a past interval of its time trigger, or for partitions that it waits for, a few at a time. A
    dry run returns the number of runs, and the first and last of them. Requests with the same Idempotency-Key start
    one backfill."""
    request_data = parse(Backfill, request)
    if request_data.dry_run:
        return answer(view.plan_view(name, backfill.preview(ports(), name, request_data)))
    check_waiting(
        name, lambda: ports().rows.get(BackfillRow, name, backfill.id_of(name, request_id(request))) is not None
    )
    row = backfill.begin(ports(), name, request_data, caller(request), request_id(request))
    return answer(view.shown_view(ports(), row), 201)


def list_backfills(request: Request, name: str) -> Json:
    """List the backfills of a schedule, newest first. Finished backfills are kept as long as runs are."""
    known(name)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        page = newest_first(ports().jobs.backfills(name), limit, cursor)
        return Page(tuple(view.backfill_views(ports(), page.items)), page.cursor)

    return listing(request, read)


def show_backfill(request: Request, name: str, backfill_id: str) -> Json:
    """Read the progress of a backfill: which runs are active, waiting and finished."""
    return view.shown_view(ports(), backfill.existing(ports(), known(name), backfill_id))


def cancel_backfill(request: Request, name: str, backfill_id: str) -> Json:
    """Cancel a backfill. It starts no more runs; active runs continue, unless ``runs=cancel``."""
    with_runs = cancels_runs(request)
    return view.shown_view(ports(), backfill.stop(ports(), known(name), backfill_id, with_runs, caller(request)))


def begin_reprocess(request: Request, ns: str) -> Response:
    """Run partitions of a dataset again, with everything downstream of them, in order. A dry run returns what would
    run, and why. Requests with the same Idempotency-Key begin one re-processing. The signer needs the right in the
    namespace of each schedule that runs."""
    request_data = parse(Reprocess, request)
    if request_data.dataset is not None:
        name = dataset_name(request_data.dataset, ns)
        require_right(request, [name], "read", lambda _: errors.unknown_reference("dataset", "dataset", name))

    def check(plan: reprocess.Plan) -> None:
        require_right(request, [step.schedule for step in plan.steps], "operate", _refused)

    if request_data.dry_run:
        plan = reprocess.preview(ports(), ns, request_data)
        check(plan)
        return answer(unseen.not_followed(plan_view(ns, plan), sees(request)))
    check_waiting(ns, lambda: ports().rows.get(ReprocessRow, ns, reprocess.id_of(ns, request_id(request))) is not None)
    row = reprocess.begin(ports(), ns, request_data, caller(request), request_id(request), check)
    return answer(unseen.reprocess(shown_view(ports(), row), sees(request)), 201)


def _refused(schedules: list[str]) -> SluiceError:
    """The error for schedules of other namespaces that the signer may not run. It does not name them."""
    expected = "expected schedules of namespaces in which you have the role operator, author or admin"
    hint = "send scope: only, or upto with a workflow before these; or send the request as an operator of the others"
    return SluiceError("forbidden", f"{expected}, got {len(schedules)} of others", "scope", hint)


def list_reprocesses(request: Request, ns: str) -> Json:
    """List the re-processings of a namespace, newest first. Finished ones are kept as long as runs are."""
    require(ports(), "namespace", ns)
    visible = sees(request)
    read = partial(newest_first, ports().jobs.reprocesses(ns))
    return listing(request, read, lambda row: unseen.reprocess(reprocess_view(ports(), row), visible))


def show_reprocess(request: Request, ns: str, reprocess_id: str) -> Json:
    """Read the progress of a re-processing: its steps, and how many runs of each wait, run and have ended."""
    row = reprocess.existing(ports(), ns, reprocess_id)
    return unseen.reprocess(shown_view(ports(), row), sees(request))


def cancel_reprocess(request: Request, ns: str, reprocess_id: str) -> Json:
    """Cancel a re-processing. It starts no more runs; active runs continue, unless ``runs=cancel``."""
    row = reprocess.stop(ports(), ns, reprocess_id, cancels_runs(request), caller(request))
    return unseen.reprocess(shown_view(ports(), row), sees(request))
