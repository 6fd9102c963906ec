"""The writes that touch a line, as values: permits, queues, starts. `core/writes.py` tells them with all others."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import Instant
from chalicelib.core.limits.pace import Pace
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.rate_window import RateWindow
from chalicelib.core.limits.slots import Slots
from chalicelib.core.rows.limit import LimitState


@dataclass(frozen=True, slots=True)
class AcquirePermit:
    """Take a permit of a line as its state was read: as a newcomer (nobody may wait), or from its queue. ``now`` is, at
    a pace, the appointment: the instant at which the start may begin, which may lie ahead.

    ``begins`` names the run that starts with it: its start is remembered, and a gap or rate holds as it was read.
    ``numbers``: it takes the line's next number along, if nobody took it since (H1).
    ``passing``: of a pace on the way to a slower one, whoever waits.
    """

    ask: PermitRequest
    now: Instant
    read: LimitState
    from_queue: bool
    begins: str | None = None
    passing: bool = False
    numbers: bool = False


@dataclass(frozen=True, slots=True)
class RecordStart:
    """Remember the start of a run whose permit of this line was taken before, while its job queued for another."""

    ask: Slots | RateWindow
    now: Instant
    read: LimitState
    begins: str
    numbers: bool = False


@dataclass(frozen=True, slots=True)
class JoinQueue:
    """Count one more waiter, under the exact negation of what lets a newcomer take a permit. ``rev`` is that of the
    line as it was read; a log, whose entries only age, is expected to be unchanged. ``now`` is the instant up to which
    a newcomer might have taken a permit. ``behind``: there is a permit, and another pace holds the job up, which time
    alone will change."""

    ask: PermitRequest
    now: Instant
    wake_at: Instant
    rev: int = 0
    behind: bool = False


@dataclass(frozen=True, slots=True)
class LeaveQueue:
    """Count one waiter less, without a permit."""

    limit_name: str


@dataclass(frozen=True, slots=True)
class Ended:
    """What a line learns with a permit that comes back: whose it was, and of a success when it started and ended."""

    holder: str
    read: LimitState
    started_at: Instant | None = None
    succeeded_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class ReleasePermit:
    """Give a permit back, or what was taken of a pool. ``wake_at`` None expects that nobody waits; else that somebody
    does, and wakes the queue."""

    limit_name: str
    wake_at: Instant | None
    ended: Ended | None = None
    units: int = 1


@dataclass(frozen=True, slots=True)
class TrackRates:
    """From now on every start of a workflow is counted in these log lines."""

    limit_name: str
    rates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewEdition:
    """The workflow of this line is another one from now on: what was read of it before starts nothing any more."""

    limit_name: str
    edition: int


@dataclass(frozen=True, slots=True)
class LeaseQueue:
    """Move a line's ``wake_at`` from what was read: the caller that succeeds serves the queue.

    ``asked``: the runs that hold its slots are asked about at this instant."""

    limit_name: str
    read: Instant
    until: Instant
    asked: Instant | None = None


@dataclass(frozen=True, slots=True)
class DelayPace:
    """No start of this pace before ``until``: the target has refused one (E8). Its burst is used up with that."""

    ask: Pace
    until: Instant


@dataclass(frozen=True, slots=True)
class AdvancePace:
    """The next permit of a pace comes at ``head``, sooner than it was read: its policy allows more than before."""

    limit_name: str
    read: LimitState
    head: Instant


@dataclass(frozen=True, slots=True)
class ClearQueueWake:
    """Take a line out of the wake index, expecting that nobody waits."""

    limit_name: str
