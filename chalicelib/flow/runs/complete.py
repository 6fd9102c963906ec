"""Apply an update to a run: move it forward, release its permits and announce its status, each exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chalicelib.core import ids, results, states
from chalicelib.core.dags import rounds
from chalicelib.core.definitions import overrides
from chalicelib.core.events import build
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.limits.names import returns_permit
from chalicelib.core.rows import kinds
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.ref import limit_ref, ref_of
from chalicelib.core.rows.run import Pointer, Run
from chalicelib.core.rows.schedule import Failures, ScheduleState
from chalicelib.core.runs import complete, costs, follow, metrics
from chalicelib.core.runs.complete import Advance
from chalicelib.core.schedules import lifecycle
from chalicelib.core.states import FailureKind
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import NOT_GIVEN, NOT_YET_GIVEN, RunUpdate, StateChange
from chalicelib.core.text import count_of
from chalicelib.core.writes import Create, Replace
from chalicelib.flow import lookup, wake
from chalicelib.flow.definitions.target_roles import adapter_of_begun
from chalicelib.flow.ingest.apply import apply_to_all
from chalicelib.flow.limits import pools, queues
from chalicelib.flow.notices import notices
from chalicelib.flow.runs import failures, products
from chalicelib.log import logger, run_fields
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

SHOWN: Millis = 2 * MINUTE  # after its end, a run is shown by its target, which may be eventually consistent
PAGE = 200  # subscriptions; the run row stores the cursor after each page


def on_state_change(ports: Ports, change: StateChange) -> str:
    """Apply a state change of a target. Returns what was done, in words.

    A late, repeated or lost change affects the instant at which the run moves, and never how the run ends (W7).
    """
    update = change.update
    if update is None:
        return f"state {change.state} changes nothing"
    found = _run_of(ports, change)
    if found is None:
        return f"{change.target_id} of {change.kind} was not started by Sluice"
    run_id, attempt = found
    if states.is_terminal(update.state) and not change.complete:
        update = _with_details(ports, run_id, attempt, update)
    moved = advance_run(ports, run_id, attempt, update)
    return f"run {run_id} is {moved.run.state}" if moved else f"run {run_id} is already past {update.state}"


def advance_run(
    ports: Ports, run_id: str, attempt: int, update: RunUpdate, may_retry: bool = True, again: bool = False
) -> Advance | None:  # fmt: skip
    """Move a run forward, announce its status, and wake the queues of the permits that it releases.

    ``again``: another attempt follows at once, regardless of the retries, because this one was never started. Returns
    None if the update changes nothing, and raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    for conflicts in range(MAX_CONFLICTS):
        now = ports.clock.now()
        run = ports.rows.get(Run, run_id, attempt)
        if run is None:
            return None
        run = queues.regained(ports, run) if conflicts else run
        step = _step(ports, run, update, now, may_retry, again)
        if step is None:
            return None
        skipped = [status for status in complete.newly_announced(run, step) if not is_awaited(ports, step.run, status)]
        step = complete.drop_statuses(step, skipped, now)
        step, produced = products.of_step(ports, step, now)
        limit_states = {name: ports.jobs.limit_state(name) for name in run.permits} if step.ended else {}
        if ports.ledger.commit([*complete.plan(run, step, limit_states, now), *map(Create, produced)]) is None:
            _follow(ports, run, step, limit_states, now, produced)
            if _add_awaited(ports, step.run, skipped) or step.run.announce:
                announce(ports, run_id, attempt)
            return step
    raise too_many_conflicts(f"an update of run {run_id}", "the run will be polled again")


def _step(ports: Ports, run: Run, update: RunUpdate, now: Instant, may_retry: bool, again: bool) -> Advance | None:
    """How an update moves a run, with the job of its next attempt; None if it changes nothing."""
    if again:
        run = replace(run, attempts=max(run.attempts, run.attempt + 1))
    update = _with_stored_result(ports, run, update)
    verdict = complete.interpret(run, update)
    delay = _retry_delay(ports, run, verdict.outcome) if may_retry and verdict.state == "FAILED" else None
    step = complete.advance(run, update, now, 0 if again else delay)
    if step is None or _is_announced(run):
        return step
    return Advance(complete.without_announcement(step.run), step.retry if again else None)


