"""Events that Sluice stores before it applies them, each once under its id: custom events and changes of alarms."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event, PostedEvent
from chalicelib.core.writes import Create
from chalicelib.flow.each import run_each
from chalicelib.flow.ingest.apply import Budget
from chalicelib.flow.ingest.outbox import apply_outbox
from chalicelib.log import logger
from chalicelib.ports import Ports


def store_and_apply(
    ports: Ports, events: Sequence[Event], now: Instant, budget: Budget | None = None
) -> tuple[Event, ...]:
    """Store all events, then apply each to the schedules of its key. Returns the events as they are stored.

    Raises an error if an event cannot be stored. If an event cannot be applied to a schedule, the others are applied,
    and the sweep retries this one. ``budget`` is that of a request.
    """
    rows = [_store(ports, PostedEvent(event, wake_at=now)) for event in events]
    try:
        run_each([row for row in rows if row.wake_at is not None], lambda row: apply_outbox(ports, row, budget))
    except ExceptionGroup:
        logger.exception("posted events are stored, but not yet applied everywhere; the sweep applies them again")
    return tuple(row.event for row in rows)


def _store(ports: Ports, row: PostedEvent) -> PostedEvent:
    """The stored row with this event's id: this row, or an earlier one."""
    if ports.ledger.commit([Create(row)]) is None:
        return row
    return ports.rows.get(PostedEvent, row.event.id) or row
