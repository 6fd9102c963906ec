"""The decisions of the step *complete*: the changes of a run by an update, and the writes that store them.

An update moves a run forward, releases its permits when it ends and announces its status, each exactly once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from chalicelib.core import ids, results, states
from chalicelib.core.changes import replace
from chalicelib.core.dags import rounds
from chalicelib.core.events import build
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.limits import returns
from chalicelib.core.limits.names import workflow_limit
from chalicelib.core.limits.writes import RememberSuccess
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import HISTORY, WAKE, Failures, Subscription
from chalicelib.core.runs import costs, dead_letters, follow, queued, workers
from chalicelib.core.states import FailureKind, RunState
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.why import NONE, UNCLEAR, Why, joined
from chalicelib.core.writes import CountFailure, Create, Put, Replace, WakeBackfill, Write


@dataclass(frozen=True, slots=True)
class Advance:
    """The run after an update, and the job of its next attempt; ``retry`` is None if no other attempt follows."""

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
    """The run after an update, or None if the update is outdated or would move the run backwards.

    ``retry_delay`` is the time in ms until the next attempt; None: no other attempt may follow."""
    if _is_outdated(run, update, now):
        return None
    expired = _expired(run, update)
    update = interpret(run, update)
    state = update.state
    retry: Job | None = None
    if state == "FAILED" and retry_delay is not None and run.attempt < run.attempts and not run.cancel:
        state, retry = "RETRYING", retry_of(run, _said(run, update), now + retry_delay)
    if not states.may_move(run.state, state):
        return None
    result = update.result if state == "SUCCEEDED" else results.NONE
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
        result=result.value,
        result_refused=result.refused,
        # Until a run has ended, its target reports only a part of the final bill.
        billed=update.billed if states.is_terminal(state) and update.billed else run.billed,
    )
    if state == "RUNNING":
        begun = _in_order(run, update.at)
        moved = replace(moved, started_at=begun, running_seen_at=now, lease_until=workers.lease_until(run, now))
    else:
        if run.started_at is None and update.started_at is not None:
            moved = replace(moved, started_at=_in_order(run, update.started_at))
        if state == "SUCCEEDED" and run.state == "STARTING":
            # No update reported the start. Schedules that wait for STARTED still get it, before COMPLETED.
            begun = _in_order(run, update.started_at if update.started_at is not None else update.at)
            moved = replace(moved, started_at=begun, running_seen_at=now, announce=(*run.announce, "STARTED"))
        # If a retry is dropped, its RETRYING run becomes FAILED; the attempt ended earlier and keeps that instant.
        moved = replace(moved, ended_at=_in_order(moved, update.at) if run.ended_at is None else run.ended_at)
    # Only the row of a final attempt expires: an active run keeps its row, and so its permits, however long it runs.
    # A failed attempt with a retry is not final until the retry is claimed (`superseded`).
    over = states.is_terminal(state) and retry is None
    moved = replace(moved, announce=build.announced(moved), expires_at=now + HISTORY if over else None)
    return Advance(replace(moved, wake_at=wake_of(moved, now)), retry)


def _in_order(run: Run, at: Instant) -> Instant:
    """An instant of the target, not before the start request and the start. The target has a clock of its own, and its
    events have whole seconds."""
    return max(at, run.start_requested_at or at, run.started_at or at)


def superseded(run: Run, now: Instant) -> Run:
    """The row of a failed attempt after its next attempt was claimed: it is final, and expires with the history."""
    return replace(run, expires_at=now + HISTORY, rev=run.rev + 1)


def interpret(run: Run, update: RunUpdate) -> RunUpdate:
    """The update with the state that Sluice gives the run. A run that was cancelled because of its timeout has failed,
    for that reason (W12). EMR enforces the same timeout; Sluice treats a run that EMR cancelled for it alike."""
    start_unreported = run.state == "STARTING" and update.started_at is not None
    ran = replace(run, state="RUNNING", started_at=update.started_at) if start_unreported else run
    if update.state == "CANCELLED" and follow.has_run_out(ran, update.at):
        run = follow.timed_out(run, update.at)
    state = follow.counts_as(run, update.state)
    if run.outcome == "timed_out" and state == "FAILED" and not states.is_terminal(run.state):
        return replace(update, state=state, reason=run.reason, outcome="timed_out")
    return replace(update, state=state)


def _reason(run: Run, state: RunState, update: RunUpdate) -> Why:
    """The reason that the row keeps. For a cancelled run, the reason of the cancel comes before that of the target."""
    said = _said(run, update)
    if not run.cancel or (state != "CANCELLED" and update.reason) or said.begins_with(run.reason):
        return said
    return joined([run.reason, said])


def _said(run: Run, update: RunUpdate) -> Why:
    """The reason of an update. The text of a target is read here once, so that later steps know whether it names the
    error or whether the log of the run has to be read for it."""
    if isinstance(update.reason, Why):
        return update.reason
    failed = update.state in ("FAILED", "RETRYING")
    if failed and update.outcome == "failed" and registry.of_run(run).wants_log(update.reason):
        return Why.of(UNCLEAR, update.reason)
    codes = {"FAILED": "target_failed", "CANCELLED": "target_cancelled"}
    return Why.of(codes.get(update.state, "target_reported"), update.reason) if update.reason else NONE


def _outcome_of(run: Run, state: RunState, update: RunUpdate) -> FailureKind | None:
    """How the attempt failed; None for a plain failure, which its state shows already."""
    if state == "SUCCEEDED":
        return None
    return run.outcome or (update.outcome if update.outcome != "failed" else None)


def _expired(run: Run, update: RunUpdate) -> Instant | None:
    """The ``lease_until`` of the run after the update. An attempt whose worker was lost keeps it, however the
    attempt ended: with it, `workers.holder` recognizes a report that arrives afterwards as late."""
    lost = update.outcome == "lost" and workers.is_pulled(run)
    return run.lease_until if lost or states.is_terminal(run.state) else None


def _is_outdated(run: Run, update: RunUpdate, now: Instant) -> bool:
    """Whether to ignore an update. True in four cases. It reports on an earlier lease. It reports a lost worker, but a
    heartbeat has arrived since. It is about another run at the target that has the same name, such as a clone. Or the
    target continues, at a user's request, an attempt that the next attempt has replaced."""
    if run.target_id is not None and update.target_id not in (None, run.target_id):
        return True
    if run.state == "RETRYING" and update.target_id is not None:
        return True
    if update.lease is not None and (update.lease != run.lease or run.target_id is None):
        return True
    return update.outcome == "lost" and workers.is_pulled(run) and not workers.is_expired(run, now)


