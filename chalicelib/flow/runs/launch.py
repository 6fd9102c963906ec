"""Start a run that is STARTING: record the start call, make it, record the answer. Each step can be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chalicelib.core import states
from chalicelib.core.access import grants as grants_rules
from chalicelib.core.constraints.approval import approvals_of
from chalicelib.core.dags import rounds
from chalicelib.core.definitions import data, overrides
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import priority as job_priority
from chalicelib.core.limits import names
from chalicelib.core.limits import permits as limit_permits
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.permits import Pace, PermitRequest
from chalicelib.core.limits.route import Route
from chalicelib.core.limits.writes import DelayPace
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.ref import limit_ref, run_ref
from chalicelib.core.rows.run import Pointer, Run
from chalicelib.core.rows.schedule import HISTORY, ScheduleState
from chalicelib.core.runs import follow as core_follow
from chalicelib.core.runs import launch, metrics, queued, workers
from chalicelib.core.runs.launch import Call, GiveBack, Hold, Leave, Offer, Queue, Seen, Withdraw
from chalicelib.core.targets import registry, retries
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, SearchLimit, Started
from chalicelib.core.targets.retries import Delivery, GiveUp
from chalicelib.core.why import Why
from chalicelib.core.writes import Put, Replace
from chalicelib.flow import grants, lookup
from chalicelib.flow.definitions import allowed, target_roles
from chalicelib.flow.limits import policies, queues
from chalicelib.flow.runs import complete as completing
from chalicelib.flow.runs import follow
from chalicelib.flow.runs.context import build, events_of, partition_of
from chalicelib.log import logger, run_fields
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts


def start(ports: Ports, run_id: str, attempt: int, serving: str | None = None) -> bool:
    """Start a run that has not started, if its schedule still allows that (C13). Safe to repeat at any point.

    ``serving`` names the pace whose queue serves the run. Returns whether the run keeps waiting in that queue, or joins
    one. Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    for conflicts in range(MAX_CONFLICTS):
        run = ports.rows.get(Run, run_id, attempt)
        if run is None or run.state != "STARTING" or run.target_id is not None:
            return False
        if conflicts or run.queued_in != serving:  # the step that serves the queue has just read the waiter
            run = queues.regained(ports, run)
        waits = _start(ports, run, serving)
        if waits is not None:
            return waits
    raise too_many_conflicts(f"the start of run {run_id}", "the sweep will hint the run again")


def _start(ports: Ports, run: Run, serving: str | None) -> bool | None:
    """Try to start the run once. Returns as `start`, or None after a conflict."""
    now = ports.clock.now()
    seen = _seen(ports, run, serving, now)
    match launch.next_step(run, seen, now):
        case Leave(waits, off_queue):
            return _leave_queue(ports, run) if off_queue else waits
        case Withdraw():
            _withdraw(ports, run, now)
            return False
        case Hold(missing):
            _hold(ports, run, grants_rules.waiting_for(missing), now)
            return False
        case GiveBack(writes):
            ports.ledger.commit(writes)
            return None  # whether or not another write came first, the run and the paces have changed
        case Queue(route):
            return _queue(ports, run, route, seen.states, now)
        case Offer(again=True):
            # The offer may be missing after a restore from a backup.
            renewed = Replace(workers.offered_again(run, now))
            return None if ports.ledger.commit([renewed, Put(workers.offer_of(run))]) is not None else False
        case Offer() | Call():
            return _prepare(ports, run, seen)


def _seen(ports: Ports, run: Run, serving: str | None, now: Instant) -> Seen:
    """Read what the start of the run depends on, and no more once a fact decides the step."""
    if launch.is_being_called(run, now):
        return Seen()
    seen = replace(_rights(ports, run), serving=serving)
    if not seen.is_open or seen.missing or launch.waits_elsewhere(run, serving) or workers.is_offered(run):
        return seen
    if not launch.needs_permit(run, now):
        return seen
    paces, states = of_run(ports, run)
    return replace(seen, serving=serving, paces=paces, states=states)


