"""Post custom events: each is stored once, under the id that its sender gave it, before it is applied (T11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.core.events import build
from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event, PostedEvent
from chalicelib.core.writes import Create
from chalicelib.flow.each import run_each
from chalicelib.flow.ingest.tell import tell
from chalicelib.log import logger
from chalicelib.ports import Ports


@dataclass(frozen=True, slots=True)
class Envelope:
    """A custom event as it is posted. ``source`` is its id: a second post with the same id is the same event."""

    kind: str
    source: str
    payload: Mapping[str, Any]
    at: Instant | None = None


def post(ports: Ports, namespace: str, envelopes: Sequence[Envelope]) -> tuple[Event, ...]:
    """Store events, then apply them. All are stored first, so an acknowledged event is never lost. Returns the events.

    An error while an event is applied does not fail the request: a sender without ids would post all events again.
    """
    now = ports.clock.now()
    posted = tuple(_posted(namespace, envelope, now) for envelope in envelopes)
    rows = [_store(ports, row) for row in posted]
    try:
        run_each([row for row in rows if row.wake_at is not None], lambda row: tell(ports, row))
    except ExceptionGroup:
        logger.exception(
            "posted events are stored, but not yet applied to every schedule; the sweep applies them again"
        )
    return tuple(row.event for row in rows)


def _store(ports: Ports, row: PostedEvent) -> PostedEvent:
    if ports.ledger.commit([Create(row)]) is None:
        return row
    return ports.jobs.posted(row.event.id) or row


def _posted(namespace: str, envelope: Envelope, now: Instant) -> PostedEvent:
    at = envelope.at if envelope.at is not None else now
    event = build.custom_event(namespace, envelope.kind, envelope.source, envelope.payload, at, now)
    return PostedEvent(event, wake_at=now)
