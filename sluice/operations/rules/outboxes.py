"""Events and notices that may not have reached every schedule yet. They stay, or go, with each schedule of theirs.

An event belongs to the namespace of its dataset, its workflow or its custom event type, and the change of an alarm to
none. Schedules of other namespaces wait for it, too. So an export has the open outboxes of other namespaces for which
its schedules wait, and the source keeps the events of what it gives up for the schedules that stay.
"""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.events.build import status_event
from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import CountedObject, Event, Partition, PostedEvent
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.notice import PendingNotice
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import Row
from sluice.operations.rules.owner import namespace_in


def unheard(row: Row | LimitState) -> tuple[Event, ...]:
    """The events of a row that some schedule may not have. The status of a run of a re-processing is none for a
    schedule of another namespace: the plan of the re-processing starts what follows."""
    match row:
        case Partition() | CountedObject() | PostedEvent() if row.wake_at is not None:
            return (row.event,)
        case Run() if row.backfill is None or ids.reprocess_of(row.backfill) is None:
            return tuple(status_event(row, status) for status in row.announce)
        case _:
            return ()


def notifies(row: Row | LimitState) -> str | None:
    """The namespace of the schedule that a pending notice reports on; None for any other row. The row belongs to the
    workflow. If both are apart, each installation notifies the targets that it knows."""
    return namespace_in(row.schedule) if isinstance(row, PendingNotice) else None


def posted(event: Event, now: Instant) -> PostedEvent:
    """The row from which an event reaches schedules that are elsewhere than its own row."""
    return PostedEvent(event, wake_at=now)
