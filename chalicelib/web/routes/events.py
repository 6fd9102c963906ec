"""Routes of custom events (T11)."""

from __future__ import annotations

from chalice.app import Request, Response

from chalicelib.core.instants import parse_instant
from chalicelib.flow.ingest.outbox import Envelope, post
from chalicelib.flow.lookup import require
from chalicelib.web.access import require_events
from chalicelib.web.bodies import Events
from chalicelib.web.http import answer, parse, request_id
from chalicelib.wiring import ports


def post_events(request: Request, ns: str) -> Response:
    """Post custom events. Sluice stores each event before it answers. Events with the same type and id count once.

    ``id`` in the answer is the sender's id, or one that Sluice generated. ``event_id`` is the id that runs show."""
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
