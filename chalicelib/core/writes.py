"""Writes as values. A step builds a plan of them and commits the plan as a whole; each write has its condition.

`Ledger.commit` executes a plan as one DynamoDB transaction, or as one conditional write if the plan has one write. It
returns a `Conflict` with the writes whose conditions failed. A conflict is an ordinary result: the step reads and
decides again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chalicelib.core.instants import Instant
from chalicelib.core.rows.access import AccessRow, AllowedRow, QuotasRow
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.rows.event import LastArrival, NewestPartition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice
from chalicelib.core.rows.run import DeadLetter, Run
from chalicelib.core.rows.schedule import ScheduleState, Subscription, Timer
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.rows.stops import StopsRow
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.states import Mode

MAX_WRITES = 100  # of a plan: DynamoDB takes so many in a transaction

Row = StoredRow


class Revised(Protocol):
    """A row that is replaced as a whole: ``rev`` counts its writes."""

    @property
    def rev(self) -> int: ...


class Write:
    """The base of all writes. Those to limits are in `core/limits/writes.py`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Create(Write):
    """Put a row, on condition that it does not exist yet."""

    row: Row


@dataclass(frozen=True, slots=True)
class Replace(Write):
    """Put a row over its previous revision: the stored ``rev`` must be ``row.rev - 1``.

    ``over`` is the job that the new job replaces, if that has another id; or the timer of the former generation that
    the new timer continues. ``before`` is the document of a namespace that is replaced, for the audit record.
    """

    row: Revised
    over: Job | Timer | None = None
    before: AccessRow | AllowedRow | GrantsRow | QuotasRow | StopsRow | None = None


@dataclass(frozen=True, slots=True)
class Put(Write):
    """Put a row unconditionally. Idempotent, because the content follows from the key."""

    row: Row


@dataclass(frozen=True, slots=True)
class PutNewest(Write):
    """Store the newest partition of a dataset, on condition that the stored one came earlier."""

    newest: NewestPartition


@dataclass(frozen=True, slots=True)
class ExpectNewest(Write):
    """Expect that the newest partition of a dataset is the one that was read (None: none has come)."""

    dataset: str
    newest: NewestPartition | None


@dataclass(frozen=True, slots=True)
class PutState(Write):
    """Put a schedule state over the one that was read (None: there must be none)."""

    schedule_state: ScheduleState
    over: ScheduleState | None


@dataclass(frozen=True, slots=True)
class ClearStateWake(Write):
    """Clear the ``wake_at`` of a schedule state whose jobs have been woken, if the state is still as it was read."""

    schedule_state: ScheduleState


@dataclass(frozen=True, slots=True)
class MarkWoken(Write):
    """Store that the jobs of a schedule before a cursor have been woken, if the state is still as it was read. The
    revision stays, so no claim conflicts with this."""

    schedule_state: ScheduleState
    cursor: str


@dataclass(frozen=True, slots=True)
class PutLastArrival(Write):
    """Store the last arrival of a feed over the instant that was read (None: there was none)."""

    last_arrival: LastArrival
    over: Instant | None


@dataclass(frozen=True, slots=True)
class CountFailure(Write):
    """Count one more consecutive failure of a schedule."""

    schedule: str


@dataclass(frozen=True, slots=True)
class PutDefinition(Write):
    """Put a document over the version that was read (None: there must be none); a pool or an app also over its
    ``edition``.

    ``before`` is the document that was read, for the audit record of the change."""

    definition: Definition
    over: int | None
    edition: int | None = None
    before: Definition | None = None


@dataclass(frozen=True, slots=True)
class ExpectDefinition(Write):
    """Expect that a document still has the version and the edition that were read."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class ExpectGrants(Write):
    """Expect that the grants of a namespace are those that were read (None: it has no grants document)."""

    namespace: str
    read: GrantsRow | None


@dataclass(frozen=True, slots=True)
class ExpectStops(Write):
    """Expect that the stops of a namespace are those that were read in a copy of their row (None: it has none)."""

    namespace: str
    copy: str
    read: StopsRow | None


@dataclass(frozen=True, slots=True)
class TrackStarts(Write):
    """From now on, the limit of a workflow counts each of its starts, for every type of target."""

    workflow: str


@dataclass(frozen=True, slots=True)
class RemoveDefinition(Write):
    """Delete a document if it still has the version that was read, so that no unread version is deleted."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class Delete(Write):
    """Delete a row, which may be deleted already."""

    row: Row


