"""Writes as values: a flow decides, builds a plan of these, commits it in one piece. Each says what it expects.

`Ledger.commit` carries a plan out as one DynamoDB transaction (or as a plain conditional write if it is a single one)
and answers `Refused` with the writes whose expectation did not hold. That is data, not an error: read, decide again.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.calendar import Instant
from chalicelib.core.lines import Ask, Waiter
from chalicelib.core.rows import (
    Definition,
    Gate,
    Job,
    Listing,
    Marker,
    Mode,
    Partition,
    Pointer,
    PrefixRow,
    Record,
    Run,
    Subscription,
    Timer,
    Version,
)

Row = (
    Definition
    | Gate
    | Job
    | Listing
    | Marker
    | Partition
    | Pointer
    | PrefixRow
    | Record
    | Run
    | Subscription
    | Timer
    | Version
    | Waiter
)


@dataclass(frozen=True, slots=True)
class Create:
    """Put a row that must not exist yet."""

    row: Row


@dataclass(frozen=True, slots=True)
class Replace:
    """Put a row over the revision before it: ``row.rev`` is one more than what must be stored."""

    row: Job | Run | Timer


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
class PutDefinition:
    """Put a document over the version that was read (None: there must be none)."""

    definition: Definition
    over: int | None


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a row; it may be gone already."""

    row: Row


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a row that must be there."""

    row: Waiter


@dataclass(frozen=True, slots=True)
class TakeOut:
    """Delete a job if the same job is still there. Events that it gathered meanwhile go with it."""

    job: Job


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
    """Expect that no job of this generation is gathering, nor a tombstone in its place."""

    schedule: str
    generation: int


@dataclass(frozen=True, slots=True)
class CloseGeneration:
    """Put a tombstone over the gathering job, keeping what must be given back; nothing joins it any more."""

    schedule: str
    generation: int
    at: Instant
    expires_at: Instant


@dataclass(frozen=True, slots=True)
class TakePermit:
    """Take a permit of a line as its state was read: as a newcomer (nobody may wait), or from its queue."""

    ask: Ask
    now: Instant
    head: Instant
    from_queue: bool


@dataclass(frozen=True, slots=True)
class JoinLine:
    """Count one more waiter, under the exact negation of what lets a newcomer take a permit."""

    ask: Ask
    now: Instant
    wake_at: Instant


@dataclass(frozen=True, slots=True)
class LeaveLine:
    """Count one waiter less, without a permit."""

    line: str


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Give a slot back. ``wake_at`` None expects that nobody waits; else that somebody does, and wakes the queue."""

    line: str
    wake_at: Instant | None


@dataclass(frozen=True, slots=True)
class LeaseLine:
    """Move a line's ``wake_at`` from what was read: whoever succeeds serves the queue."""

    line: str
    read: Instant
    until: Instant


@dataclass(frozen=True, slots=True)
class SettleLine:
    """Take a line out of the wake index, expecting that nobody waits."""

    line: str


Write = (
    Create
    | Replace
    | Put
    | PutGate
    | PutDefinition
    | Delete
    | Remove
    | TakeOut
    | GateIs
    | NotClosed
    | NoneGathering
    | CloseGeneration
    | TakePermit
    | JoinLine
    | LeaveLine
    | GiveBack
    | LeaseLine
    | SettleLine
)


@dataclass(frozen=True, slots=True)
class Refused:
    """The writes whose expectation did not hold. None of the plan was carried out."""

    writes: tuple[Write, ...]

    def of(self, kind: type) -> bool:
        return any(isinstance(write, kind) for write in self.writes)
