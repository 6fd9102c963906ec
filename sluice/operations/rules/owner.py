"""What a stored row belongs to: its namespace, the plans that it names, and the schedules that its events are for.

An event belongs to the namespace of its dataset, its workflow or its custom event type, and the change of an alarm to
none. Schedules of other namespaces wait for it, too. So an event that may not have reached every schedule yet stays, or
goes, with each schedule of its own. An export has the open outboxes of other namespaces for which its schedules wait,
and the source keeps the events of what it gives up for the schedules that stay.
"""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.events.build import ENDED, status_event
from chalicelib.core.instants import Instant
from chalicelib.core.rows import kinds
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.event import CountedObject, Event, Partition, PostedEvent
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.notice import PendingNotice
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import Row


def namespace_of(row: Row | LimitState) -> str | None:
    """The namespace that a row belongs to. None for a row of the whole installation, such as the limit of an EMR
    application. None also for a part of a plan, because the backfill or re-processing that names it has the
    namespace."""
    if isinstance(row, LimitState):
        return of_limit(row.limit_name)
    owner = kinds.ROWS[type(row)].owner
    name: str | None = getattr(row, owner) if owner else None
    return namespace_in(name) if name is not None else None


def plans_of(row: Row | LimitState) -> tuple[str, ...]:
    """The plans that a row names: that of a backfill, and those of the steps of a re-processing."""
    match row:
        case Backfill():
            return (row.plan,)
        case Reprocess():
            return tuple(str(step["plan"]) for step in row.steps)
        case _:
            return ()


def of_limit(limit_name: str) -> str | None:
    """The namespace of a limit; None for one that all namespaces share: an EMR application, and EMR's start rate."""
    kind, _, name = limit_name.partition(":")
    return None if kind in ("application", "emr") else namespace_in(name)


def namespace_in(full_name: str) -> str:
    """The namespace in a full name."""
    return full_name.partition(".")[0]


def unheard(row: Row | LimitState) -> tuple[Event, ...]:
    """The events of a row that some schedule may not have. The status of a run of a re-processing is none for a
    schedule of another namespace: the plan of the re-processing starts what follows."""
    match row:
        case Partition() | CountedObject() | PostedEvent() if row.wake_at is not None:
            return (row.event,)
        case Run() if row.backfill is None or ids.reprocess_of(row.backfill) is None:
            return tuple(status_event(row, status) for status in row.announce if status != ENDED)
        case _:
            return ()


def notifies(row: Row | LimitState) -> str | None:
    """The namespace of the schedule that a pending notice reports on; None for any other row. The row belongs to the
    workflow. If both are apart, each installation notifies the targets that it knows."""
    return namespace_in(row.schedule) if isinstance(row, PendingNotice) else None


def posted(event: Event, now: Instant) -> PostedEvent:
    """The row from which an event reaches schedules that are elsewhere than its own row."""
    return PostedEvent(event, wake_at=now)
