"""Apply a stored event to every schedule that waits for it: of a partition, a counted object or a custom event."""

from __future__ import annotations

from functools import partial

from chalicelib.core.rows.event import Stored, advanced, newest_by
from chalicelib.core.writes import Put, PutNewest
from chalicelib.flow.ingest.apply import Budget, apply_to_all
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
