"""The decision of the step *complete*: what news about a run makes of it, and of the permits that it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from chalicelib.core import states
from chalicelib.core.events import build
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.limits import returns
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import HISTORY, Failures
from chalicelib.core.runs import costs, dead_letters, follow, queued, workers
from chalicelib.core.states import Outcome, RunState
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import CountFailure, Create, Put, Replace, WakeBackfill, Write


@dataclass(frozen=True, slots=True)
class Advance:
    """The run after the news, and the job of its next attempt if there is to be one."""

    run: Run
    retry: Job | None = None

    @property
    def ended(self) -> bool:
        return states.is_terminal(self.run.state)

    @property
    def final(self) -> bool:
        """Whether no other attempt follows."""
        return self.ended and self.retry is None


def advance(run: Run, update: RunUpdate, now: Instant, retry_delay: Millis | None) -> Advance | None:
    """The next state of a run, or None for old news. ``retry_delay`` None: no other attempt may follow."""
    if _is_outdated(run, update, now):
        return None
    expired = _expired(run, update)
    update = interpret(run, update)
    state = update.state
    retry: Job | None = None
    if state == "FAILED" and retry_delay is not None and run.attempt < run.attempts and not run.cancel:
        state, retry = "RETRYING", _retry(run, update.reason, now + retry_delay)
    if not states.may_move(run.state, state):
        return None
    moved = replace(
        run,
        state=state,
        rev=run.rev + 1,
        target_id=run.target_id or update.target_id,
        reason=_reason(run, state, update),
        state_at=now,
        lease_until=expired,
        leases=0,
        queued_in=None,
        rank=None,
        outcome=_outcome_of(run, state, update),
        metrics=update.metrics or run.metrics,
        # What is told while it runs is not all of it.
        billed=update.billed if states.is_terminal(state) and update.billed else run.billed,
    )
    if state == "RUNNING":
        moved = replace(moved, started_at=update.at, running_seen_at=now, lease_until=workers.lease_until(run, now))
    else:
        # A retry that is dropped makes its run FAILED; the attempt has ended long before.
        moved = replace(moved, ended_at=update.at if run.ended_at is None else run.ended_at)
        if run.started_at is None and update.started_at is not None:
            moved = replace(moved, started_at=update.started_at)
        if state == "SUCCEEDED" and run.state == "STARTING":
            # Its start was never told; whoever waits for STARTED still gets it, before COMPLETED.
            begun = update.started_at if update.started_at is not None else update.at
            moved = replace(moved, started_at=begun, running_seen_at=now, announce=(*run.announce, "STARTED"))
    # Only what is over passes away: a run that lives on, however long, keeps its row and with it its permits. A failed
    # attempt lives on in the next one, whose claim makes it final (`superseded`).
    over = states.is_terminal(state) and retry is None
    moved = replace(moved, announce=build.announced(moved), expires_at=now + HISTORY if over else None)
    return Advance(replace(moved, wake_at=wake_of(moved, now)), retry)


def superseded(run: Run, now: Instant) -> Run:
    """A failed attempt whose next one has become a run: nothing changes it any more."""
    return replace(run, expires_at=now + HISTORY, rev=run.rev + 1)


def interpret(run: Run, update: RunUpdate) -> RunUpdate:
    """News as it counts. Who was cancelled for running too long has failed, for that reason (W12); also who was so by
    EMR, which knows the limit, because nobody here was there to do it."""
    unheard = run.state == "STARTING" and update.started_at is not None
    ran = replace(run, state="RUNNING", started_at=update.started_at) if unheard else run
    if update.state == "CANCELLED" and follow.has_run_out(ran, update.at):
        run = follow.timed_out(run, update.at)
    state = follow.counts_as(run, update.state)
    if run.outcome == "timed_out" and state == "FAILED" and not states.is_terminal(run.state):
        return replace(update, state=state, reason=run.reason, outcome="timed_out")
    return replace(update, state=state)


def _reason(run: Run, state: RunState, update: RunUpdate) -> str:
    """Why its end was wanted comes before what the target says of it, and does without that."""
    if not run.cancel or (state != "CANCELLED" and update.reason) or run.reason in update.reason:
        return update.reason
    return "; ".join(why for why in (run.reason, update.reason) if why)


def _outcome_of(run: Run, state: RunState, update: RunUpdate) -> Outcome | None:
    """What a run keeps of how it failed: nothing if it did so by itself, which its state says already."""
    if state == "SUCCEEDED":
        return None
    return run.outcome or (update.outcome if update.outcome != "failed" else None)


def _expired(run: Run, update: RunUpdate) -> Instant | None:
    """That its worker was not heard of any more stays with an attempt, whatever else is the reason of its end: a report
    that comes after all is late."""
    lost = update.outcome == "lost" and workers.is_pulled(run)
    return run.lease_until if lost or states.is_terminal(run.state) else None


def _is_outdated(run: Run, update: RunUpdate, now: Instant) -> bool:
    """What was said of a lease that is another's by now, of a death from which a heartbeat came in between, or of a run
    at the target that has this one's name and is not it: whoever clones a run gets that. A target may also go on with
    an attempt that has ended, if people ask it to; the next attempt stands for the run by then."""
    if run.target_id is not None and update.target_id not in (None, run.target_id):
        return True
    if run.state == "RETRYING" and update.target_id is not None:
        return True
    if update.lease is not None and (update.lease != run.lease or run.target_id is None):
        return True
    return update.outcome == "lost" and workers.is_pulled(run) and not workers.is_expired(run, now)


def plan(before: Run, step: Advance, limit_states: Mapping[str, LimitState], now: Instant) -> list[Write]:
    """One transaction: the run moves on, its permits come back when it ended, its next attempt is queued."""
    writes: list[Write] = [Replace(step.run), *queued.leave(before), *workers.withdrawn(before)]
    if step.ended and not states.is_terminal(before.state):
        writes += returns.give_back(before.permits, limit_states, now, step.run)
    if step.retry is not None:
        writes.append(Create(step.retry))
    if step.run.backfill is not None and step.final:
        writes.append(WakeBackfill(step.run.schedule, step.run.backfill, now))
    letter = dead_letters.of(step.run, now)
    return [*writes, *_tally(step.run), *([Put(letter)] if letter else [])]


def _tally(run: Run) -> list[Write]:
    """How many runs of the schedule have failed in a row, if it is to be held for that (L19)."""
    if run.pause_after is None or run.state not in ("SUCCEEDED", "FAILED"):
        return []
    return [CountFailure(run.schedule) if run.state == "FAILED" else Put(Failures(run.schedule, 0))]


def mark_announced(run: Run, cursor: str | None, now: Instant) -> Run:
    """The run after its first announcement has reached every schedule, or (with a cursor) those of a page."""
    if cursor is not None:
        return replace(run, cursor=cursor, rev=run.rev + 1)
    rest = replace(run, announce=run.announce[1:], cursor=None, rev=run.rev + 1, leases=0)
    return replace(rest, wake_at=wake_of(rest, now))


def newly_announced(before: Run, step: Advance) -> tuple[str, ...]:
    """The statuses that a step adds to those still to be told, and that need not be told if nobody waits for them. A
    failure is told always: it may be the one that holds its schedule (L19)."""
    added = step.run.announce[len(before.announce) :]
    return tuple(status for status in added if status != "FAILED")


def drop_statuses(step: Advance, unheard: Collection[str], now: Instant) -> Advance:
    """The step without the statuses that nobody waits for: to write them down and off again would be for nothing."""
    run = replace(step.run, announce=tuple(status for status in step.run.announce if status not in unheard))
    return replace(step, run=replace(run, wake_at=wake_of(run, now)))


def add_statuses(run: Run, statuses: Sequence[str], now: Instant) -> Run:
    """The run with statuses that have to be told after all."""
    return replace(run, announce=(*run.announce, *statuses), rev=run.rev + 1, wake_at=now)


def without_announcement(run: Run) -> Run:
    """A target without a lifecycle has no status that others could wait for: its run is over and quiet at once."""
    return replace(run, announce=(), wake_at=None)


def wake_of(run: Run, now: Instant) -> Instant | None:
    """When a run that has been told of wants a look: at once while it owes a status; when it is over, for its bill at
    most."""
    if run.announce:
        return now
    return costs.next_check(run, now) if states.is_terminal(run.state) else follow.next_poll(run, now)


def _retry(run: Run, reason: str, due: Instant) -> Job:
    return Job(
        schedule=run.schedule,
        generation=run.generation,
        sort_key=sort_keys.retry(run.run_id, run.attempt + 1),
        job_id=run.run_id,
        kind="retry",
        state="PENDING_CONSTRAINTS",
        created_at=due,
        due_at=due,
        accepted_at=run.accepted_at,
        correlation=run.correlation,
        properties=run.request.properties,
        attempt=run.attempt + 1,
        event=run.event,
        backfill=run.backfill,
        rerun_of=run.rerun_of,
        priority=run.priority,
        number=run.number,
        reason=f"attempt {run.attempt} of {run.attempts} failed: {reason}",
        wake_at=due,
    )