def _rights(ports: Ports, run: Run) -> Seen:
    """Whether its schedule, its backfill and its grants let the run start now."""
    schedule_state = ports.rows.get(ScheduleState, run.schedule)
    if launch.is_to_end(run, ports.clock.now()) or not _is_open(ports, schedule_state, run):
        return Seen(schedule_state)
    return Seen(schedule_state, is_open=True, missing=grants.of_run(ports, run).missing)


def _prepare(ports: Ports, run: Run, seen: Seen) -> bool | None:
    """Build what the target gets, then put the run on offer, or record its call and make it. Returns as `_start`."""
    updated = target_roles.present(ports, as_updated(ports, run, seen.schedule_state))
    unassumed = target_roles.assume(ports, [updated])
    context = build(ports, updated)
    ports.payloads.put_context(run.run_id, context)
    partition = partition_of(updated, () if rounds.without(updated.correlation) else events_of(ports, updated))
    now = ports.clock.now()  # the preparation took time, and the permit is for an instant
    span = launch.span_of(run, seen, now)
    if span is not None and now > span.until:
        return None  # the permit is too old: try again with another
    appointment = span.since if span is not None else now
    if workers.is_pulled(run):
        offered = replace(workers.offered(updated, now), partition=partition)
        return _offer(ports, run, offered, seen, span, appointment)
    called = replace(launch.calling(updated, now), partition=partition)
    if ports.ledger.commit(launch.take_permits(run, called, seen.paces or (), seen.states, appointment)) is not None:
        return None
    return _make_call(ports, updated, called, context, unassumed, span, now)


def _make_call(
    ports: Ports,
    updated: Run,
    called: Run,
    context: Mapping[str, Any],
    unassumed: target_roles.Missing,
    span: launch.Span | None,
    now: Instant,
) -> bool:
    """Make the call that is on record since ``now``, unless the run may not start any more, or what it relies on has
    changed. Returns as `start`."""
    if span is not None:
        ports.clock.wait_until(span.since)
    [why], [refused] = allowed.refusals(ports, [called]), target_roles.instead_of_calls(ports, unassumed, [called])
    refused = Never(why) if why is not None else refused
    # The call is on record; read the schedule state again. So either the request that closes the schedule finds the
    # recorded call, or this read finds the schedule closed.
    rights = _rights(ports, updated)
    newest = target_roles.present(ports, as_updated(ports, updated, rights.schedule_state))
    # Nothing may come between this read of the clock and the call.
    at = ports.clock.now()
    match launch.still_going(updated, rights, newest, span, at):
        case "withdraw":
            uncalled = launch.uncalled(updated, called, None, now)
            if ports.ledger.commit([Replace(uncalled)]) is None:
                _withdraw(ports, uncalled, now)
        case "restart":
            late = span is not None and at > span.until
            why = "the permit is too old" if late else "what it relies on has changed"
            logger.info("start not made", extra={**run_fields(updated), "why": why})
            return _restart(ports, updated, called, span)
        case "call":
            _call(ports, called, context, at, refused)
    return False


def _offer(
    ports: Ports, run: Run, offered: Run, seen: Seen, span: launch.Span | None, appointment: Instant
) -> bool | None:
    """Put a run of workers on offer, at the instant of its permits. Returns as `_start`."""
    if seen.schedule_state is None:
        return None
    if span is not None:
        ports.clock.wait_until(span.since)
        if ports.clock.now() > span.until:
            return None
    permits = launch.take_permits(run, offered, seen.paces or (), seen.states, appointment)
    plan = [*permits, Put(workers.offer_of(offered)), *workers.still_open(seen.schedule_state, run)]
    return None if ports.ledger.commit(plan) is not None else False


def _leave_queue(ports: Ports, run: Run) -> bool | None:
    """Take a run that makes no further call out of its queue, and wake it when its lease ends. Returns None after a
    conflict."""
    if run.queued_in is None or run.lease_until is None:
        return False
    if ports.ledger.commit([Replace(queued.off_queue(run, run.lease_until)), *queued.leave(run)]) is not None:
        return None
    ports.hints.send([run_ref(run.run_id, run.attempt)], run.lease_until, ports.clock.now())
    return False