def plan(before: Run, step: Advance, limit_states: Mapping[str, LimitState], now: Instant) -> list[Write]:
    """The writes of one transaction: store the run, release its permits if it ended, create the job of its retry."""
    writes: list[Write] = [Replace(step.run), *queued.leave(before), *workers.withdrawn(before)]
    if step.ended and not states.is_terminal(before.state):
        writes += returns.give_back(before.permits, limit_states, now, step.run)
        if step.run.state == "SUCCEEDED" and registry.of_run(step.run).of_elements:
            writes.append(RememberSuccess(workflow_limit(step.run.workflow), now))
    if step.retry is not None:
        writes.append(Create(step.retry))
    if step.run.backfill is not None and step.final:
        writes.append(WakeBackfill(step.run.schedule, step.run.backfill, now))
    letter = dead_letters.of(step.run, now)
    return [*writes, *_tally(step.run), *([Put(letter)] if letter else [])]


def _tally(run: Run) -> list[Write]:
    """The write that counts the consecutive failures of a schedule; none if failures do not hold the schedule (L19)."""
    if run.pause_after is None or run.state not in ("SUCCEEDED", "FAILED"):
        return []
    return [CountFailure(run.schedule) if run.state == "FAILED" else Put(Failures(run.schedule, 0))]


def mark_announced(run: Run, cursor: str | None, now: Instant) -> Run:
    """The run after its first status has been applied to all schedules, or (with a cursor) to those of one page."""
    if cursor is not None:
        return replace(run, cursor=cursor, rev=run.rev + 1)
    announced = replace(run, announce=run.announce[1:], cursor=None, rev=run.rev + 1, leases=0)
    return replace(announced, wake_at=wake_of(announced, now))


