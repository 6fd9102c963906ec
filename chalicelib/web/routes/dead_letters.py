"""Routes of dead letters: list, redrive and drop events that could not be delivered (E6)."""

from __future__ import annotations

from functools import partial

from chalice.app import Request, Response

from chalicelib.core.documents import check_reference
from chalicelib.core.errors import invalid
from chalicelib.core.names import name_in
from chalicelib.flow.lookup import require
from chalicelib.flow.runs.dead_letters import drop, listed, redrive, redrive_all, view
from chalicelib.web.bodies import Redrive
from chalicelib.web.http import Json, answer, caller, gone, parse, query
from chalicelib.web.paging import listing
from chalicelib.web.quotas import check_waiting
from chalicelib.wiring import ports


def list_dead_letters(request: Request, ns: str) -> Json:
    """List the dead letters of a namespace, newest first, with their reasons."""
    require(ports(), "namespace", ns)
    wanted = query(request, "schedule")
    schedule = None if wanted is None else _full(ns, wanted)
    return listing(request, partial(listed, ports(), ns, schedule), view)


def redrive_dead_letter(request: Request, ns: str, run_id: str) -> Response:
    """Deliver an event again, with the same id, as its next attempt. Repeated requests deliver it once."""
    check_waiting(ns)
    return answer({"run_id": run_id, "attempt": redrive(ports(), ns, run_id)}, 202)


def redrive_dead_letters(request: Request, ns: str) -> Response:
    """Deliver the dead letters of a schedule again, newest first, up to a limit. ``more`` is true if some remain."""
    request_data = parse(Redrive, request)
    require(ports(), "namespace", ns)
    check_waiting(ns)
    done = redrive_all(ports(), ns, _full(ns, request_data.schedule), request_data.limit)
    refused = [{"run_id": run_id, "why": why} for run_id, why in done.refused]
    return answer({"redriven": list(done.run_ids), "refused": refused, "more": done.more}, 202)


def drop_dead_letter(request: Request, ns: str, run_id: str) -> Response:
    """Drop a dead letter for good, and record this. Its run stays in the history as failed."""
    drop(ports(), ns, run_id, caller(request))
    return gone()


def _full(ns: str, name: str) -> str:
    """The full name of a schedule of this namespace, from ``app.name`` or the full name."""
    full = name_in(ns, check_reference(name, "schedule"))
    if full is None:
        raise invalid(
            "schedule",
            f"a schedule of namespace {ns}, as app.name or {ns}.app.name",
            name,
            "name one of this namespace, or send the request to the other",
        )
    return full