def _restart(ports: Ports, before: Run, called: Run, span: launch.Span | None) -> bool:
    """Delete the record of a call that was not made, and start again. The run keeps its permits: those that are too old
    by now are given back."""
    for _ in range(MAX_CONFLICTS):
        if ports.ledger.commit([Replace(launch.uncalled(before, called, span, ports.clock.now()))]) is None:
            return start(ports, before.run_id, before.attempt)
        current = ports.rows.get(Run, before.run_id, before.attempt)
        if current is None or current.state != "STARTING" or current.lease_until != called.lease_until:
            return False  # the run has ended, or another invocation makes the call
        called = current  # another write changed the row, for example a request to cancel
    raise too_many_conflicts(f"deleting a call of run {before.run_id}", "retried when its lease expires")


def current(ports: Ports, run: Run) -> tuple[Run, ScheduleState] | None:
    """An offered run with the updates of its schedule, and the schedule state; None if it may no longer start (C13)."""
    schedule_state = ports.rows.get(ScheduleState, run.schedule)
    over = launch.is_to_end(run, ports.clock.now())
    if schedule_state is None or over or not _is_open(ports, schedule_state, run):
        return None
    return as_updated(ports, run, schedule_state), schedule_state


def _queue(ports: Ports, run: Run, route: Route, states: Mapping[str, LimitState], now: Instant) -> bool | None:
    """Queue at the slowest pace for the permits of the next call. A run that waits in the queue of another pace, which
    was the slowest before a change of the policy, moves there. Returns whether the run waits where it did, or where it
    joins first; None after a conflict."""
    limit_name = route.blocked.limit_name if route.blocked is not None else ""
    if run.queued_in is not None and names.whole(run.queued_in) == names.whole(limit_name):
        return True
    if ports.ledger.commit(launch.queue(run, route, states, now)) is not None:
        return None
    ports.hints.send([limit_ref(limit_name)], limit_route.queue_served_at(route, states, now), now)
    return run.queued_in is None


def of_run(ports: Ports, run: Run) -> tuple[tuple[Pace, ...], dict[str, LimitState]]:
    """The paces that a claimed run obeys, slowest last, with their limit states. A deleted policy has no pace."""
    of_target = registry.of_run(run).pace(policies.start_rate(ports))
    paces: list[PermitRequest] = []
    for limit_name in run.permits:
        own = of_target is not None and limit_name == of_target.limit_name
        pace = of_target if own else policies.pace_of(ports, limit_name)[0]
        if pace is not None:
            paces.append(pace)
    return limit_route.paces_of(limit_permits.in_order(tuple(paces))), {
        ask.limit_name: ports.jobs.limit_state(ask.limit_name) for ask in paces
    }


def _call(ports: Ports, run: Run, context: Mapping[str, Any], now: Instant, refused: Never | NotNow | None) -> None:
    """Make the start call and record its answer; ``refused`` is the answer if the target may not be called, or if its
    role has no credentials. The run of a node with elements calls nothing: they begin."""
    if registry.of_run(run).of_elements:
        from chalicelib.flow.runs import elements  # few runs are those of such nodes

        elements.begin(ports, run, now)
        return
    answer = target_roles.adapter(ports, run).start(run, context) if refused is None else refused
    fields = {**run_fields(run), "why": run.fired_by.text, "answer": str(answer)}
    if measured := metrics.start_of(run, run.waited_for, now):
        ports.metrics.add(*measured)
        fields["late_ms"] = measured[1]
    logger.info("start requested", extra=fields)
    if not isinstance(answer, Started) and not registry.of_run(run).has_lifecycle:
        answer = judged(ports, run, answer, now)
    if isinstance(answer, Never) and run.unknown_answer:
        # An earlier call got no answer and may have started a run, so search for that run before releasing the slot.
        found, unsearched = _found(ports, run)
        answer = Started(found) if found is not None else Never(f"{answer.why}{unsearched}")
    if isinstance(answer, Never):
        # No start of this run can succeed, so no other attempt follows (C12).
        update = RunUpdate("FAILED", now, Why.of("target_refused", answer.why))
        completing.advance_run(ports, run.run_id, run.attempt, update, may_retry=False)
    elif isinstance(answer, Started) and (answer.done or answer.running):
        update = RunUpdate(
            "SUCCEEDED" if answer.done else "RUNNING", now, target_id=answer.target_id, result=answer.result
        )
        completing.advance_run(ports, run.run_id, run.attempt, update, may_retry=False)
    else:
        _keep(ports, run, answer, now)


