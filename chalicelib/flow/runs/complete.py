"""complete: news about a run moves it forward, gives its permits back and announces its status, each exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.core import states
from chalicelib.core.definitions import overrides
from chalicelib.core.events import build
from chalicelib.core.limits.names import returns_permit
from chalicelib.core.rows.ref import backfill_ref, limit_ref, ref_of
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import complete, costs, follow, metrics
from chalicelib.core.runs.complete import Advance
from chalicelib.core.runs.costs import Usage, cost_usd
from chalicelib.core.states import Outcome
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import RunUpdate, StateChange
from chalicelib.core.writes import Replace
from chalicelib.flow import lookup
from chalicelib.flow.ingest.apply import apply_to_all
from chalicelib.flow.limits import pools, waiting
from chalicelib.flow.notices import notices
from chalicelib.flow.runs.hold import hold_failing
from chalicelib.log import logger, run_fields
from chalicelib.ports import MAX_RACES, Ports

PAGE = 200  # index rows; the cursor on the run row is kept after each page


def on_state_change(ports: Ports, change: StateChange) -> str:
    """Take a state change in. Its order, its repetition and its absence change nothing but the moment (W7)."""
    update = change.update
    if update is None:
        return f"state {change.state} tells nothing new"
    found = _whose(ports, change)
    if found is None:
        return f"{change.target_id} of {change.kind} is not one of ours"
    run_id, attempt = found
    if states.is_terminal(update.state) and not change.complete:
        update = _with_details(ports, run_id, attempt, update)
    moved = advance_run(ports, run_id, attempt, update)
    return f"run {run_id} is {moved.run.state}" if moved else f"run {run_id} was past {update.state} already"


def advance_run(ports: Ports, run_id: str, attempt: int, update: RunUpdate, may_retry: bool = True) -> Advance | None:
    """Move a run forward, then announce it and wake who waited for its permits. None for old news."""
    for race in range(MAX_RACES):
        now = ports.clock.now()
        run = ports.runs.run(run_id, attempt)
        if run is None:
            return None
        run = waiting.regained(ports, run) if race else run
        meant = complete.interpret(run, update)
        delay = _retry_delay(ports, run, meant.outcome) if may_retry and meant.state == "FAILED" else None
        step = complete.advance(run, update, now, delay)
        if step is None:
            return None
        if not registry.of_run(run).has_lifecycle:
            step = Advance(complete.without_announcement(step.run))
        unheard = [status for status in complete.newly_announced(run, step) if not _is_awaited(ports, step.run, status)]
        step = complete.drop_statuses(step, unheard, now) if unheard else step
        limit_states = (
            {limit_name: ports.jobs.limit_state(limit_name) for limit_name in run.permits} if step.ended else {}
        )
        if ports.ledger.commit(complete.plan(run, step, limit_states, now)) is None:
            logger.info("run moved", extra={**run_fields(run), "state": step.run.state, "why": step.run.reason})
            _measure_cost(ports, run, step.run)
            woken = [
                limit_ref(limit_name)
                for limit_name, state in limit_states.items()
                if state.waiters and returns_permit(limit_name)
            ]
            if run.backfill is not None and step.final:
                woken.append(backfill_ref(run.schedule, run.backfill))
            if woken:
                ports.hints.send(woken, now, now)
            pools.serve_shares(
                ports, [limit_name for limit_name, state in limit_states.items() if not state.waiters], now
            )
            if step.retry is not None:
                ports.hints.send([ref_of(step.retry)], step.retry.due_at or now, now)
            if _owe(ports, step.run, unheard) or step.run.announce:
                announce(ports, run_id, attempt)
            return step
    raise RuntimeError(f"run {run_id} lost {MAX_RACES} races; its news will be found again")


def _is_awaited(ports: Ports, run: Run, status: str) -> bool:
    return bool(ports.catalog.subscriptions(build.status_event(run, status).key, 1, None).items)


def _owe(ports: Ports, run: Run, unheard: Sequence[str]) -> bool:
    """Who began to wait for a status between the look and the write that left it out is told of it after all: that it
    counts for them is decided, as ever, by the instants of both. Returns whether there is something to tell."""
    late = [status for status in unheard if _is_awaited(ports, run, status)]
    for _ in range(MAX_RACES if late else 0):
        current = ports.runs.run(run.run_id, run.attempt)
        if current is None:
            return False
        if ports.ledger.commit([Replace(complete.add_statuses(current, late, ports.clock.now()))]) is None:
            return True
    return False


def announce(ports: Ports, run_id: str, attempt: int) -> None:
    """Apply the statuses that a run still owes to every schedule that waits for them, page by page (T10)."""
    while True:
        now = ports.clock.now()
        run = ports.runs.run(run_id, attempt)
        if run is None or not run.announce:
            return
        if run.announce[0] == "FAILED":
            hold_failing(ports, run)
        event = build.status_event(run, run.announce[0])
        page = ports.catalog.subscriptions(event.key, PAGE, run.cursor)
        apply_to_all(ports, event, page.items, now)
        # A refusal means that the run moved on meanwhile, or another told the same: read it again.
        notices_due = (
            notices.of_run(ports, run, "failed", now) if run.announce[0] == "FAILED" and not page.cursor else []
        )
        if ports.ledger.commit([Replace(complete.mark_announced(run, page.cursor, now)), *notices_due]) is None:
            notices.hint(ports, notices_due)


def ingest_status(ports: Ports, run: Run, update: RunUpdate | None) -> None:
    """What a target has answered about a run; without news it is asked again later."""
    now = ports.clock.now()
    moved = advance_run(ports, run.run_id, run.attempt, update) if update else None
    if moved is None:
        later = replace(run, wake_at=follow.next_poll(run, now), leases=0, rev=run.rev + 1)
        ports.ledger.commit([Replace(later)])


def ask_bill(ports: Ports, run: Run) -> None:
    """Ask again what a run that is over was billed, if it is time for that (H1). Whoever does not answer is asked no
    oftener for it; a lost race leaves it to the sweep."""
    if not costs.is_due(run, ports.clock.now()):
        return
    try:
        update = ports.targets.of(run.target_kind).ask(run)
    except Exception:
        logger.exception("no account of a run", extra={"run": run.run_id})
        update = None
    later = costs.checked(run, update.billed if update is not None else (), ports.clock.now())
    if ports.ledger.commit([Replace(later)]) is None:
        _measure_cost(ports, run, later)


def _measure_cost(ports: Ports, before: Run, after: Run) -> None:
    """What a run has cost, once its bill is known."""
    usage = Usage.of(after.billed)
    if usage is not None and any(after.billed) and not any(before.billed):
        ports.metrics.add(metrics.RUN_COST, cost_usd(usage, ports.settings.prices))


def _whose(ports: Ports, change: StateChange) -> tuple[str, int] | None:
    """The run and attempt: by the pointer, or by the name when the event was faster than our record of the id."""
    found = ports.runs.by_target_id(change.target_id)
    if found is not None:
        return found
    name = change.run_name or ports.targets.of(change.kind).run_name(change.target_id)
    run_id, _, attempt = (name or "").rpartition("-")
    return (run_id, int(attempt)) if run_id and attempt.isdigit() else None


def _with_details(ports: Ports, run_id: str, attempt: int, update: RunUpdate) -> RunUpdate:
    """The reason of a failure and what a run has cost stand in no event; the target is asked for them (H1)."""
    run = ports.runs.run(run_id, attempt)
    if run is None or states.is_terminal(run.state):
        return update
    known = replace(run, target_id=update.target_id)
    try:
        told = ports.targets.of(run.target_kind).ask(known)
    except Exception:
        if update.state == "FAILED":
            raise  # whether it is tried again may hang on the reason: the event is delivered again
        logger.exception("no account of a run", extra={"run": run_id})  # its success does not wait for its bill
        return update
    if told is None:  # asked too often; whoever waits for its end does not wait for the account of it
        return replace(update, reason="the target has not said why: see its log" if update.state == "FAILED" else "")
    reason = told.reason or ("the target gave no reason" if update.state == "FAILED" else "")
    return replace(update, reason=reason, billed=told.billed, started_at=told.started_at)


def _retry_delay(ports: Ports, run: Run, outcome: Outcome) -> int | None:
    """How long to wait before the next attempt; None if none follows such an end, or the schedule is not as it was."""
    schedule_state = ports.catalog.schedule_state(run.schedule)
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
