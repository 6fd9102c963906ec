"""The namespace of each stored row, and the kinds of rows that no export contains."""

from __future__ import annotations

from typing import assert_never

from chalicelib.core.rows.access import AccessRow, AllowedRow
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.closings import ClosingCount
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition, Listing, PrefixLock, PrefixRow
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.event import (
    AppliedEvent,
    CountedObject,
    LastArrival,
    ManifestRow,
    NewestPartition,
    Partition,
    PostedEvent,
)
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.notice import DeadlineWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.quotas import QuotasRow
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.request import Requested
from chalicelib.core.rows.run import DeadLetter, Offer, Output, Pointer, Record, Run
from chalicelib.core.rows.schedule import Failures, ScheduleState, Subscription, Timer, Version
from chalicelib.core.rows.zone_rules import ZoneRules
from chalicelib.core.writes import Row

# Kinds that no export contains, each with the reason.
LEFT_OUT: dict[type, str] = {
    DeliveryLease: "it names the jobs that an invocation sends at present; in a frozen source no invocation runs",
    ZoneRules: "each installation brings its own rows to the rules of its code",
    PrefixLock: "only changes of prefixes that are in progress rely on it; each installation counts for itself",
    ClosingCount: "only invocations that send at present rely on it; each installation counts for itself",
}


def namespace_of(row: Row | LimitState) -> str | None:
    """The namespace that a row belongs to. None for a row of the whole installation, such as the limit of an EMR
    application. None also for a part of a plan, because the backfill or re-processing that names it has the
    namespace."""
    match row:
        case AccessRow() | AllowedRow() | AuditRow() | GrantsRow() | QuotasRow() | Reprocess():
            return row.namespace
        case Definition():
            return namespace_in(row.name)
        case PrefixRow():
            return row.namespace
        case Partition() | NewestPartition() | ManifestRow() | CountedObject() | IgnoredObjects():
            return namespace_in(row.dataset)
        case Deployment():
            return namespace_in(row.app)
        case PendingNotice() | NoticeWindow():
            return namespace_in(row.workflow)
        case PostedEvent():
            kind, _, rest = row.event.key.partition(":")
            return rest.partition(":")[0] if kind == "event" else None
        case Requested():
            return namespace_in(row.job_id)
        case Output() | Pointer() | Offer():
            return namespace_in(row.run_id)
        case DagRun():
            return namespace_in(row.dag_run)
        case LimitState():
            return of_limit(row.limit_name)
        case Waiter():
            return namespace_in(row.job_schedule)
        case DeliveryLease() | ClosingCount() | PlanPart() | PrefixLock() | ZoneRules():
            return None
        case (
            ScheduleState()
            | Version()
            | Listing()
            | Subscription()
            | Timer()
            | Failures()
            | Backfill()
            | LastArrival()
            | AppliedEvent()
            | Job()
            | DeadlineWatch()
            | Run()
            | Record()
            | DeadLetter()
        ):
            return namespace_in(row.schedule)
        case _:
            assert_never(row)


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
