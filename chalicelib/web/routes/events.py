"""Routes of custom events (T11)."""

from __future__ import annotations

from chalice.app import Blueprint, Response

from chalicelib.web.http import answer, parse, request_id
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import IDEMPOTENCY_KEY, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@route(routes, "POST", NS + "/events", body="Events", headers=(IDEMPOTENCY_KEY,), status=(202,))
def post_events(ns: str) -> Response:
    """Post custom events. Each is stored before this answers; one that is posted again under its id counts once.

    ``id`` in the answer is the poster's own, or the one that was made for it; ``event_id`` is what runs tell."""
    from chalicelib.core.instants import parse_instant
    from chalicelib.flow.ingest.custom_events import Envelope, post
    from chalicelib.flow.lookup import require
    from chalicelib.web.bodies import Events

    request = routes.current_request
    require(ports(), "namespace", ns)
    sent = parse(Events, request).events
    made = request_id(request)
    envelopes = [
        Envelope(
            kind=each.type,
            source=each.id or f"{made}/{number}",
            payload=each.payload,
            at=parse_instant(each.timestamp) if each.timestamp is not None else None,
        )
        for number, each in enumerate(sent)
    ]
    events = post(ports(), ns, envelopes)
    told = [
        {"type": envelope.kind, "id": envelope.source, "event_id": event.id}
        for envelope, event in zip(envelopes, events, strict=True)
    ]
    return answer({"accepted": told}, 202)
