"""Tell a stored event to every schedule that waits for it: partitions, counted objects and custom events alike."""

from __future__ import annotations

from chalicelib.core.rows.event import Stored, told
from chalicelib.core.writes import Put
from chalicelib.flow.ingest.apply import apply_to_all
from chalicelib.ports import Ports

PAGE = 200  # index rows; progress is kept after each page, so a crash repeats one page at most


def tell(ports: Ports, outbox: Stored) -> Stored:
    """Apply a stored event to all schedules of its key, page by page; only then is it settled.

    If one schedule cannot take the event, the others still get it. The row then stays open, and is told again.
    """
    failed: list[ExceptionGroup[Exception]] = []
    cursor = outbox.cursor
    while True:
        now = ports.clock.now()
        page = ports.catalog.subscriptions(outbox.event.key, PAGE, cursor)
        cursor = page.cursor
        try:
            apply_to_all(ports, outbox.event, page.items, now)
        except ExceptionGroup as group:
            failed.append(group)
        if not failed:
            outbox = told(outbox, cursor, now)
            ports.ledger.put_all([Put(outbox)])
        if cursor is None and failed:
            raise ExceptionGroup(f"event {outbox.event.id} of {outbox.event.key} is not told to all", failed)
        if cursor is None:
            return outbox
