"""The kind of a stored row, by its key: the inverse of `keys.key_of`, for readers of whole tables."""

from __future__ import annotations

from typing import Any

from chalicelib.aws.tables.keys import ACCESS, GRANTS, Key
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

# (table, beginning of the partition key, beginning of the sort key) of each kind. The first that fits counts.
_PLACES: tuple[tuple[str, str, str, type[Any]], ...] = (
    ("catalog", ACCESS, "", AccessRow),
    ("catalog", GRANTS, "", GrantsRow),
    ("catalog", "QUOTAS", "", QuotasRow),
    ("catalog", "ZONES", "RULES", ZoneRules),
    ("catalog", "ALLOWED#", "ALLOWED", AllowedRow),
    ("catalog", "NAMESPACES", "", Definition),
    ("catalog", "NS#", "", Definition),
    ("catalog", "APP#", "SCHEDULE#", Listing),
    ("catalog", "APP#", "MESSAGE#", Listing),
    ("catalog", "APP#", "", Definition),
    ("catalog", "SCHEDULE#", "STATE", ScheduleState),
    ("catalog", "SCHEDULE#", "TIMER", Timer),
    ("catalog", "SCHEDULE#", "VERSION#", Version),
    ("catalog", "SCHEDULE#", "FAILURES", Failures),
    ("catalog", "SCHEDULE#", "WORKFLOW", Definition),
    ("catalog", "TRIGGER#", "", Subscription),
    ("catalog", "BUCKET#", "PREFIX#", PrefixRow),
    ("catalog", "BUCKET#", "LOCK#", PrefixLock),
    ("catalog", "DATASET#", "PARTITION#", Partition),
    ("catalog", "DATASET#", "IGNORED", IgnoredObjects),
    ("catalog", "DATASET#", "NEWEST", NewestPartition),
    ("catalog", "DATASET#", "MANIFEST#", ManifestRow),
    ("catalog", "OBJECTS#", "OBJECT#", CountedObject),
    ("jobs", "EVENT#", "EVENT", PostedEvent),
    ("jobs", "DELIVERY#", "LEASE#", DeliveryLease),
    ("jobs", "CLOSINGS#", "COUNT", ClosingCount),
    ("jobs", "REQUEST#", "REQUEST", Requested),
    ("jobs", "BACKFILL#", "", Backfill),
    ("jobs", "REPROCESS#", "", Reprocess),
    ("jobs", "DEPLOYMENT#", "", Deployment),
    ("jobs", "NOTICE#", "", PendingNotice),
    ("jobs", "WINDOW#", "", NoticeWindow),
    ("jobs", "DEADLINE#", "DEADLINE", DeadlineWatch),
    ("jobs", "PLAN#", "", PlanPart),
    ("jobs", "LIMIT#", "STATE", LimitState),
    ("jobs", "LIMIT#", "WAIT#", Waiter),
    ("jobs", "OFFER#", "", Offer),
    ("jobs", "", "ARRIVED#", LastArrival),
    ("jobs", "", "APPLIED#", AppliedEvent),
    ("runs", "AUDIT#", "", AuditRow),
    ("runs", "RUN#", "A#", Run),
    ("runs", "RUN#", "RECORD", Record),
    ("runs", "RUN#", "OUTPUT#", Output),
    ("runs", "RUN#", "DAG", DagRun),
    ("runs", "DEAD#", "", DeadLetter),
    ("runs", "TARGET#", "POINTER", Pointer),
)


def kind_of(key: Key) -> type[Any]:
    """The class of the row under a key. Raises ValueError for a key that no kind of row has."""
    for table, head, sort_head, kind in _PLACES:
        if key.table == table and key.pk.startswith(head) and key.sk.startswith(sort_head):
            return kind
    if key.table == "jobs" and "@" in key.pk:
        return Job
    raise ValueError(f"expected the key of a row of {key.table}, got {key.pk}, {key.sk}")
