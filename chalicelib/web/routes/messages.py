"""Routes of messages (L16): an instant or a time expression, and data for a target."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.web import unseen
from chalicelib.web.access import sees
from chalicelib.web.http import caller, document, gone, if_match, parse
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.routes.definitions import APP
from chalicelib.web.routing import IF_MATCH, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

ONE = APP + "/messages/{name}"


@route(routes, "GET", APP + "/messages", needs="read", query=PAGING)
def list_messages(ns: str, app: str) -> dict[str, Any]:
    """List the messages of an app that have something left to send."""
    from chalicelib.flow.schedules.messages import of_app, view

    return listing(routes.current_request, partial(of_app, ports(), f"{ns}.{app}"), view)


@route(routes, "PUT", ONE, needs="define", body="Message", headers=(IF_MATCH,), status=(200, 201))
def put_message(ns: str, app: str, name: str) -> Response:
    """Create or replace a message. It is active at once; nothing more of the replaced message is sent."""
    from chalicelib.core.definitions.message import Message
    from chalicelib.flow.schedules.messages import put, view

    request = routes.current_request
    request_data = parse(Message, request)
    stored, new = put(ports(), f"{ns}.{app}", name, request_data, caller(request), if_match(request))
    return document(view(stored), 201 if new else 200)


@route(routes, "GET", ONE, needs="read")
def get_message(ns: str, app: str, name: str) -> Response:
    """Read a message. A message that has sent everything no longer exists."""
    from chalicelib.flow.schedules.messages import get, view

    return document(view(get(ports(), f"{ns}.{app}", name)))


@route(routes, "DELETE", ONE, needs="define", headers=(IF_MATCH,), status=(204,))
def delete_message(ns: str, app: str, name: str) -> Response:
    """Delete a message. Nothing more of it is sent; its past sends stay in the history."""
    from chalicelib.flow.schedules.messages import delete

    request = routes.current_request
    delete(ports(), f"{ns}.{app}", name, caller(request), if_match(request))
    return gone()


@route(routes, "GET", ONE + "/runs", needs="read", query=PAGING)
def message_runs(ns: str, app: str, name: str) -> dict[str, Any]:
    """List what a message has sent, newest first. A message that no longer exists keeps its history."""
    from chalicelib.flow.schedules.messages import known
    from chalicelib.flow.views.views import run_view

    full = known(ports(), f"{ns}.{app}", name)
    return listing(
        routes.current_request,
        partial(ports().runs.runs, "schedule", full),
        partial(run_view, prices=ports().settings.prices),
    )


@route(routes, "GET", ONE + "/why", needs="read")
def why_message(ns: str, app: str, name: str) -> dict[str, Any]:
    """Explain why a message has not been sent: when it is due, and what its jobs wait for."""
    from chalicelib.flow.schedules.messages import get
    from chalicelib.flow.views import explain

    stored = get(ports(), f"{ns}.{app}", name)
    return unseen.why(explain.why_schedule(ports(), stored.schedule_state.schedule), sees(routes.current_request))