def _with_stored_result(ports: Ports, run: Run, update: RunUpdate) -> RunUpdate:
    """The update with the result that the program of a run has written into the control bucket, if it succeeded."""
    if update.state != "SUCCEEDED" or states.is_terminal(run.state) or not registry.of_run(run).stores_result:
        return update
    found = ports.payloads.result(run.run_id, run.attempt, results.MAX_READ)
    return update if found is None else replace(update, result=results.of_text(found))


def _is_announced(run: Run) -> bool:
    """Whether something may wait for the status of a run. Of a run that is delivered, only the nodes of its DAG and the
    DAG run may."""
    return registry.of_run(run).has_lifecycle or rounds.which(run.correlation) is not None


def _follow(
    ports: Ports,
    before: Run,
    step: Advance,
    limit_states: Mapping[str, LimitState],
    now: Instant,
    produced: Sequence[products.Produced],
) -> None:
    """Measure a run that has moved, and wake what waits for the permits, the job and the data that it leaves."""
    logger.info("run moved", extra={**run_fields(before), "state": step.run.state, "why": step.run.reason.text})
    _measure_cost(ports, before, step.run)
    woken = [limit_ref(name) for name, state in limit_states.items() if state.waiters and returns_permit(name)]
    woken += [ref for row in produced if (ref := kinds.ref_of(kinds.key_of(row))) is not None]
    if before.backfill is not None and step.final:
        woken.append(kinds.ref(Backfill, before.schedule, before.backfill))
    if woken:
        ports.hints.send(woken, now, now)
    pools.serve_shares(ports, [name for name, state in limit_states.items() if not state.waiters], now)
    if step.retry is not None:
        ports.hints.send([ref_of(step.retry)], step.retry.due_at or now, now)


def is_awaited(ports: Ports, run: Run, status: str) -> bool:
    """Whether something follows a status of a run: a schedule waits for it, or an incident ends with it (W9); or for
    its end a join rule of its DAG, or the DAG run."""
    if status == build.ENDED:
        if run.element is not None:
            return True
        from chalicelib.flow.runs import dag_ends, joins  # few runs are those of nodes

        return joins.follow(ports, run.schedule) or dag_ends.is_awaited(ports, rounds.decides(run.correlation))
    if status == build.RECOVERED:
        return notices.may_recover(ports, run)
    return bool(ports.catalog.subscriptions(build.status_event(run, status).key, 1, None).items)


def _add_awaited(ports: Ports, run: Run, skipped: Sequence[str]) -> bool:
    """Add the dropped statuses for which a schedule has subscribed since. Returns whether there are such statuses.

    A schedule may subscribe between the read of the index and the write that dropped the status. Whether the status
    counts for that schedule is decided by their instants, as for any other event.
    """
    late = [status for status in skipped if status not in build.OF_NO_EVENT and is_awaited(ports, run, status)]
    for _ in range(MAX_CONFLICTS if late else 0):
        current = ports.rows.get(Run, run.run_id, run.attempt)
        if current is None:
            return False
        if ports.ledger.commit([Replace(complete.add_statuses(current, late, ports.clock.now()))]) is None:
            return True
    return False


def announce(ports: Ports, run_id: str, attempt: int) -> None:
    """Apply the run's statuses that are not yet announced to the schedules that wait for them, page by page (T10). The
    run is read again for each page: another invocation may have announced it."""
    while True:
        now = ports.clock.now()
        run = ports.rows.get(Run, run_id, attempt)
        if run is None or not run.announce:
            return
        if run.announce[0] == build.ENDED:
            _settle(ports, run)
            ports.ledger.commit([Replace(complete.mark_announced(run, None, now))])
            continue
        if run.announce[0] == build.RECOVERED:
            due = notices.of_success(ports, run, now)
            if ports.ledger.commit([Replace(complete.mark_announced(run, None, now)), *due]) is None:
                notices.hint(ports, due)
            continue
        if run.announce[0] == "FAILED":
            _hold_failing(ports, run)
        event = build.status_event(run, run.announce[0])
        page = ports.catalog.subscriptions(event.key, PAGE, run.cursor)
        begun_by = complete.start_of(run, page.items)
        start = ports.rows.get(Run, begun_by, 1) if begun_by is not None else None
        apply_to_all(ports, event, complete.followers_of(run, page.items, start), now)
        # A conflict means that the run moved on, or that another invocation announced the same page: read it again.
        notices_due = (
            notices.of_run(ports, run, "failed", now) if run.announce[0] == "FAILED" and not page.cursor else []
        )
        if ports.ledger.commit([Replace(complete.mark_announced(run, page.cursor, now)), *notices_due]) is None:
            notices.hint(ports, notices_due)


