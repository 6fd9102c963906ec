"""Runs of pull workers (W5): offered in a pool, leased to one worker, kept alive by its heartbeats.

An *offered* run is STARTING and has no target id: certainly no worker executes it. A *leased* run has the name of its
worker as target id, and its ``wake_at`` is ``lease_until``. If the worker crashes, the row becomes overdue, so Sluice
need not poll workers. With its first heartbeat a worker reports that the work has begun (RUNNING); before that, it may
give the lease back.

A lease that expires before the first heartbeat was of no use: the answer to its claim was lost, or the worker died. The
run is offered again and uses up no attempt, for `MAX_LEASES` leases.

Leases are numbered. A run that was given back is leased again under the next number, and a report under an earlier
number is answered with *lost*. A lease is bound to a random token, which ends its id, and to the user or role that
claimed it: Sluice refuses the report of another signer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from chalicelib.core import ids, states
from chalicelib.core.instants import MINUTE, Instant, Millis, duration, iso
from chalicelib.core.limits import permits
from chalicelib.core.rows.run import Offer, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import follow
from chalicelib.core.targets import registry
from chalicelib.core.why import NONE, Why, joined, plain
from chalicelib.core.writes import Delete, ExpectBackfillRunning, ExpectMode, Write

# Sluice checks an offer that no worker claims again: its schedule may be closed, or a restore may have lost its row.
# The checks become rarer with its age: thousands of offers must not keep the sweep from urgent rows.
OFFER_CHECK: Millis = 10 * MINUTE
MAX_CHECK_PAUSE: Millis = 30 * MINUTE


# So many leases of one attempt may expire without a heartbeat. Perhaps the work kills its workers, or they begin it
# without saying so.
MAX_LEASES = 10


TOKEN = 32  # characters of a token, in hexadecimal; longer than any number of an attempt or lease


@dataclass(frozen=True, slots=True)
class LeaseId:
    """The id of one lease of one attempt, as text ``<run id>-<attempt>-<number>-<token>``. `str` leaves out the token,
    which only the worker may know."""

    run_id: str
    attempt: int
    number: int
    token: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.run_id}-{self.attempt}-{self.number}"

    @property
    def secret(self) -> str:
        """The whole id, for the worker."""
        return f"{self}-{self.token}" if self.token else str(self)


def parse_lease_id(text: str) -> LeaseId | None:
    """The lease id in a text, or None if the text is malformed."""
    rest, _, token = text.rpartition("-")
    has_token = len(token) == TOKEN and not set(token) - set("0123456789abcdef")
    run_id, _, number = (rest if has_token else text).rpartition("-")
    run_id, _, attempt = run_id.rpartition("-")
    small = all(part.isascii() and part.isdigit() and len(part) <= 6 for part in (attempt, number))
    if not small or ids.parse_job_id(run_id) is None:
        return None
    return LeaseId(run_id, int(attempt), int(number), token if has_token else "")


def lease_of(run: Run, token: str = "") -> LeaseId:
    return LeaseId(run.run_id, run.attempt, run.lease, token)


def token_of(run: Run, secret: str) -> str:
    """The token of a run's present lease, from the random ``secret`` of the claim; empty without a secret."""
    return ids.digest(secret, run.run_id, run.attempt, run.lease, length=TOKEN) if secret else ""


def is_bound_to(run: Run, lease: LeaseId, member: str | None) -> bool:
    """Whether the token of a lease, and the user or role that reports under it, are those of its claim. Another lease
    of the run is not compared here: `holder` answers that it is lost."""
    if run.lease != lease.number:
        return True
    return run.lease_key in (None, ids.digest(lease.token, length=TOKEN)) and run.leased_by in (None, member)


def is_pulled(run: Run) -> bool:
    """Whether workers claim this run; Sluice calls no target to start it."""
    return registry.of_run(run).pulled


def is_offered(run: Run) -> bool:
    """Whether the run has an offer in its pool that a worker may claim."""
    return is_pulled(run) and run.state == "STARTING" and run.calls > 0 and run.target_id is None


def pool_of(run: Run) -> str:
    """The full name of the run's pool, ``<namespace>.<pool>``, in the namespace of its workflow."""
    return f"{run.workflow.partition('.')[0]}.{run.request.target['pool']}"


def heartbeat_of(run: Run) -> Millis:
    """The longest time in ms between two heartbeats of the run's worker (1 min by default)."""
    return duration(str(run.request.target["heartbeat"]))


def offer_of(run: Run) -> Offer:
    """The offer row of a run. Its rank sorts by priority, then earliest latest start, then age. The row follows from
    the run's row alone, so any step can put it again, and the step that ends the run can delete it."""
    rank = f"{permits.rank(run.priority, run.latest_start, run.created_at, run.run_id)}#{run.attempt:03d}"
    return Offer(pool_of(run), rank, run.run_id, run.attempt)


def offered(run: Run, now: Instant) -> Run:
    """The run when it is offered in its pool, which replaces the start call for the runs of workers."""
    first = run.start_requested_at if run.start_requested_at is not None else now
    return replace(
        run,
        calls=run.calls + 1,
        start_requested_at=first,
        reason=Why.of("worker_awaited", f"waits for a worker of pool {pool_of(run)}"),
        paced_from=None,
        paced_until=None,
        queued_in=None,
        rank=None,
        leases=0,
        rev=run.rev + 1,
        wake_at=follow.by_start(replace(run, start_requested_at=first), now + OFFER_CHECK, now),
        expires_at=None,
    )


