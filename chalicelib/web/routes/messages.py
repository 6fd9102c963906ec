"""Routes of messages (L16): an instant or a time expression, and data for a target."""

from __future__ import annotations

from functools import partial

from chalice.app import Request, Response

from chalicelib.core.definitions.message import Message
from chalicelib.flow.schedules.messages import delete, get, of_app, put, view
from chalicelib.web.http import Json, caller, document, gone, if_match, parse
from chalicelib.web.paging import listing
from chalicelib.wiring import ports


def list_messages(request: Request, ns: str, app: str) -> Json:
    """List the messages of an app that have something left to send."""
    return listing(request, partial(of_app, ports(), f"{ns}.{app}"), view)


def put_message(request: Request, ns: str, app: str, name: str) -> Response:
    """Create or replace a message. It is active at once; nothing more of the replaced message is sent."""
    request_data = parse(Message, request)
    stored, new = put(ports(), f"{ns}.{app}", name, request_data, caller(request), if_match(request))
    return document(view(stored), 201 if new else 200)


def get_message(request: Request, ns: str, app: str, name: str) -> Response:
    """Read a message. A message that has sent everything no longer exists."""
    return document(view(get(ports(), f"{ns}.{app}", name)))


def delete_message(request: Request, ns: str, app: str, name: str) -> Response:
    """Delete a message. Nothing more of it is sent; its past sends stay in the history."""
    delete(ports(), f"{ns}.{app}", name, caller(request), if_match(request))
    return gone()