def _settle(ports: Ports, run: Run) -> None:
    """Start the nodes whose join rules the end of a node meets, and end the DAG run with its last node; or count the
    end of an element of a node."""
    if run.element is not None:
        from chalicelib.flow.runs import element_ends

        element_ends.on_end(ports, run)
        return
    round_ = rounds.decides(run.correlation)
    if round_ is not None:
        from chalicelib.flow.runs import joins

        end_dag_run(ports, joins.settle(ports, round_.dag_run))


def end_dag_run(ports: Ports, end: tuple[Run, RunUpdate] | None) -> None:
    """End the start of a DAG run whose last node has ended, if `joins.settle` says so."""
    if end is not None:
        advance_run(ports, end[0].run_id, end[0].attempt, end[1])


def _hold_failing(ports: Ports, run: Run) -> None:
    """Hold the schedule of a failed run if ``pause_after`` of its runs have failed in a row. A user has to resume it.

    Called before the failure is announced. The announcement is an outbox, so a crash on the way repeats this step too.
    """
    if run.pause_after is None:
        return
    for _ in range(MAX_CONFLICTS):
        count = ports.rows.get(Failures, run.schedule)
        failed = count.count if count is not None else 0
        schedule_state = ports.rows.get(ScheduleState, run.schedule)
        if (
            failed < run.pause_after
            or schedule_state is None
            or schedule_state.mode != "enabled"
            or schedule_state.generation != run.generation
        ):
            return
        _, schedule = lookup.existing(ports, run.schedule)
        reason = f"{count_of(failed, 'run')} failed in a row; the last one was {run.run_id}"
        _, plan = lifecycle.pause(
            schedule_state, schedule, "hold", stop=False, now=ports.clock.now(), by="sluice", reason=reason
        )
        if ports.ledger.commit(plan) is None:
            wake.all_of(ports, run.schedule)
            logger.warning("schedule held", extra={"schedule": run.schedule, "why": reason})
            return


def ingest_status(ports: Ports, run: Run, update: RunUpdate | None) -> None:
    """Apply the answer of a target about a run. If the answer changes nothing, set the next poll."""
    now = ports.clock.now()
    moved = advance_run(ports, run.run_id, run.attempt, update) if update else None
    if moved is None:
        later = replace(run, wake_at=follow.next_poll(run, now), leases=0, rev=run.rev + 1)
        ports.ledger.commit([Replace(later)])


def check_ended(ports: Ports, run: Run) -> None:
    """Check the bill of a finished run at its target (H1), and the error of a failed one in its log, if that is due.

    A failed call counts as a check, so a failing service gets no further calls. A conflict leaves the check to the
    sweep.
    """
    if not costs.is_due(run, ports.clock.now()):
        return
    told: Run = run
    billed: Sequence[int] = ()
    try:
        told = failures.with_reason(ports, run)
        update = adapter_of_begun(ports, run).status(run) if costs.lacks_bill(run) else None
        billed = update.billed if update is not None else ()
    except Exception:
        logger.exception("bill or log not available", extra={"run": run.run_id})
    later = costs.checked(told, billed, ports.clock.now())
    if ports.ledger.commit([Replace(later)]) is None:
        _measure_cost(ports, run, later)