def offered_again(run: Run, now: Instant) -> Run:
    """The run that is still on offer. The pause until its next check equals the age of the offer, within bounds."""
    age = now - (run.start_requested_at if run.start_requested_at is not None else now)
    checked = follow.by_start(run, now + min(max(age, OFFER_CHECK), MAX_CHECK_PAUSE), now)
    return replace(run, wake_at=checked, leases=0, rev=run.rev + 1)


def leased(run: Run, worker: str, now: Instant, member: str | None = None, secret: str = "") -> Run:
    """The run leased to a worker, which has to send its first heartbeat within one heartbeat interval. ``member`` is
    the user or role that claims it, and ``secret`` a random text of the claim. Only a digest of the token is stored."""
    until = now + heartbeat_of(run)
    why = Why.of("worker_claimed", f"claimed by worker {worker}, which has not begun the work yet")
    taken = replace(run, target_id=worker, lease=run.lease + 1, lease_until=until, reason=why, metrics=None)
    key = ids.digest(token_of(taken, secret), length=TOKEN) if secret else None
    taken = replace(taken, leased_by=member, lease_key=key)
    return replace(taken, leases=0, rev=run.rev + 1, wake_at=until)


def given_back(run: Run, why: Why, now: Instant) -> Run:
    """The run on offer again, because its worker has not begun it. A run to be ended keeps the reason for that."""
    free = replace(run, target_id=None, lease_until=None, leased_by=None, lease_key=None, metrics=None, leases=0)
    free = replace(free, rev=run.rev + 1)
    if follow.ends(run):
        return replace(free, wake_at=now)
    return replace(free, reason=why, wake_at=follow.by_start(run, now + OFFER_CHECK, now))


def lease_until(run: Run, now: Instant) -> Instant | None:
    """When the lease of a worker's run expires after a report at ``now``; None for other targets."""
    return now + heartbeat_of(run) if is_pulled(run) else None


def still_open(schedule_state: ScheduleState, run: Run) -> list[Write]:
    """The conditions under which the run may still start: a concurrent close of its schedule or backfill wins (C13)."""
    modes = tuple(mode for mode in get_args(states.Mode) if states.may_start(run.kind, mode, run.backfill))
    backfill = [ExpectBackfillRunning(run.schedule, run.backfill)] if run.backfill is not None else []
    return [ExpectMode(schedule_state, modes), *backfill]


def withdrawn(run: Run) -> list[Write]:
    """The write that deletes the offer of a run that ends before a worker claimed it; none if it is not on offer."""
    return [Delete(offer_of(run))] if is_offered(run) else []


@dataclass(frozen=True, slots=True)
class Holder:
    """The state of a lease: held by this worker, over because this worker reported the end, or lost; and ``why``."""

    state: Literal["held", "over", "lost"]
    why: Why = NONE


def holder(run: Run | None, lease: LeaseId, worker: str, later: Run | None = None) -> Holder:
    """Whether ``worker`` still holds a lease. ``later`` is the latest attempt of the same run."""
    if run is None:
        return Holder("lost", plain("the run no longer exists"))
    if run.lease == lease.number and run.target_id == worker:
        if not states.is_terminal(run.state):
            return Holder("held")
        if run.outcome != "lost" and run.lease_until is None:
            return Holder("over", plain(f"attempt {run.attempt} is {run.state}"))
    if later is not None and later.attempt > run.attempt:
        ended = f"attempt {run.attempt} ended as {run.state} at {_at(run)}; "
        return Holder("lost", plain(ended, _why_lost(later)))
    return Holder("lost", _why_lost(run))


def lost(run: Run) -> Why:
    """The reason of an attempt whose worker was lost: ``lost: worker w1 has sent no heartbeat since <instant>``."""
    last = (run.lease_until or run.claimed_at) - heartbeat_of(run)
    return Why.of("worker_lost", f"lost: worker {run.target_id} has sent no heartbeat since {iso(last)}")


def is_expired(run: Run, now: Instant) -> bool:
    return run.lease_until is not None and run.lease_until <= now


def is_unbegun(run: Run, now: Instant) -> bool:
    """Whether a lease has expired before its worker said that the work has begun, so that the run is offered again."""
    return is_pulled(run) and run.state == "STARTING" and run.lease < MAX_LEASES and is_expired(run, now)


def unbegun(run: Run) -> Why:
    """The reason of a run that is offered again because its worker has not begun it."""
    return Why.of("worker_lost", f"offered again: worker {run.target_id} claimed it and sent no heartbeat")


def _why_lost(run: Run) -> Why:
    """Who holds an attempt now, or how it ended."""
    attempt = f"attempt {run.attempt}"
    if states.is_terminal(run.state):
        return joined([f"{attempt} ended as {run.state} at {_at(run)}", run.reason], ": ")
    if run.target_id is None:
        return plain(f"{attempt} waits in pool {pool_of(run)}" if is_pulled(run) else "the run has no worker")
    return plain(f"{attempt} is held by {run.target_id} under lease {lease_of(run)}")


def _at(run: Run) -> str:
    return iso(run.ended_at) if run.ended_at is not None else "an unknown instant"
