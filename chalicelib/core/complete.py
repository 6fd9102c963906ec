"""The decision of the step *complete*: what news about a run makes of it, and of the permits that it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from chalicelib.core import claim, dead_letters, launch, match, states
from chalicelib.core.calendar import Instant, Millis, duration
from chalicelib.core.lines import LineState
from chalicelib.core.rows import Failures, Job, Run
from chalicelib.core.states import RunState
from chalicelib.core.writes import CountFailure, Create, Put, Replace, WakeBackfill, Write


@dataclass(frozen=True, slots=True)
class News:
    """What is known of a run: the state it reached, when the target says it did, and the reason of a failure.

    ``billed`` is what the target has billed for it, as a run's row keeps it (H1); empty while it does not say.
    """

    state: RunState
    at: Instant
    reason: str = ""
    target_id: str | None = None
    billed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Advance:
    """The run after the news, and the job of its next attempt if there is to be one."""

    run: Run
    retry: Job | None = None

    @property
    def ended(self) -> bool:
        return states.is_terminal(self.run.state)

    @property
    def settled(self) -> bool:
        """Whether no other attempt follows."""
        return self.ended and self.retry is None


def advance(run: Run, news: News, now: Instant, retry_delay: Millis | None) -> Advance | None:
    """The next state of a run, or None for old news. ``retry_delay`` None: no other attempt may follow."""
    state = news.state
    retry: Job | None = None
    if state == "FAILED" and retry_delay is not None and run.attempt < run.attempts and not run.cancel:
        state, retry = "RETRYING", _retry(run, news.reason, now + retry_delay)
    if not states.may_move(run.state, state):
        return None
    moved = replace(
        run,
        state=state,
        rev=run.rev + 1,
        target_id=run.target_id or news.target_id,
        # Why its end was wanted says more than the target's silence about it.
        reason=news.reason or (run.reason if run.cancel else ""),
        moved_at=now,
        lease_until=None,
        leases=0,
        waits_at=None,
        rank=None,
        billed=news.billed or run.billed,
    )
    if state == "RUNNING":
        moved = replace(moved, started_at=news.at, running_at=now)
    else:
        # A retry that is dropped makes its run FAILED; the attempt has ended long before.
        moved = replace(moved, ended_at=news.at if run.ended_at is None else run.ended_at)
        if state == "SUCCEEDED" and run.state == "STARTING":
            # Its start was never told; whoever waits for STARTED still gets it, before COMPLETED.
            moved = replace(moved, started_at=news.at, running_at=now, announce=(*run.announce, "STARTED"))
    moved = replace(moved, announce=match.announced(moved))
    return Advance(replace(moved, wake_at=_wake(moved, now)), retry)


def plan(before: Run, step: Advance, lines: Mapping[str, LineState], now: Instant) -> list[Write]:
    """One transaction: the run moves on, its permits come back when it ended, its next attempt is queued."""
    writes: list[Write] = [Replace(step.run), *launch.leave(before)]
    if step.ended and not states.is_terminal(before.state):
        writes += claim.give_back(before.permits, lines, now, step.run)
    if step.retry is not None:
        writes.append(Create(step.retry))
    if step.run.backfill is not None and step.settled:
        writes.append(WakeBackfill(step.run.schedule, step.run.backfill, now))
    letter = dead_letters.of(step.run, now)
    return [*writes, *_tally(step.run), *([Put(letter)] if letter else [])]


def _tally(run: Run) -> list[Write]:
    """How many runs of the schedule have failed in a row, if it is to be held for that (L19)."""
    if run.pause_after is None or run.state not in ("SUCCEEDED", "FAILED"):
        return []
    return [CountFailure(run.schedule) if run.state == "FAILED" else Put(Failures(run.schedule, 0))]


def told(run: Run, cursor: str | None, now: Instant) -> Run:
    """The run after its first announcement has reached every schedule, or (with a cursor) those of a page."""
    if cursor is not None:
        return replace(run, cursor=cursor, rev=run.rev + 1)
    rest = replace(run, announce=run.announce[1:], cursor=None, rev=run.rev + 1, leases=0)
    return replace(rest, wake_at=_wake(rest, now))


def newly_announced(before: Run, step: Advance) -> tuple[str, ...]:
    """The statuses that a step adds to those still to be told, and that need not be told if nobody waits for them. A
    failure is told always: it may be the one that holds its schedule (L19)."""
    added = step.run.announce[len(before.announce) :]
    return tuple(status for status in added if status != "FAILED")


def unannounced(step: Advance, unheard: Collection[str], now: Instant) -> Advance:
    """The step without the statuses that nobody waits for: to write them down and off again would be for nothing."""
    run = replace(step.run, announce=tuple(status for status in step.run.announce if status not in unheard))
    return replace(step, run=replace(run, wake_at=_wake(run, now)))


def owing(run: Run, statuses: Sequence[str], now: Instant) -> Run:
    """The run with statuses that have to be told after all."""
    return replace(run, announce=(*run.announce, *statuses), rev=run.rev + 1, wake_at=now)


def without_announcement(run: Run) -> Run:
    """A target without a lifecycle has no status that others could wait for: its run is over and quiet at once."""
    return replace(run, announce=(), wake_at=None)


def retry_delay_of(delay: str) -> Millis:
    return duration(delay)


def _wake(run: Run, now: Instant) -> Instant | None:
    if run.announce:
        return now
    return None if states.is_terminal(run.state) else now + launch.SILENT_LATER


def _retry(run: Run, reason: str, due: Instant) -> Job:
    return Job(
        schedule=run.schedule,
        generation=run.generation,
        place=f"RETRY#{run.run_id}#{run.attempt + 1}",
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
        number=run.number,
        reason=f"attempt {run.attempt} of {run.attempts} failed: {reason}",
        wake_at=due,
    )
