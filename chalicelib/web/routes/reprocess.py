"""Routes of re-processings: begin, list, read and cancel (L21)."""

from __future__ import annotations

from functools import partial

from chalice.app import Request, Response

from chalicelib.core import errors
from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.errors import SluiceError
from chalicelib.core.names import dataset_name
from chalicelib.core.rows.reprocess import Reprocess as ReprocessRow
from chalicelib.flow.backfills.reprocess import Plan, begin, existing, id_of, preview, stop
from chalicelib.flow.backfills.reprocess_view import plan_view, reprocess_view, shown_view
from chalicelib.flow.lookup import require
from chalicelib.web import unseen
from chalicelib.web.access import require_right, sees
from chalicelib.web.http import Json, answer, caller, cancels_runs, parse, request_id
from chalicelib.web.paging import listing, newest_first
from chalicelib.web.quotas import check_waiting
from chalicelib.wiring import ports


def begin_reprocess(request: Request, ns: str) -> Response:
    """Run partitions of a dataset again, with everything downstream of them, in order. A dry run returns what would
    run, and why. Requests with the same Idempotency-Key begin one re-processing. The signer needs the right in the
    namespace of each schedule that runs."""
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
    check_waiting(ns, lambda: ports().rows.get(ReprocessRow, ns, id_of(ns, request_id(request))) is not None)
    row = begin(ports(), ns, request_data, caller(request), request_id(request), check)
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
    row = existing(ports(), ns, reprocess_id)
    return unseen.reprocess(shown_view(ports(), row), sees(request))


def cancel_reprocess(request: Request, ns: str, reprocess_id: str) -> Json:
    """Cancel a re-processing. It starts no more runs; active runs continue, unless ``runs=cancel``."""
    row = stop(ports(), ns, reprocess_id, cancels_runs(request), caller(request))
    return unseen.reprocess(shown_view(ports(), row), sees(request))