def _keep(ports: Ports, run: Run, answer: NotNow | NoAnswer | Started, now: Instant) -> None:
    """Record an answer that leaves the run STARTING, and what follows from it."""
    holds_back = isinstance(answer, NotNow) and not answer.alone
    if holds_back:
        _hold_back(ports, run, now)
    if isinstance(answer, Started):
        # The pointer is written first and alone: it is true for any state of the run, and a transaction costs double.
        ports.ledger.commit([Put(_pointer(run, answer.target_id, now))])
    after = _answered(ports, run, answer, now)
    if after is None:
        return
    if holds_back and any(names.is_target_pace(limit_name) for limit_name in run.permits):
        start(ports, run.run_id, run.attempt)  # the run queues at once, before less urgent waiters
    elif (after.cancel or not isinstance(answer, Started)) and after.wake_at is not None:
        ports.hints.send([run_ref(run.run_id, run.attempt)], after.wake_at, now)


def _answered(ports: Ports, run: Run, answer: NotNow | NoAnswer | Started, now: Instant) -> Run | None:
    """The run with the answer on record. None if it has moved on: its RUNNING event can arrive before Sluice has stored
    its id."""
    for _ in range(MAX_CONFLICTS):
        after = launch.answered(run, answer, now)
        # The answer may arrive after the call was given up, when the run already queues for the next call.
        left = queued.leave(run) if after.queued_in is None else []
        if ports.ledger.commit([Replace(after), *left]) is None:
            return after
        current = ports.rows.get(Run, run.run_id, run.attempt)
        if current is None or current.state != "STARTING" or current.target_id is not None:
            return None
        if current.lease_until != run.lease_until and not isinstance(answer, Started):
            return None  # another call is on record since, or its answer
        run = current
    return None


def _hold_back(ports: Ports, run: Run, now: Instant) -> None:
    """Delay the pace of a target that throttles by the backoff of this run.

    So no waiter calls the target earlier, waiters keep their order, and this run stays before less urgent ones (E8).
    """
    until = now + retries.backoff(run.calls, run.run_id)
    for pace in of_run(ports, run)[0]:
        if names.is_target_pace(pace.limit_name):
            ports.ledger.commit([DelayPace(pace, until)])


def as_updated(ports: Ports, run: Run, schedule_state: ScheduleState | None) -> Run:
    """The run with the present definition of its schedule, if it has certainly not started (C13).

    That holds after an update that carried the job. A run-now, a retry, a redrive and a backfill keep their request. So
    does a run that needs an approval before the update or after it: nobody has approved of what the update changes.
    """
    if schedule_state is None or schedule_state.version == run.version or run.traits.keeps_request:
        return run
    schedule, workflow = lookup.definition_of(ports, schedule_state), lookup.workflow_of(ports, run.workflow)
    if schedule is None or workflow is None or schedule.workflow != run.workflow or not launch.surely_not_started(run):
        return run
    before = lookup.definition_of(ports, replace(schedule_state, version=run.version))
    if any(approvals_of(overrides.constraints_of(each, workflow)) for each in (before, schedule) if each is not None):
        return run
    properties = overrides.properties_of(workflow, schedule, {})
    request = replace(run.request, properties=properties, data=data.request_data(schedule))
    own = overrides.priority_of(schedule, workflow)
    priority = job_priority.carried(run.priority, overrides.priority_of(before, workflow) if before else own, own)
    return replace(run, version=schedule_state.version, request=request, priority=priority)


def _withdraw(ports: Ports, run: Run, now: Instant) -> None:
    """End a run whose schedule was closed after the claim, or that did not begin in time. Its slot is released only if
    certainly nothing runs."""
    if not run.cancel and launch.is_to_end(run, now):
        _give_up(ports, run, now)
        return
    closed = "its backfill was cancelled, or its schedule" if run.backfill is not None else "the schedule was disabled,"
    before = Why.of("closed_before_start", f"{closed} replaced or deleted before the run was started")
    why = run.reason if run.cancel else before
    found, unsearched = _found(ports, run)
    if found is not None:
        _cancel_found(ports, run, found, now)
        return
    if not launch.surely_not_started(run):
        why = why.then(unsearched or "; no run of this name was found at the target")
    # An earlier attempt did start, so the run ends as FAILED and schedules that wait for that status must get it.
    update = RunUpdate("CANCELLED" if run.cancel else "ABORTED" if run.attempt == 1 else "FAILED", now, why)
    completing.advance_run(ports, run.run_id, run.attempt, update, may_retry=False)


