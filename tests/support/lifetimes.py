"""Which kinds of rows expire, and when a row of each kind is final: only then it has a TTL (H1, C9).

`tests/faults/test_lifetimes.py` fails for a kind of row that is missing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from chalicelib.aws.tables import items
from chalicelib.core import states
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
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.notice import DeadlineWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.quotas import QuotasRow
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.request import Requested
from chalicelib.core.rows.run import DeadLetter, Offer, Output, Pointer, Record, Run
from chalicelib.core.rows.schedule import Failures, ScheduleState, Subscription, Timer, Version
from chalicelib.core.rows.zone_rules import ZoneRules
from tests.support.world import World

# These rows are deleted explicitly: no TTL, ever.
NEVER: frozenset[type] = frozenset({
    AccessRow, AllowedRow, ClosingCount, NoticeWindow, Definition, Failures, Listing, PendingNotice, Offer,
    Partition, PrefixLock, PrefixRow, LastArrival, CountedObject, IgnoredObjects, NewestPartition, GrantsRow, QuotasRow,
    Subscription, Timer, Waiter,
    ZoneRules,
})  # fmt: skip


class Place(NamedTuple):
    """The key prefixes of a kind of row, and when a row of it is final."""

    table: str
    pk: str
    sk: str
    is_final: Callable[[Any, Mapping[tuple[str, int], Run]], bool]


def _always(row: Any, runs: Mapping[tuple[str, int], Run]) -> bool:
    return True


def _run_is_final(run: Run, runs: Mapping[tuple[str, int], Run]) -> bool:
    """A failed attempt is final when the next one is a run: until then its retry may still be dropped."""
    return states.is_terminal(run.state) and (run.state != "RETRYING" or (run.run_id, run.attempt + 1) in runs)


def _backfill_is_final(row: Backfill, runs: Mapping[tuple[str, int], Run]) -> bool:
    return row.state != "RUNNING" and not row.live


FINAL: dict[type, Place] = {
    # A complete manifest. Its row is there for invocations that have listed the folder before.
    ManifestRow: Place("Catalog", "DATASET#", "MANIFEST#", lambda row, _: not row.waits),
    # A message that is deleted. A message that is put again gets a schedule state without a TTL.
    ScheduleState: Place("Catalog", "SCHEDULE#", "STATE", lambda schedule_state, _: schedule_state.mode == "deleted"),
    # The version of a message whose last instant is known: HISTORY after that, when the message has been deleted for as
    # long.
    Version: Place("Catalog", "SCHEDULE#", "VERSION#", _always),
    # No invocation relies on an expired lease: its row goes an hour later.
    DeliveryLease: Place("Jobs", "DELIVERY#", "LEASE#", lambda lease, _: lease.expires_at > lease.leased_until),
    # A tombstone that has released its permits, and blocks late events.
    Job: Place("Jobs", "", "GATHERING", lambda job, _: job.closed and job.wake_at is None and not job.held),
    PostedEvent: Place("Jobs", "EVENT#", "EVENT", lambda row, _: row.wake_at is None),
    DeadlineWatch: Place("Jobs", "DEADLINE#", "DEADLINE", lambda row, _: row.wake_at is None),
    # States that an event was applied, which does not change. It outlives its job by the job's own timeout.
    AppliedEvent: Place("Jobs", "", "APPLIED#", _always),
    Backfill: Place("Jobs", "BACKFILL#", "", _backfill_is_final),
    Reprocess: Place("Jobs", "REPROCESS#", "", lambda row, _: row.ended_at is not None and row.wake_at is None),
    Deployment: Place("Jobs", "DEPLOYMENT#", "", lambda row, _: row.ended_at is not None and row.wake_at is None),
    PlanPart: Place("Jobs", "PLAN#", "", _always),  # `check` compares it with its backfill
    Run: Place("Runs", "RUN#", "A#", _run_is_final),
    AuditRow: Place("Runs", "AUDIT#", "", _always),  # never changes
    DagRun: Place("Runs", "RUN#", "DAG", lambda row, _: row.wake_at is None),
    Record: Place("Runs", "RUN#", "RECORD", _always),
    DeadLetter: Place("Runs", "DEAD#", "", _always),
    # The key of a request is kept as long as history, for every outcome of its job.
    Requested: Place("Jobs", "REQUEST#", "REQUEST", _always),
    Output: Place("Runs", "RUN#", "OUTPUT#", _always),
    # Without it a run is found by its name at the target: see `test_w7_a_run_that_has_outlived_its_pointer_...`.
    Pointer: Place("Runs", "TARGET#", "POINTER", _always),
}


def check(world: World) -> set[type]:
    """Check that no row has a TTL that may still change, or that a flow still relies on. Returns the kinds that have
    one.
    """
    rows = list(world.tables.rows())
    runs = {(run.run_id, run.attempt): run for run in _of(Run, rows)}
    living = {row.plan for row in _of(Backfill, rows) if not _backfill_is_final(row, runs)}
    seen: set[type] = set()
    for table, item in rows:
        if "ttl" not in item:
            continue
        kind = _kind_of(table, item)
        row: Any = items.from_item(kind, item)
        assert FINAL[kind].is_final(row, runs), f"a living row has a TTL: {row}"
        assert kind is not PlanPart or row.plan not in living, f"the plan of a living backfill has a TTL: {row}"
        seen.add(kind)
    return seen


def _kind_of(table: str, item: Mapping[str, Any]) -> type:
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    for kind, place in FINAL.items():
        if table == f"{place.table}Table" and pk.startswith(place.pk) and sk.startswith(place.sk):
            return kind
    raise AssertionError(f"a row of an unknown kind has a TTL: {table} {pk} {sk}")


def _of(kind: type[Any], rows: list[tuple[str, Mapping[str, Any]]]) -> Iterator[Any]:
    place = FINAL[kind]
    for table, item in rows:
        there = item["pk"]["S"].startswith(place.pk) and item["sk"]["S"].startswith(place.sk)
        if table == f"{place.table}Table" and there:
            yield items.from_item(kind, item)
