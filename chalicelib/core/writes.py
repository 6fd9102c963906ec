"""Writes as values: a flow decides, builds a plan of these, commits it in one piece. Each says what it expects.

`Ledger.commit` carries a plan out as one DynamoDB transaction (or as a plain conditional write if it is a single one)
and answers `Refused` with the writes whose expectation did not hold. That is data, not an error: read, decide again.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import Instant
from chalicelib.core.limits.writes import (
    Begin,
    CountRates,
    GiveBack,
    HoldBack,
    JoinLine,
    LeaseLine,
    LeaveLine,
    NewEdition,
    Quicken,
    SettleLine,
    TakePermit,
)
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition, Listing, PrefixRow
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.rows.event import Marker, Partition, Posted, Seen, SizedObject
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.notice import Alert, Note, Watch
from chalicelib.core.rows.request import Requested
from chalicelib.core.rows.run import DeadLetter, Offer, Output, Pointer, Record, Run
from chalicelib.core.rows.schedule import Failures, Gate, Subscription, Timer, Version
from chalicelib.core.states import Mode

Row = (
    Alert
    | Backfill
    | DagRun
    | DeadLetter
    | Definition
    | DeliveryLease
    | Failures
    | Gate
    | Job
    | Listing
    | Marker
    | Offer
    | Output
    | Note
    | Partition
    | PlanPart
    | Pointer
    | Posted
    | PrefixRow
    | Record
    | Requested
    | Run
    | Seen
    | SizedObject
    | Subscription
    | Timer
    | Version
    | Waiter
    | Watch
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

    row: Alert | Backfill | DagRun | Job | Note | Run | Timer | Watch
    over: Job | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """Put a row whatever stood there: harmless to repeat, because its content follows from its key."""

    row: Row


@dataclass(frozen=True, slots=True)
class PutGate:
    """Put a gate over the one that was read (None: there must be none)."""

    gate: Gate
    over: Gate | None


@dataclass(frozen=True, slots=True)
class SettleGate:
    """Take a gate out of the wake index, if it is still as it was read: its jobs have been woken."""

    gate: Gate


@dataclass(frozen=True, slots=True)
class PutSeen:
    """Remember that a feed came, over the instant that was read (None: there was none)."""

    seen: Seen
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
class DefinitionIs:
    """Expect that a document is the version, and the edition, that was read."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class CountStarts:
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
class TakeIn:
    """Delete a note that is taken in, or an alert that is over, as it was read: it counts once."""

    row: Alert | Note


@dataclass(frozen=True, slots=True)
class TakeLetter:
    """Delete a dead letter as it was read: an event is redriven or dropped, and never both."""

    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class Remove:
    """Give up a place in a queue: it must be there, and be that of this very job in this very place."""

    row: Waiter


@dataclass(frozen=True, slots=True)
class NotWaiting:
    """Expect that the job or run of a row in a queue is as it was ``read`` (None: not there), which was not waiting
    there: its row may be cleared away. What has queued again since then has another revision."""

    waiter: Waiter
    read: Job | Run | None


@dataclass(frozen=True, slots=True)
class NotQueued:
    """Expect that a row does not stand in its queue."""

    waiter: Waiter


@dataclass(frozen=True, slots=True)
class NotRun:
    """Expect that a job has not become a run. A stalled emitter may have written it again after it has run."""

    job: Job


@dataclass(frozen=True, slots=True)
class TakeOut:
    """Delete a job if the same job is still there. Events that it gathered meanwhile go with it, unless ``exact``:
    then it must be the very revision that was read."""

    job: Job
    exact: bool = False


@dataclass(frozen=True, slots=True)
class GateIs:
    """Expect that the gate is as it was read, and in one of these modes."""

    gate: Gate
    modes: tuple[Mode, ...]


@dataclass(frozen=True, slots=True)
class NotClosed:
    """Expect that this generation of a schedule has not been closed."""

    schedule: str
    generation: int


@dataclass(frozen=True, slots=True)
class NoneGathering:
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
class BackfillGoesOn:
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
    | PutGate
    | SettleGate
    | PutSeen
    | CountFailure
    | PutDefinition
    | DefinitionIs
    | CountStarts
    | RemoveDefinition
    | Delete
    | TakeIn
    | TakeLetter
    | Remove
    | NotWaiting
    | NotQueued
    | NotRun
    | TakeOut
    | GateIs
    | NotClosed
    | NoneGathering
    | CloseGeneration
    | TakePermit
    | Begin
    | CountRates
    | NewEdition
    | JoinLine
    | LeaveLine
    | GiveBack
    | LeaseLine
    | HoldBack
    | Quicken
    | SettleLine
    | WakeBackfill
    | BackfillGoesOn
    | TakeLease
    | EndLease
)


@dataclass(frozen=True, slots=True)
class Refused:
    """The writes whose expectation did not hold. None of the plan was carried out."""

    writes: tuple[Write, ...]

    def of(self, kind: type) -> bool:
        return any(isinstance(write, kind) for write in self.writes)