def _give_up(ports: Ports, run: Run, now: Instant) -> None:
    """End an attempt that has not begun in time (W21); its retries decide. A run that a call without an answer has
    started is followed: it may be RUNNING."""
    found, unsearched = _found(ports, run)
    if found is not None:
        _keep(ports, run, Started(found), now)
        ports.hints.send([run_ref(run.run_id, run.attempt)], now, now)
        return
    why = run.reason if core_follow.ends(run) else core_follow.why_not_begun(run)
    update = RunUpdate("FAILED", now, why.then(unsearched), outcome="timed_out")
    completing.advance_run(ports, run.run_id, run.attempt, update, may_retry=not unsearched)


def _hold(ports: Ports, run: Run, why: Why, now: Instant) -> None:
    """End an attempt that was never started because a grant was taken back. Its next attempt is a job, which waits for
    the grant without permits. If an earlier call without an answer has started the run, it goes on: it had the
    grant."""
    found, unsearched = _found(ports, run)
    if found is not None:
        _keep(ports, run, Started(found), now)
        return
    update, again = RunUpdate("FAILED", now, why.then(unsearched)), not unsearched
    completing.advance_run(ports, run.run_id, run.attempt, update, may_retry=again, again=again)


def _found(ports: Ports, run: Run) -> tuple[str | None, str]:
    """The target's id of a run that a call without an answer may have started; None if certainly none did. With None,
    the text may say why the target cannot be searched. Then the run may exist, so no other attempt may follow."""
    if launch.surely_not_started(run):
        return None, ""
    try:
        return target_roles.adapter_of_begun(ports, run).find(run), ""
    except SearchLimit as error:
        return None, f"; it may run at the target all the same, which could not be searched: {error}"


def _cancel_found(ports: Ports, run: Run, target_id: str, now: Instant) -> None:
    """Record a run that did start although its call got no answer, and cancel it. Its slot is released when the target
    reports its end."""
    closed = "the schedule was closed while its start call was unanswered; the run was found and is being cancelled"
    why = run.reason if run.cancel else Why.of("closed_before_start", closed)
    found = replace(run, target_id=target_id, cancel=True, reason=why, lease_until=None, queued_in=None, rank=None)
    found = replace(found, leases=0, rev=run.rev + 1, wake_at=now, state_at=now)
    if ports.ledger.commit([Replace(found), Put(_pointer(found, target_id, now)), *queued.leave(run)]) is None:
        follow.cancel(ports, found)


def _pointer(run: Run, target_id: str, now: Instant) -> Pointer:
    """The row that maps the target's id to the run. It may expire before the run; then the run is found by name."""
    return Pointer(target_id, run.run_id, run.attempt, now + HISTORY)


def _is_open(ports: Ports, schedule_state: ScheduleState | None, run: Run) -> bool:
    """Whether the schedule of a run, and its backfill if it has one, still let the run start."""
    if (
        schedule_state is None
        or schedule_state.generation != run.generation
        or not states.may_start(run.kind, schedule_state.mode, run.backfill)
    ):
        return False
    return run.backfill is None or lookup.goes_on(ports, run.schedule, run.backfill)


def judged(ports: Ports, run: Run, answer: Never | NotNow | NoAnswer, now: Instant) -> Answer:
    """The answer to a claimed run after its delivery policy: with the delay until the next try, or ``Never`` if the
    policy gives up."""
    workflow = lookup.workflow_of(ports, run.workflow)
    policy = workflow.delivery if workflow else Delivery()
    after = retries.next_try(run.calls, answer, policy, run.run_id, now)
    if isinstance(after, GiveUp) or isinstance(answer, Never):
        return Never(after.why)
    return replace(answer, why=after.why, retry_after=after.at - now)
