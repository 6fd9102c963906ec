"""Routes that stop and start everything of a namespace, an app or a tag (L24)."""

from __future__ import annotations

from chalice.app import Request

from chalicelib.core.rows.stops import Scope
from chalicelib.core.views import View
from chalicelib.flow.lookup import require
from chalicelib.flow.schedules import stops
from chalicelib.flow.schedules.bulk import parse_tag
from chalicelib.flow.schedules.stops import StopReportView, StopView
from chalicelib.web.bodies import NewStop, Start
from chalicelib.web.http import Json, caller, parse
from chalicelib.wiring import ports


class StopsView(View):
    stops: list[StopView]


def stop_namespace(request: Request, place: str) -> StopReportView:
    """Stop everything of a namespace, or what has a tag. These are schedules, DAGs, messages and backfills; they
    inherit the tags of their app. Once this is answered with ``complete``, nothing of it starts; what runs goes on.
    What is created there is stopped, too. The same request again goes on with one that was interrupted; another reason
    replaces the former one."""
    sent = parse(NewStop, request)
    return stops.stop(ports(), _scope(place, sent.tag), sent.reason, caller(request), sent.dry_run, sent.timeouts)


def start_namespace(request: Request, place: str) -> StopReportView:
    """Start what was stopped, with the same ``tag``. All that ran before runs again, unless another stop covers it,
    too. What was paused or disabled stays so."""
    sent = parse(Start, request)
    return stops.start(ports(), _scope(place, sent.tag), sent.dry_run)


def stop_app(request: Request, place: str) -> StopReportView:
    """Stop everything of an app, or what has a tag there. It is as for a namespace."""
    return stop_namespace(request, place)


def start_app(request: Request, place: str) -> StopReportView:
    """Start what was stopped in an app. It is as for a namespace."""
    return start_namespace(request, place)


def list_stops(request: Request, ns: str) -> Json:
    """List what is stopped in a namespace: since when, by whom, and why."""
    require(ports(), "namespace", ns)
    return {"stops": [stops.view_of(each) for each in stops.of_namespace(ports(), ns)]}


def _scope(place: str, tag: str | None) -> Scope:
    if tag is not None:
        parse_tag(tag)
    return Scope(place, tag or "")
