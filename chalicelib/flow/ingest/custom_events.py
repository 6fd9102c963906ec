"""Post custom events: each is stored once, under the id that its sender gave it, before it is applied (T11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.core.events import build
from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event
from chalicelib.flow.ingest.apply import Budget
from chalicelib.flow.ingest.outbox import store_and_apply
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
    events = [replace(_event(namespace, envelope, now), by=ports.requester) for envelope in envelopes]
    return store_and_apply(ports, events, now, Budget())


def _event(namespace: str, envelope: Envelope, now: Instant) -> Event:
    at = envelope.at if envelope.at is not None else now
    return build.custom_event(namespace, envelope.kind, envelope.source, envelope.payload, at, now)