def _measure_cost(ports: Ports, before: Run, after: Run) -> None:
    """Add the cost of a run to the metrics when its bill first becomes known."""
    bill = costs.bill_of(after, ports.settings.prices)
    if bill is not None and any(after.billed) and not any(before.billed):
        ports.metrics.add(metrics.RUN_COST, bill[1])


def _run_of(ports: Ports, change: StateChange) -> tuple[str, int] | None:
    """The run and attempt of a state change, or None. They are found by the pointer, or else by the run's name, because
    the event can arrive before Sluice has stored the target's id. Anybody who may start something in the account can
    give it the name of any run, so a name counts only for a run of this target and this place, without another id."""
    found = ports.rows.get(Pointer, change.target_id)
    if found is not None:
        return found.run_id, found.attempt
    name = change.run_name
    if not name and not registry.of_type(change.kind).needs_role:
        name = ports.targets.of(change.kind).run_name(change.target_id)
    named = ids.attempt_named(name or "")
    run = ports.rows.get(Run, *named) if named is not None else None
    if run is None or run.target_kind != change.kind or run.target_id not in (None, change.target_id):
        return None
    place = registry.of_run(run).place_of(run.request.target)
    return named if place is not None and place == change.place else None


def _with_details(ports: Ports, run_id: str, attempt: int, update: RunUpdate) -> RunUpdate:
    """The update with the failure reason, the billed usage and the result, which a poll of the target returns. EMR's
    events contain no reason and no bill (H1), and those of Step Functions no large output."""
    run = ports.rows.get(Run, run_id, attempt)
    if run is None or states.is_terminal(run.state):
        return update
    known = replace(run, target_id=update.target_id)
    needs_result = update.state == "SUCCEEDED" and not registry.of_run(run).stores_result
    try:
        details = adapter_of_begun(ports, run).status(known)
    except Exception:
        if update.state == "FAILED" or needs_result:
            raise  # the retry policy may depend on the reason, a branch on the result; the event is delivered again
        logger.exception("run details not available", extra={"run": run_id})  # a success does not wait for its bill
        return update
    if needs_result and _is_behind(details, update, ports.clock.now()):
        what = "throttles" if details is None else "does not show its end yet"
        raise RuntimeError(f"the target of run {run_id} {what}; its event is delivered again, and gives the result")
    if details is None:  # throttled: schedules that wait for the end of the run do not wait for its details
        return replace(update, reason=update.reason or (NOT_YET_GIVEN if update.state == "FAILED" else ""))
    if update.state == "SUCCEEDED" and details.outcome == "lost":
        return update
    reason = details.reason or update.reason or (NOT_GIVEN if update.state == "FAILED" else "")
    # The event says that the run has ended, so it is not lost.
    outcome = details.outcome if details.outcome != "lost" else update.outcome
    update = replace(update, reason=reason, outcome=outcome, billed=details.billed)
    return replace(update, started_at=details.started_at, result=details.result)


def _is_behind(details: RunUpdate | None, success: RunUpdate, now: Instant) -> bool:
    """Whether a poll lacks the result of a run that has succeeded by its event: it has no answer, or an earlier state.
    A run that its target still does not know after a while may be deleted, and succeeds without a result."""
    if details is not None and details.outcome == "lost":
        return now - success.at < SHOWN
    return details is None or not states.is_terminal(details.state)


def _retry_delay(ports: Ports, run: Run, outcome: FailureKind) -> int | None:
    """The delay in ms before the next attempt; None if ``outcome`` is not retried, or if the schedule's mode,
    generation or backfill no longer allows it."""
    schedule_state = ports.rows.get(ScheduleState, run.schedule)
    if (
        schedule_state is None
        or schedule_state.generation != run.generation
        or schedule_state.mode not in states.claimable("retry", run.backfill)
    ):
        return None
    if run.backfill is not None and not lookup.goes_on(ports, run.schedule, run.backfill):
        return None
    schedule, workflow = lookup.definition_of(ports, schedule_state), lookup.workflow_of(ports, run.workflow)
    if schedule is None or workflow is None:
        return None
    retries = overrides.retries_of(schedule, workflow)
    return retries.delay_after(run.attempt, run.run_id) if outcome in retries.on else None
