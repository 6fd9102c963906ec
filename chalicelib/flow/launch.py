"""launch: carry out a run row that is STARTING. Record the call, make it, record the answer; any of it repeatably."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chalicelib.core import claim, data, launch, states
from chalicelib.core.calendar import Instant
from chalicelib.core.complete import News
from chalicelib.core.launch import Never, Started
from chalicelib.core.rows import HISTORY, Gate, Pointer, Run
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import Put, Replace, Write
from chalicelib.flow import complete as completing
from chalicelib.flow import facts
from chalicelib.flow.context import build, events_of, partition_of
from chalicelib.log import logger
from chalicelib.ports import MOST_RACES, Ports, Target


def start(ports: Ports, run_id: str, attempt: int) -> None:
    """Start a run that has not started yet, if its schedule's gate is still open (C13). Safe to repeat at any point."""
    now = ports.clock.now()
    run = ports.runs.run(run_id, attempt)
    if run is None or run.state != "STARTING" or run.target_id is not None:
        return
    leased = run.lease_until is not None and run.lease_until > now
    if leased and not run.unknown_answer:
        return  # a call is under way, or died within its lease
    gate = ports.catalog.gate(run.schedule)
    if run.cancel or not _is_open(gate, run):
        if leased:
            return  # an unanswered call may still arrive: whether it did is asked when it no longer can
        _withdraw(ports, run, now)
        return
    run = _as_updated(ports, run, gate)
    context = build(ports, run)
    ports.payloads.put_context(run_id, context)
    called = replace(launch.calling(run, now), partition=partition_of(run, events_of(ports, run)))
    if ports.ledger.commit([Replace(called)]) is not None:
        return
    # Read once more, now that the call is on record: so whoever closes the gate finds every call that may still pass.
    again = ports.catalog.gate(run.schedule)
    if not _is_open(again, run):
        _take_back(ports, run, called, now)
    elif _as_updated(ports, run, again) == run:
        _call(ports, called, context, now)
    elif ports.ledger.commit([Replace(_uncalled(run, called))]) is None:
        start(ports, run_id, attempt)  # an update came in between, and has been acknowledged


def _call(ports: Ports, run: Run, context: Mapping[str, Any], now: Instant) -> None:
    answer = target_of(ports, run).start(run, context)
    logger.info("start requested", extra={"run": run.run_id, "attempt": run.attempt, "answer": str(answer)})
    if isinstance(answer, Never) and run.unknown_answer:
        # An earlier call was never answered, and may be what is running: its slot is not given away unasked.
        found = target_of(ports, run).find(run)
        answer = Started(found) if found is not None else answer
    if isinstance(answer, Never):
        # It can never succeed, so no other attempt follows (C12).
        completing.advance_run(ports, run.run_id, run.attempt, News("FAILED", now, answer.why), may_retry=False)
    elif isinstance(answer, Started) and answer.done:
        news = News("SUCCEEDED", now, target_id=answer.target_id)
        completing.advance_run(ports, run.run_id, run.attempt, news, may_retry=False)
    else:
        _keep(ports, run, answer, now)


def _keep(ports: Ports, run: Run, answer: launch.Answer, now: Instant) -> None:
    """Record the answer. The run may have moved on already: its RUNNING event can come before we know its id."""
    if isinstance(answer, Never):
        raise TypeError("expected an answer that leaves the run STARTING")
    for _ in range(MOST_RACES):
        after = launch.answered(run, answer, now)
        plan: list[Write] = [Replace(after)]
        if isinstance(answer, Started):
            plan.append(Put(_pointer(run, answer.target_id)))
        if ports.ledger.commit(plan) is None:
            if (after.cancel or not isinstance(answer, Started)) and after.wake_at is not None:
                ports.hints.send([Ref("run", (run.run_id, f"{run.attempt:03d}"))], after.wake_at, now)
            return
        current = ports.runs.run(run.run_id, run.attempt)
        if current is None or current.state != "STARTING" or current.target_id is not None:
            return
        run = current


def _as_updated(ports: Ports, run: Run, gate: Gate | None) -> Run:
    """An update that carried the job along holds for its run too, while that has surely not started (C13). A run-now
    and a retry keep what they were given."""
    if gate is None or gate.version == run.version or run.kind in ("run_now", "retry"):
        return run
    schedule, workflow = facts.definition_of(ports, gate), facts.workflow_of(ports, run.workflow)
    if schedule is None or workflow is None or schedule.workflow != run.workflow or not launch.surely_not_started(run):
        return run
    properties = claim.properties_of(workflow, schedule, {})
    request = replace(run.request, properties=properties, data=data.told(schedule))
    return replace(run, version=gate.version, request=request)


def _uncalled(before: Run, called: Run) -> Run:
    """The run without the call that was recorded and is not made."""
    return replace(before, partition=called.partition, rev=called.rev + 1)


def _take_back(ports: Ports, before: Run, called: Run, now: Instant) -> None:
    """The gate closed between the record of a call and the call: it is not made, and surely so."""
    uncalled = _uncalled(before, called)
    if ports.ledger.commit([Replace(uncalled)]) is None:
        _withdraw(ports, uncalled, now)


def _withdraw(ports: Ports, run: Run, now: Instant) -> None:
    """The gate closed after the claim: no further start. The slot is given back only if surely nothing runs."""
    why = run.reason if run.cancel else "the schedule was disabled, replaced or deleted before the run was started"
    if not launch.surely_not_started(run):
        found = target_of(ports, run).find(run)
        if found is not None:
            _cancel_found(ports, run, found, now)
            return
        why += "; no run of this name was found at the target"
    # A later attempt ends a run that did start: it has FAILED, and those who wait for that must hear it.
    news = News("CANCELLED" if run.cancel else "ABORTED" if run.attempt == 1 else "FAILED", now, why)
    completing.advance_run(ports, run.run_id, run.attempt, news, may_retry=False)


def _cancel_found(ports: Ports, run: Run, target_id: str, now: Instant) -> None:
    """It did start, unheard: record it and that it is to end. Its slot comes back when the target says that it has."""
    closed = "the schedule was closed while its start call was unanswered; the run was found alive and is cancelled"
    why = run.reason if run.cancel else closed
    found = replace(
        run, target_id=target_id, cancel=True, reason=why, lease_until=None, leases=0, rev=run.rev + 1, wake_at=now
    )
    if ports.ledger.commit([Replace(found), Put(_pointer(found, target_id))]) is None:
        completing.cancel(ports, found)


def target_of(ports: Ports, run: Run) -> Target:
    return ports.targets.of(str(run.request.target["type"]))


def _pointer(run: Run, target_id: str) -> Pointer:
    return Pointer(target_id, run.run_id, run.attempt, run.expires_at or run.claimed_at + HISTORY)


def _is_open(gate: Gate | None, run: Run) -> bool:
    return gate is not None and gate.generation == run.generation and states.may_start(run.kind, gate.mode)