def newly_announced(before: Run, step: Advance) -> tuple[str, ...]:
    """The statuses that a step adds and that may be dropped if no schedule waits for them. FAILED is not among them:
    it is always announced, because it may be the failure that holds its schedule (L19)."""
    added = step.run.announce[len(before.announce) :]
    return tuple(status for status in added if status != "FAILED")


def drop_statuses(step: Advance, unneeded: Collection[str], now: Instant) -> Advance:
    """The step without the statuses that no schedule waits for, which saves the write that marks them announced."""
    if not unneeded:
        return step
    run = replace(step.run, announce=tuple(status for status in step.run.announce if status not in unneeded))
    return replace(step, run=replace(run, wake_at=wake_of(run, now)))


def add_statuses(run: Run, statuses: Sequence[str], now: Instant) -> Run:
    """The run with further statuses to announce, due at once."""
    return replace(run, announce=(*run.announce, *statuses), rev=run.rev + 1, wake_at=now)


def without_announcement(run: Run) -> Run:
    """The run without statuses to announce. No schedule can wait for the status of a target without a lifecycle."""
    return replace(run, announce=(), wake_at=None)


def wake_of(run: Run, now: Instant) -> Instant | None:
    """The ``wake_at`` of a run after an update. While the run has statuses to announce, it is now. After its end, it is
    the next check of its bill or error, if any. Before its end, it is the next poll."""
    if run.announce:
        return now
    return costs.next_check(run, now) if states.is_terminal(run.state) else follow.next_poll(run, now)


def followers_of(run: Run, rows: Sequence[Subscription], start: Run | None) -> list[Subscription]:
    """The subscriptions to which a status of this run is announced: all of them, for most runs. ``start`` is the run
    that began its DAG run, if `start_of` names one.

    The plan of a re-processing starts what follows its runs, and what follows the nodes of a DAG that it runs. So their
    statuses only wake jobs that wait for a constraint, and start the nodes of their own DAG (L21)."""
    return [row for row in rows if _hears_anyway(run, row)] if is_replayed(run, start) else list(rows)


def is_replayed(run: Run, start: Run | None) -> bool:
    """Whether the plan of a re-processing starts what follows a run. ``start`` is as in `followers_of`."""
    begun_by = (start or run).backfill
    return begun_by is not None and ids.reprocess_of(begun_by) is not None


def start_of(run: Run, rows: Sequence[Subscription]) -> str | None:
    """The id of the run that began the DAG run of a node, if `followers_of` depends on it. That is so if a schedule
    outside the DAG waits for the status. None for a node that a user runs again, whose status counts as always."""
    return None if all(_hears_anyway(run, row) for row in rows) else dag_start_of(run)


def dag_start_of(run: Run) -> str | None:
    """The id of the run that began the DAG run of a node; None for any other run, and for a node that a user runs
    again."""
    value = rounds.which(run.correlation)
    if value is None:
        return None
    round_ = rounds.parse(value)
    return round_.dag_run if round_.number == 1 and not round_.alone and run.rerun_of is None else None


def _hears_anyway(run: Run, row: Subscription) -> bool:
    own = ids.dag_of(run.schedule) if ids.is_of_dag(run.schedule) else None
    return row.leaf == WAKE or (ids.is_of_dag(row.schedule) and ids.dag_of(row.schedule) == own)


def retry_of(run: Run, reason: Why, due: Instant) -> Job:
    """The job of the next attempt of a run that failed."""
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
        requested_by=run.requested_by,
        element=run.element,
        priority=run.priority,
        approvals=run.approvals,
        number=run.number,
        reason=Why.of("attempt_failed", f"attempt {run.attempt} of {run.attempts} failed: ", reason),
        wake_at=due,
    )
