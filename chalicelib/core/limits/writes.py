"""The writes to a limit, as values: permits, queues, starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core.instants import Instant
from chalicelib.core.limits.permits import Pace, PermitRequest, RateWindow, Slots
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.writes import Write


@dataclass(frozen=True, slots=True)
class AcquirePermit(Write):
    """Acquire a permit of a limit whose state was read before: from its queue, or else on condition that the queue is
    empty. ``now`` is, for a pace, the appointment: the instant at which the start may begin, which may lie ahead.

    ``begins`` names the run that starts with the permit. The limit remembers the start, and the write expects a gap or
    rate as it was read. ``numbers``: the run takes the next number of the limit, which must not have changed (H1).
    ``passing``: the permit is of a pace at which the job does not queue, so the queue need not be empty.
    """

    ask: PermitRequest
    now: Instant
    read: LimitState
    from_queue: bool
    begins: str | None = None
    passing: bool = False
    numbers: bool = False

    def slot_taken(self, state: LimitState) -> LimitState:
        """The state of a limit of slots after this write."""
        units = self.ask.units if isinstance(self.ask, Slots) else 1
        taken = replace(state, active=state.active + units)
        if self.begins is None:
            return taken
        return replace(taken, starts={**state.starts, self.begins: self.now}, rev=state.rev + 1)


@dataclass(frozen=True, slots=True)
class RecordStart(Write):
    """Remember the start of a run whose job acquired the permit before, while it queued for another limit."""

    ask: Slots | RateWindow
    now: Instant
    read: LimitState
    begins: str
    numbers: bool = False


@dataclass(frozen=True, slots=True)
class JoinQueue(Write):
    """Count one more waiter, on condition that the limit would not grant the permit now: the exact negation of the
    condition of `AcquirePermit`. ``now`` is the latest instant for which the job could have acquired one. ``rev`` is
    that of the limit as it was read; a rate window must not have changed since, as its entries only age. ``behind``:
    the limit has a permit, but another pace of the job has none yet, and will have one with time. Or many jobs join
    together, and are served at once. ``count``: so many jobs join."""

    ask: PermitRequest
    now: Instant
    wake_at: Instant
    rev: int = 0
    behind: bool = False
    count: int = 1


@dataclass(frozen=True, slots=True)
class LeaveQueue(Write):
    """Count one waiter less, or ``count`` of them; the write acquires no permit."""

    limit_name: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Ended:
    """The data that a limit records with a released permit: its holder and, of a successful run, its start and end. An
    element of a list has no end that counts: its node has one."""

    holder: str
    read: LimitState
    started_at: Instant | None = None
    succeeded_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class ReleasePermit(Write):
    """Release a permit, or all ``units`` that a job acquired of a pool. With ``wake_at`` None the write expects an
    empty queue. Otherwise it expects waiters, and wakes the queue."""

    limit_name: str
    wake_at: Instant | None
    ended: Ended | None = None
    units: int = 1


@dataclass(frozen=True, slots=True)
class RememberSuccess(Write):
    """Remember when a workflow has succeeded by a run that held no permit: that of a node with ``each`` (W19)."""

    limit_name: str
    at: Instant


@dataclass(frozen=True, slots=True)
class TrackRates(Write):
    """From now on every start of a workflow is counted in these rate windows."""

    limit_name: str
    rates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NameShared(Write):
    """Remember in the limit of a policy that jobs queue for admission with permits of ``shared``. So the view of the
    policy finds their queue."""

    limit_name: str
    shared: str


@dataclass(frozen=True, slots=True)
class NewEdition(Write):
    """The workflow of this limit has another definition from now on: claims that read the former one fail."""

    limit_name: str
    edition: int


@dataclass(frozen=True, slots=True)
class LeaseQueue(Write):
    """Move the ``wake_at`` of a limit, on condition that it is as read: the caller that succeeds serves the queue.

    ``asked`` is the instant at which Sluice polls the runs that hold the slots; None: it does not poll them.
    ``in_block``: the queue is served in blocks, and the caller hints the next service with the jobs on their way."""

    limit_name: str
    read: Instant
    until: Instant
    asked: Instant | None = None
    in_block: bool = False


@dataclass(frozen=True, slots=True)
class DelayPace(Write):
    """Allow no start of this pace before ``until``: the target has throttled one (E8). The burst counts as used up."""

    ask: Pace
    until: Instant


@dataclass(frozen=True, slots=True)
class AcquireBlock(Write):
    """Move the ``head`` of a pace over a block of permits, on condition that it is as it was read. The jobs stay in the
    queue until they have started: if their invocation crashes, these permits are lost, and no other is affected."""

    limit_name: str
    read: Instant
    head: Instant


@dataclass(frozen=True, slots=True)
class AdvancePace(Write):
    """Move the ``head`` of a pace to an earlier instant: its policy allows more than before."""

    limit_name: str
    read: LimitState
    head: Instant


@dataclass(frozen=True, slots=True)
class ClearQueueWake(Write):
    """Remove the ``wake_at`` of a limit, on condition that its queue is empty; with ``read``, that it is as read."""

    limit_name: str
    read: Instant | None = None


@dataclass(frozen=True, slots=True)
class WakeQueue(Write):
    """Set the ``wake_at`` of a limit, if it has none, and into how many ``parts`` its queue is divided, unless it has
    more."""

    limit_name: str
    at: Instant
    parts: int
