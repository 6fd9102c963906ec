"""Routes of custom events (T11)."""

from __future__ import annotations

from chalice.app import Blueprint, Response

from chalicelib.web.access import require_events
from chalicelib.web.http import answer, parse, request_id
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import IDEMPOTENCY_KEY, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@route(routes, "POST", NS + "/events", needs="produce", body="Events", headers=(IDEMPOTENCY_KEY,), status=(202,))
def post_events(ns: str) -> Response:
    """Post custom events. Sluice stores each event before it answers. Events with the same type and id count once.

    ``id`` in the answer is the sender's id, or one that Sluice generated. ``event_id`` is the id that runs show."""
    from chalicelib.core.instants import parse_instant
    from chalicelib.flow.ingest.custom_events import Envelope, post
    from chalicelib.flow.lookup import require
    from chalicelib.web.bodies import Events

    request = routes.current_request
    require(ports(), "namespace", ns)
    sent = parse(Events, request).events
    require_events(request, ns, tuple(event.type for event in sent))
    made = request_id(request)
    envelopes = [
        Envelope(
            kind=event.type,
            source=event.id or f"{made}/{number}",
            payload=event.payload,
            at=parse_instant(event.timestamp) if event.timestamp is not None else None,
        )
        for number, event in enumerate(sent)
    ]
    events = post(ports(), ns, envelopes)
    accepted = [
        {"type": envelope.kind, "id": envelope.source, "event_id": event.id}
        for envelope, event in zip(envelopes, events, strict=True)
    ]
    return answer({"accepted": accepted}, 202)
