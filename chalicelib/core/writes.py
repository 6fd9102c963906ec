"""Writes as values: a flow decides, builds a plan of these, commits it in one piece. Each says what it expects.

`Ledger.commit` carries a plan out as one DynamoDB transaction (or as a plain conditional write if it is a single one)
and answers `Conflict` with the writes whose expectation did not hold. That is data, not an error: read, decide again.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import Instant
from chalicelib.core.limits.writes import (
    AcquirePermit,
    AdvancePace,
    ClearQueueWake,
    DelayPace,
    JoinQueue,
    LeaseQueue,
    LeaveQueue,
    NewEdition,
    RecordStart,
    ReleasePermit,
    TrackRates,
)
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition, Listing, PrefixRow
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.rows.event import AppliedEvent, CountedObject, LastArrival, Partition, PostedEvent
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.notice import DeadlineWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.request import Requested
from chalicelib.core.rows.run import DeadLetter, Offer, Output, Pointer, Record, Run
from chalicelib.core.rows.schedule import Failures, ScheduleState, Subscription, Timer, Version
from chalicelib.core.states import Mode

Row = (
    NoticeWindow
    | Backfill
    | DagRun
    | DeadLetter
    | Definition
    | DeliveryLease
    | Failures
    | ScheduleState
    | Job
    | Listing
    | AppliedEvent
    | Offer
    | Output
    | PendingNotice
    | Partition
    | PlanPart
    | Pointer
    | PostedEvent
    | PrefixRow
    | Record
    | Requested
    | Run
    | LastArrival
    | CountedObject
    | Subscription
    | Timer
    | Version
    | Waiter
    | DeadlineWatch
)


@dataclass(frozen=True, slots=True)
class Create:
    """Put a row that must not exist yet."""

    row: Row


@dataclass(frozen=True, slots=True)
class Replace:
    """Put a row over the revision before it: ``row.rev`` is one more than what must be stored.

    ``over`` is the job that a new one takes the place of, if its id is another.
    """

    row: NoticeWindow | Backfill | DagRun | Job | PendingNotice | Run | Timer | DeadlineWatch
    over: Job | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """Put a row whatever stood there: harmless to repeat, because its content follows from its key."""

    row: Row


@dataclass(frozen=True, slots=True)
class PutState:
    """Put a gate over the one that was read (None: there must be none)."""

    schedule_state: ScheduleState
    over: ScheduleState | None


@dataclass(frozen=True, slots=True)
class ClearStateWake:
    """Take a gate out of the wake index, if it is still as it was read: its jobs have been woken."""

    schedule_state: ScheduleState


@dataclass(frozen=True, slots=True)
class PutLastArrival:
    """Remember that a feed came, over the instant that was read (None: there was none)."""

    last_arrival: LastArrival
    over: Instant | None


@dataclass(frozen=True, slots=True)
class CountFailure:
    """One more run of a schedule has failed in a row."""

    schedule: str


@dataclass(frozen=True, slots=True)
class PutDefinition:
    """Put a document over the version that was read (None: there must be none), and of a pool over its ``edition``."""

    definition: Definition
    over: int | None
    edition: int | None = None


@dataclass(frozen=True, slots=True)
class ExpectDefinition:
    """Expect that a document is the version, and the edition, that was read."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class TrackStarts:
    """From now on every start of a workflow is counted in its line, whatever its target."""

    workflow: str


@dataclass(frozen=True, slots=True)
class RemoveDefinition:
    """Delete a document, if it is the version that was read: what was replaced meanwhile is not deleted unseen."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a row; it may be gone already."""

    row: Row


@dataclass(frozen=True, slots=True)
class DeleteNotice:
    """Delete a note that is taken in, or an alert that is over, as it was read: it counts once."""

    row: NoticeWindow | PendingNotice


@dataclass(frozen=True, slots=True)
class DeleteDeadLetter:
    """Delete a dead letter as it was read: an event is redriven or dropped, and never both."""

    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class RemoveWaiter:
    """Give up a place in a queue: it must be there, and be that of this very job in this very place."""

    row: Waiter


@dataclass(frozen=True, slots=True)
class ExpectNotWaiting:
    """Expect that the job or run of a row in a queue is as it was ``read`` (None: not there), which was not waiting
    there: its row may be cleared away. What has queued again since then has another revision."""

    waiter: Waiter
    read: Job | Run | None


@dataclass(frozen=True, slots=True)
class ExpectNotQueued:
    """Expect that a row does not stand in its queue."""

    waiter: Waiter


@dataclass(frozen=True, slots=True)
class ExpectNoRun:
    """Expect that a job has not become a run. A stalled emitter may have written it again after it has run."""

    job: Job


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a job if the same job is still there. Events that it gathered meanwhile go with it, unless ``exact``:
    then it must be the very revision that was read."""

    job: Job
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ExpectMode:
    """Expect that the gate is as it was read, and in one of these modes."""

    schedule_state: ScheduleState
    modes: tuple[Mode, ...]


@dataclass(frozen=True, slots=True)
class ExpectOpen:
    """Expect that this generation of a schedule has not been closed."""

    schedule: str
    generation: int


@dataclass(frozen=True, slots=True)
class ExpectNoneGathering:
    """Expect that no job of this generation is gathering; a tombstone may lie in its place."""

    schedule: str
    generation: int


@dataclass(frozen=True, slots=True)
class CloseGeneration:
    """Put a tombstone over the gathering job, keeping what must be given back; nothing joins it any more."""

    schedule: str
    generation: int
    at: Instant


@dataclass(frozen=True, slots=True)
class EndLease:
    """Delete one's own lease, if nobody has taken it since."""

    lease: DeliveryLease


@dataclass(frozen=True, slots=True)
class WakeBackfill:
    """What a backfill has under way has changed: it is to be looked at. Its revision moves on, so whoever looked before
    loses."""

    schedule: str
    backfill: str
    at: Instant


@dataclass(frozen=True, slots=True)
class ExpectBackfillRunning:
    """Expect that a backfill is neither over nor cancelled: nothing of one that is may begin."""

    schedule: str
    backfill: str


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Put a lease where there is none, or one that has expired at ``now``. With ``over``: renew one's own, which must
    still end at that instant."""

    lease: DeliveryLease
    now: Instant
    over: Instant | None = None


Write = (
    Create
    | Replace
    | Put
    | PutState
    | ClearStateWake
    | PutLastArrival
    | CountFailure
    | PutDefinition
    | ExpectDefinition
    | TrackStarts
    | RemoveDefinition
    | Delete
    | DeleteNotice
    | DeleteDeadLetter
    | RemoveWaiter
    | ExpectNotWaiting
    | ExpectNotQueued
    | ExpectNoRun
    | DeleteJob
    | ExpectMode
    | ExpectOpen
    | ExpectNoneGathering
    | CloseGeneration
    | AcquirePermit
    | RecordStart
    | TrackRates
    | NewEdition
    | JoinQueue
    | LeaveQueue
    | ReleasePermit
    | LeaseQueue
    | DelayPace
    | AdvancePace
    | ClearQueueWake
    | WakeBackfill
    | ExpectBackfillRunning
    | TakeLease
    | EndLease
)


@dataclass(frozen=True, slots=True)
class Conflict:
    """The writes whose expectation did not hold. None of the plan was carried out."""

    writes: tuple[Write, ...]

    def of(self, kind: type) -> bool:
        return any(isinstance(write, kind) for write in self.writes)
