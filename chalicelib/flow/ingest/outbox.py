"""Store events, each once under its id, and apply stored ones to every schedule that waits for them.

So come custom events (T11), and the changes of CloudWatch alarms (T23).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from chalicelib.core.events import build
from chalicelib.core.events.alarms import AlarmChange, alarm_event
from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event, Partition, PostedEvent, Stored, advanced, newest_by
from chalicelib.core.writes import Create, Put, PutNewest
from chalicelib.flow.each import run_each
from chalicelib.flow.ingest.apply import Budget, apply_to_all
from chalicelib.flow.notices import freshness
from chalicelib.log import logger
from chalicelib.ports import Ports, every_page

if TYPE_CHECKING:
    from chalicelib.core.events.cloudevents import CloudEvent

PAGE = 200  # subscriptions; the outbox stores the cursor after each page, so a crash repeats at most one page


def apply_outbox(ports: Ports, outbox: Stored, budget: Budget | None = None, watched: bool = True) -> Stored:
    """Apply a stored event to all schedules of its key, page by page, then ack it. Returns the acked outbox.

    One failure does not stop the other schedules. Then the outbox stays open, the sweep applies the event again, and
    this call raises an ExceptionGroup. ``budget`` is that of a request. Without ``watched`` the dataset of the event is
    known to have no watch (T29).
    """
    failed: list[ExceptionGroup[Exception]] = []
    is_replayed = isinstance(outbox, Partition) and outbox.replayed
    newest = newest_by(outbox.event)
    if newest is not None and outbox.cursor is None:
        # Before the jobs that wait for it are woken. A conflict means that a newer one is stored.
        ports.ledger.commit([PutNewest(newest)])
        if watched:
            freshness.arrived(ports, newest.dataset)
    for page in every_page(partial(ports.catalog.subscriptions, outbox.event.key), PAGE, outbox.cursor):
        now = ports.clock.now()
        try:
            apply_to_all(ports, outbox.event, page.items, now, budget, begins=not is_replayed)
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


def match_alarm(ports: Ports, change: AlarmChange) -> str:
    """Store a change of an alarm and apply it. Returns what was done, in words.

    Sluice gets every change of every alarm of the account. A change that no schedule waits for costs one read.
    """
    if not change.is_new_state:
        return f"ignored: the alarm was in the state {change.state} before"
    now = ports.clock.now()
    event = alarm_event(change, now)
    if not ports.catalog.subscriptions(event.key, 1, None).items:
        return "ignored: no schedule waits for it"
    store_and_apply(ports, [event], now)
    return "applied"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A custom event as it is posted. ``source`` is its id: a second post with the same id is the same event.
    ``producer`` is the source of a CloudEvent, which makes its id unique (E11)."""

    kind: str
    source: str
    payload: Mapping[str, Any]
    at: Instant | None = None
    producer: str | None = None


def of_cloudevent(event: CloudEvent) -> Envelope:
    """The custom event that a CloudEvent is: the whole of it is the payload (E11)."""
    return Envelope(event.type, event.id, event.payload, event.at, producer=event.source)


def post(ports: Ports, namespace: str, envelopes: Sequence[Envelope]) -> tuple[Event, ...]:
    """Store events, then apply them. All are stored first, so an acknowledged event is never lost. Returns the events.

    An error while an event is applied does not fail the request: a sender without ids would post all events again.
    """
    now = ports.clock.now()
    events = [replace(_event(namespace, envelope, now), by=ports.requester) for envelope in envelopes]
    return store_and_apply(ports, events, now, Budget())


def _event(namespace: str, envelope: Envelope, now: Instant) -> Event:
    at = envelope.at if envelope.at is not None else now
    kind, source, payload, producer = envelope.kind, envelope.source, envelope.payload, envelope.producer
    return build.custom_event(namespace, kind, source, payload, at, now, producer)
