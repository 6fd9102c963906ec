"""Store events, each once under its id, and apply stored ones to every schedule that waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event, PostedEvent, Stored, advanced, newest_by
from chalicelib.core.writes import Create, Put, PutNewest
from chalicelib.flow.each import run_each
from chalicelib.flow.ingest.apply import Budget, apply_to_all
from chalicelib.log import logger
from chalicelib.ports import Ports, every_page

PAGE = 200  # subscriptions; the outbox stores the cursor after each page, so a crash repeats at most one page


def apply_outbox(ports: Ports, outbox: Stored, budget: Budget | None = None) -> Stored:
    """Apply a stored event to all schedules of its key, page by page, then ack it. Returns the acked outbox.

    One failure does not stop the other schedules. Then the outbox stays open, the sweep applies the event again, and
    this call raises an ExceptionGroup. ``budget`` is that of a request.
    """
    failed: list[ExceptionGroup[Exception]] = []
    newest = newest_by(outbox.event)
    if newest is not None and outbox.cursor is None:
        # Before the jobs that wait for it are woken. A conflict means that a newer one is stored.
        ports.ledger.commit([PutNewest(newest)])
    for page in every_page(partial(ports.catalog.subscriptions, outbox.event.key), PAGE, outbox.cursor):
        now = ports.clock.now()
        try:
            apply_to_all(ports, outbox.event, page.items, now, budget)
        except ExceptionGroup as group:
            failed.append(group)
        if not failed:
            outbox = advanced(outbox, page.cursor, now)
            ports.ledger.put_all([Put(outbox)])
    if failed:
        message = f"event {outbox.event.id} of {outbox.event.key} was not applied to all schedules"
        raise ExceptionGroup(message, failed)
    return outbox


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