@dataclass(frozen=True, slots=True)
class EndTimer(Write):
    """Delete the timer of a generation that ends, or put the ``next`` one over it, if it is as it was ``read``. So what
    an emitter prepares meanwhile is not also put on record as unprepared."""

    read: Timer
    next: Timer | None = None


@dataclass(frozen=True, slots=True)
class RemoveSubscription(Write):
    """Delete a subscription if its ``since`` is as it was read, so that no later one is deleted."""

    subscription: Subscription


@dataclass(frozen=True, slots=True)
class DeleteNotice(Write):
    """Delete a pending notice that a window has taken in, or a window that is over, if it is as it was read. So each
    notice counts once."""

    row: NoticeWindow | PendingNotice


@dataclass(frozen=True, slots=True)
class DeleteDeadLetter(Write):
    """Delete a dead letter if it is as it was read, so that an event is either redriven or dropped, never both."""

    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class RemoveWaiter(Write):
    """Delete the waiter row of a queue, which must exist and belong to the same job with the same sort key."""

    row: Waiter


@dataclass(frozen=True, slots=True)
class ExpectNotWaiting(Write):
    """Expect that the job or run of a waiter row still is as it was ``read`` (None: it does not exist). The job or run
    that was read did not wait there, so the row may be deleted. If it has queued again since, its revision differs."""

    waiter: Waiter
    read: Job | Run | None


@dataclass(frozen=True, slots=True)
class ExpectNotQueued(Write):
    """Expect that a waiter row does not exist."""

    waiter: Waiter


@dataclass(frozen=True, slots=True)
class ExpectNoRun(Write):
    """Expect that a job has not become a run. A stalled emitter may have written the job again after its run."""

    job: Job


@dataclass(frozen=True, slots=True)
class ExpectNoPartition(Write):
    """Expect that a partition of a dataset is not registered: what is absent has not come meanwhile."""

    dataset: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteJob(Write):
    """Delete a job if the stored job has the same id. Events that it has gathered since are deleted with it; with
    ``exact``, it must have the revision that was read."""

    job: Job
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ExpectMode(Write):
    """Expect that the schedule state is as it was read, and has one of these modes."""

    schedule_state: ScheduleState
    modes: tuple[Mode, ...]


@dataclass(frozen=True, slots=True)
class ExpectOpen(Write):
    """Expect that a generation of a schedule is not closed."""

    schedule: str
    generation: int


@dataclass(frozen=True, slots=True)
class ExpectNoneGathering(Write):
    """Expect that a generation has no gathering job under a sort key, by default the one without a correlation; it may
    have a tombstone."""

    schedule: str
    generation: int
    sort_key: str = GATHERING


@dataclass(frozen=True, slots=True)
class CloseGeneration(Write):
    """Put a tombstone over the gathering job of a generation. It keeps the permits to release. No event can
    join it."""

    schedule: str
    generation: int
    at: Instant


@dataclass(frozen=True, slots=True)
class EndLease(Write):
    """Delete the own lease of an invocation, if no other invocation has taken it since."""

    lease: DeliveryLease


@dataclass(frozen=True, slots=True)
class WakeBackfill(Write):
    """Wake a backfill for a check, because its active runs have changed. Its revision rises, so a step that read it
    before gets a conflict."""

    schedule: str
    backfill: str
    at: Instant


@dataclass(frozen=True, slots=True)
class ExpectBackfillRunning(Write):
    """Expect that a backfill is neither over nor cancelled; otherwise none of its runs may start."""

    schedule: str
    backfill: str


@dataclass(frozen=True, slots=True)
class TakeLease(Write):
    """Put a lease if there is none, or one that has expired by ``now``. With ``over``, put it over the own lease, which
    must still have the same holder and end at that instant."""

    lease: DeliveryLease
    now: Instant
    over: Instant | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """The writes whose conditions failed. No write of the plan was executed."""

    writes: tuple[Write, ...]

    def of(self, kind: type) -> bool:
        """Whether one of the failed writes is of this kind."""
        return any(isinstance(write, kind) for write in self.writes)
