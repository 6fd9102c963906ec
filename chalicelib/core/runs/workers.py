"""Runs of pull workers (W5): offered in a pool, leased to one worker, kept alive by its heartbeats.

A run that is *offered* is STARTING and has no target id: surely nothing runs. *Leased* it has the worker's name as its
target id, and ``lease_until`` in its place in the wake index, so that nobody has to ask for a worker that died: its row
is overdue. The first heartbeat says that the work has begun (RUNNING); until then the lease may be given back.

Leases are numbered: a run that was given back is leased anew under the next number, and who held the one before is told
so, whatever he reports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from chalicelib.core import ids, states
from chalicelib.core.instants import MINUTE, Instant, Millis, duration, iso
from chalicelib.core.limits import permits
from chalicelib.core.rows.run import Offer, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.targets import registry
from chalicelib.core.writes import Delete, ExpectBackfillRunning, ExpectMode, Write

# An offer that nobody takes is looked at again: its schedule may have been closed, its row put back from a backup. The
# longer it lies there, the less often: thousands of them must not keep the sweep from what is urgent.
OFFER_CHECK: Millis = 10 * MINUTE
MAX_CHECK_PAUSE: Millis = 30 * MINUTE


@dataclass(frozen=True, slots=True)
class LeaseId:
    """Names one lease of one attempt: ``<run id>-<attempt>-<number>``."""

    run_id: str
    attempt: int
    number: int

    def __str__(self) -> str:
        return f"{self.run_id}-{self.attempt}-{self.number}"


def parse_lease_id(text: str) -> LeaseId | None:
    """The parts of a lease's id, or None if the text is none."""
    run_id, _, rest = text.rpartition("-")
    run_id, _, attempt = run_id.rpartition("-")
    small = all(part.isascii() and part.isdigit() and len(part) <= 6 for part in (attempt, rest))
    if not small or ids.parse_job_id(run_id) is None:
        return None
    return LeaseId(run_id, int(attempt), int(rest))


def lease_of(run: Run) -> LeaseId:
    return LeaseId(run.run_id, run.attempt, run.lease)


def is_pulled(run: Run) -> bool:
    """Whether workers come for this run, instead of a target being called."""
    return registry.of_run(run).pulled


def is_offered(run: Run) -> bool:
    """Whether it lies in its pool, for whoever comes."""
    return is_pulled(run) and run.state == "STARTING" and run.calls > 0 and run.target_id is None


def pool_of(run: Run) -> str:
    """The full name of its pool, ``<namespace>.<pool>``: that of the namespace in which its workflow lives."""
    return f"{run.workflow.partition('.')[0]}.{run.request.target['pool']}"


def heartbeat_of(run: Run) -> Millis:
    """How long its worker may be silent (1 min by default)."""
    return duration(str(run.request.target["heartbeat"]))


def offer_of(run: Run) -> Offer:
    """Its place in the pool: urgent first, then the earliest latest start, then the oldest. It follows from the run's
    row alone, so that it can be put again, and taken away by whoever ends the run."""
    rank = f"{permits.rank(run.priority, run.latest_start, run.created_at, run.run_id)}#{run.attempt:03d}"
    return Offer(pool_of(run), rank, run.run_id, run.attempt)


def offered(run: Run, now: Instant) -> Run:
    """The run as it lies in its pool. For a worker's run this is the start call."""
    first = run.start_requested_at if run.start_requested_at is not None else now
    return replace(
        run,
        calls=run.calls + 1,
        start_requested_at=first,
        reason=f"waits for a worker of pool {pool_of(run)}",
        paced_from=None,
        paced_until=None,
        queued_in=None,
        rank=None,
        leases=0,
        rev=run.rev + 1,
        wake_at=now + OFFER_CHECK,
        expires_at=None,
    )


def offered_again(run: Run, now: Instant) -> Run:
    """The run that still lies in its pool, looked at next after as long again as it has lain there."""
    lain = now - (run.start_requested_at if run.start_requested_at is not None else now)
    return replace(run, wake_at=now + min(max(lain, OFFER_CHECK), MAX_CHECK_PAUSE), leases=0, rev=run.rev + 1)


def leased(run: Run, worker: str, now: Instant) -> Run:
    """The run in the hands of a worker, which has one heartbeat's time to be heard of."""
    until, why = now + heartbeat_of(run), f"taken by worker {worker}, which has not begun yet"
    taken = replace(run, target_id=worker, lease=run.lease + 1, lease_until=until, reason=why, metrics=None)
    return replace(taken, leases=0, rev=run.rev + 1, wake_at=until)


def given_back(run: Run, why: str, now: Instant) -> Run:
    """The run on offer again: its worker has not begun it. Whoever wants its end has said why before."""
    free = replace(run, target_id=None, lease_until=None, metrics=None, leases=0, rev=run.rev + 1)
    return replace(free, wake_at=now) if run.cancel else replace(free, reason=why, wake_at=now + OFFER_CHECK)


def lease_until(run: Run, now: Instant) -> Instant | None:
    """Until when a run that has just been heard of is its worker's; None at other targets."""
    return now + heartbeat_of(run) if is_pulled(run) else None


def still_open(schedule_state: ScheduleState, run: Run) -> list[Write]:
    """Expects that the run may still start, so that whoever closes its schedule or its backfill wins (C13)."""
    modes = tuple(mode for mode in get_args(states.Mode) if states.may_start(run.kind, mode, run.backfill))
    backfill = [ExpectBackfillRunning(run.schedule, run.backfill)] if run.backfill is not None else []
    return [ExpectMode(schedule_state, modes), *backfill]


def withdrawn(run: Run) -> list[Write]:
    """What takes the offer of a run away that ends before a worker took it."""
    return [Delete(offer_of(run))] if is_offered(run) else []


@dataclass(frozen=True, slots=True)
class Holder:
    """How a lease stands: held by this worker, over as the worker reported it itself, or lost, and ``why``."""

    state: Literal["held", "over", "lost"]
    why: str = ""


def holder(run: Run | None, lease: LeaseId, worker: str, later: Run | None = None) -> Holder:
    """Whether a lease still is that of the worker who speaks. ``later`` is the latest attempt of the same run."""
    if run is None:
        return Holder("lost", "there is no such run any more")
    if run.lease == lease.number and run.target_id == worker:
        if not states.is_terminal(run.state):
            return Holder("held")
        if run.outcome != "lost" and run.lease_until is None:
            return Holder("over", f"attempt {run.attempt} is {run.state}")
    if later is not None and later.attempt > run.attempt:
        return Holder("lost", f"attempt {run.attempt} ended as {run.state} at {_at(run)}; {_whose(later)}")
    return Holder("lost", _whose(run))


def lost(run: Run) -> str:
    """The reason of an attempt whose worker died."""
    last = (run.lease_until or run.claimed_at) - heartbeat_of(run)
    return f"lost: worker {run.target_id} has not been heard of since {iso(last)}"


def is_expired(run: Run, now: Instant) -> bool:
    return run.lease_until is not None and run.lease_until <= now


def _whose(run: Run) -> str:
    """Who has an attempt now, in words."""
    if states.is_terminal(run.state):
        return f"attempt {run.attempt} ended as {run.state} at {_at(run)}{f': {run.reason}' if run.reason else ''}"
    if run.target_id is None:
        return f"attempt {run.attempt} waits in pool {pool_of(run)}" if is_pulled(run) else "it is elsewhere now"
    return f"attempt {run.attempt} is held by {run.target_id}, as lease {lease_of(run)}"


def _at(run: Run) -> str:
    return iso(run.ended_at) if run.ended_at is not None else "an unknown instant"
