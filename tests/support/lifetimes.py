"""Which kinds of rows expire, and when a row of each kind is final: only then it has a TTL (H1, C9).

`tests/faults/test_lifetimes.py` fails for a kind of row that is missing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.core import states
from chalicelib.core.dags import elements
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.elements import Elements
from chalicelib.core.rows.event import AppliedEvent, ManifestRow, PostedEvent
from chalicelib.core.rows.job import Job, Requested
from chalicelib.core.rows.notice import DeadlineWatch
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import DeadLetter, Fire, Output, Pointer, Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Version
from tests.support.stored import class_of
from tests.support.world import World

IsFinal = Callable[[Any, Mapping[tuple[str, int], Run]], bool]


def _always(row: Any, runs: Mapping[tuple[str, int], Run]) -> bool:
    return True


def _run_is_final(run: Run, runs: Mapping[tuple[str, int], Run]) -> bool:
    """A failed attempt is final when the next one is a run: until then its retry may still be dropped."""
    return states.is_terminal(run.state) and (run.state != "RETRYING" or (run.run_id, run.attempt + 1) in runs)


def _backfill_is_final(row: Backfill, runs: Mapping[tuple[str, int], Run]) -> bool:
    return row.state != "RUNNING" and not row.live


FINAL: dict[type, IsFinal] = {
    # A complete manifest. Its row is there for invocations that have listed the folder before.
    ManifestRow: lambda row, _: not row.waits,
    # A message that is deleted. A message that is put again gets a schedule state without a TTL.
    ScheduleState: lambda schedule_state, _: schedule_state.mode == "deleted",
    # The version of a message whose last instant is known: HISTORY after that, when the message has been deleted for as
    # long.
    Version: _always,
    # No invocation relies on an expired lease: its row goes an hour later.
    DeliveryLease: lambda lease, _: lease.expires_at > lease.leased_until,
    # A tombstone that has released its permits, and blocks late events.
    Job: lambda job, _: job.closed and job.wake_at is None and not job.held,
    PostedEvent: lambda row, _: row.wake_at is None,
    DeadlineWatch: lambda row, _: row.wake_at is None,
    # States that an event was applied, which does not change. It outlives its job by the job's own timeout.
    AppliedEvent: _always,
    Backfill: _backfill_is_final,
    Reprocess: lambda row, _: row.ended_at is not None and row.wake_at is None,
    Deployment: lambda row, _: row.ended_at is not None and row.wake_at is None,
    PlanPart: _always,  # `check` compares it with its backfill
    Run: _run_is_final,
    # Each bundle that is written renews it. It outlives what its events wait for, a window of 31 days at most.
    Fire: _always,
    # Follows from runs, which a view reads without it. Each write renews it.
    PeriodEnds: _always,
    AuditRow: _always,  # never changes
    DagRun: lambda row, _: row.wake_at is None,
    # The run of the node has ended, and so has each element.
    Elements: lambda row, _: row.wake_at is None and elements.is_over(row),
    Record: _always,
    DeadLetter: _always,
    # The key of a request is kept as long as history, for every outcome of its job.
    Requested: _always,
    Output: _always,
    # Without it a run is found by its name at the target: see `test_w7_a_run_that_has_outlived_its_pointer_...`.
    Pointer: _always,
}


NAMED = {kind.__name__: kind for kind in FINAL}


def check(world: World) -> set[type]:
    """Check that no row has a TTL that may still change, or that a flow still relies on. Returns the kinds that have
    one.
    """
    rows = [(class_of(item), item) for _, item in world.tables.rows()]
    runs = {(run.run_id, run.attempt): run for run in _of(Run, rows)}
    living = {row.plan for row in _of(Backfill, rows) if not _backfill_is_final(row, runs)}
    seen: set[type] = set()
    for name, item in rows:
        if "ttl" not in item:
            continue
        kind = NAMED[name]
        row: Any = items.from_item(kind, item)
        assert FINAL[kind](row, runs), f"a living row has a TTL: {row}"
        assert kind is not PlanPart or row.plan not in living, f"the plan of a living backfill has a TTL: {row}"
        seen.add(kind)
    return seen


def _of(kind: type[Any], rows: list[tuple[str, Mapping[str, Any]]]) -> Iterator[Any]:
    for name, item in rows:
        if name == kind.__name__:
            yield items.from_item(kind, item)
