"""check: look at one job, decide, and act: claim it, deliver it, queue it, let it wait, or take it out on record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.core import check, complete, emit, launch, lines, triggers
from chalicelib.core.calendar import Instant
from chalicelib.core.check import (
    Abort,
    Coalesce,
    Decision,
    Drop,
    Facts,
    Ghost,
    Launch,
    Wait,
)
from chalicelib.core.complete import News
from chalicelib.core.lines import LineState, Pace, Route
from chalicelib.core.rows import GATHERING, HISTORY, Job, Record, RecordKind, Subscription
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import Put, Replace, TakeOut, Write
from chalicelib.flow import facts as facts_of
from chalicelib.flow import launch as launching
from chalicelib.flow.apply import MOST_RACES, apply_event
from chalicelib.flow.deliver import deliver
from chalicelib.log import logger
from chalicelib.ports import Ports

Ended = Literal["gone", "launched", "delivered", "queued", "waiting", "dropped", "aborted", "coalesced", "applied"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check did, and why: the sentence that the log carries."""

    ended: Ended
    why: str = ""


def check_job(ports: Ports, place: tuple[str, int, str], turn: str | None = None) -> Outcome:
    """Look at a job until something is settled. ``turn`` names the line whose queue serves it. Losing a race is
    ordinary: the job is read and decided again."""
    for _ in range(MOST_RACES):
        now = ports.clock.now()
        job = ports.jobs.job(*place)
        if job is None or job.closed:
            return Outcome("gone")  # what lies under a tombstone is the drain's to take off
        facts = facts_of.gather(ports, job)
        if _is_event(job, facts, now):
            return _apply_fire(ports, job, facts, now)
        decision = check.decide(job, facts, now, turn)
        outcome = _act(ports, job, facts, decision, now, turn)
        if outcome is not None:
            logger.info("checked", extra={"job": job.job_id, "outcome": outcome.ended, "why": outcome.why})
            return outcome
    raise RuntimeError(f"the check of {place} lost {MOST_RACES} races; the sweep will find it again")


def _act(ports: Ports, job: Job, facts: Facts, decision: Decision, now: Instant, turn: str | None) -> Outcome | None:
    """Carry a decision out; None if somebody else was faster."""
    match decision:
        case Launch():
            return _launch(ports, job, facts, decision, now, turn)
        case Wait():
            return _wait(ports, job, decision)
        case Ghost():
            return _settled(ports, launch.forget(job, _held(ports, job), now), "gone", decision.why)
        case Coalesce():
            record = record_of(job, "COALESCED", decision.why, now)
            return _settled(ports, [TakeOut(job), Put(record)], "coalesced", decision.why)
        case Abort():
            return take_off(ports, job, "ABORTED", decision.why, now)
        case Drop():
            return take_off(ports, job, "DROPPED", decision.why, now)


def take_off(ports: Ports, job: Job, kind: RecordKind, why: str, now: Instant) -> Outcome | None:
    """Out with a job, on record, giving back what it holds. A retry that goes leaves its run FAILED, and announced."""
    held = _held(ports, job)
    plan: list[Write] = launch.drop(job, record_of(job, kind, why, now), held, now)
    if job.kind == "retry":
        run = ports.runs.run(job.job_id, job.attempt - 1)
        news = News("FAILED", now, f"{run.reason if run else ''}; not attempted again: {why}")
        step = complete.advance(run, news, now, None) if run else None
        plan = [write for write in plan if not isinstance(write, Put)]
        plan += [Replace(step.run)] if step else []
    outcome = _settled(ports, plan, "aborted" if kind == "ABORTED" else "dropped", why)
    if outcome is not None:
        woken = [Ref("line", (line,)) for line, state in held.items() if state.waiters]
        if job.kind == "retry":
            woken.append(Ref("run", (job.job_id, str(job.attempt - 1))))
        if woken:
            ports.hints.send(woken, now, now)
    return outcome


def _launch(ports: Ports, job: Job, facts: Facts, decision: Launch, now: Instant, turn: str | None) -> Outcome | None:
    if job.kind == "fire" and facts.workflow is not None and not facts.workflow.target.has_lifecycle:
        refused = deliver(ports, job, facts, decision.why, now)
        return Outcome("delivered", decision.why) if refused is None else Outcome("waiting", refused)
    route = lines.route(decision.asks, job.held, facts.lines, now, turn)
    if route.blocked is not None:
        why = lines.why(route.blocked, facts.line(route.blocked.line))
        if route.blocked.line == job.waits_at:
            return Outcome("waiting", why)
        return _queue(ports, job, facts, route, now, why)
    permits = (*job.held, *(ask.line for ask in route.take))
    ready = replace(job, reason=decision.why, event=emit.fire_event(job) if job.kind == "fire" else job.event)
    run = launch.build_run(ready, facts, permits, ports.payloads.context_uri(job.job_id), now)
    if ports.ledger.commit(launch.claim(job, run, facts, route, now)) is not None:
        return None
    launching.start(ports, run.run_id, run.attempt)
    return Outcome("launched", decision.why)


def _queue(ports: Ports, job: Job, facts: Facts, route: Route, now: Instant, why: str) -> Outcome | None:
    """Into the queue of the line that blocks. A slot's end wakes it; a pace, the instant of its next permit."""
    outcome = _settled(ports, launch.queue(job, facts, route, now), "queued", why)
    state = facts.line(route.blocked.line) if route.blocked else None
    # Only the first to queue sets the instant, and hints it: a hint per waiter would be a hint per waiter and permit.
    first = state is not None and (state.waiters == 0 or state.wake_at is None)
    if outcome is not None and state is not None and first and isinstance(route.blocked, Pace):
        look = lines.next_look(route.blocked, state, now)
        ports.hints.send([Ref("line", (route.blocked.line,))], look, now)
    return outcome


def _wait(ports: Ports, job: Job, decision: Wait) -> Outcome | None:
    same = (job.wake_at, job.state, job.reason) == (decision.until, decision.state, decision.why)
    later = replace(job, wake_at=decision.until, state=decision.state, reason=decision.why, rev=job.rev + 1, leases=0)
    # A prepared fire waits for its second and keeps its row as it is: writing it again would cost the hottest path.
    if same or (job.due_at is not None and job.due_at == decision.until):
        return Outcome("waiting", decision.why)
    return _settled(ports, [Replace(later)], "waiting", decision.why)


def _held(ports: Ports, job: Job) -> dict[str, LineState]:
    return {line: ports.jobs.line(line) for line in job.held}


def _settled(ports: Ports, plan: list[Write], ended: Ended, why: str) -> Outcome | None:
    return Outcome(ended, why) if ports.ledger.commit(plan) is None else None


def _is_event(job: Job, facts: Facts, now: Instant) -> bool:
    """A due fire of a trigger with more than one leaf is no job by itself: it is an event for the gathering job."""
    due = job.kind == "fire" and job.place != GATHERING and (job.due_at or 0) <= now
    schedule, gate = facts.schedule, facts.gate
    current = gate is not None and gate.generation == job.generation and gate.mode == "enabled"
    return due and current and schedule is not None and not triggers.is_single_time(schedule.trigger)


def _apply_fire(ports: Ports, job: Job, facts: Facts, now: Instant) -> Outcome:
    event = emit.fire_event(job)
    gate = facts.gate
    if gate is None or job.leaf is None:
        raise ValueError("expected a fire with its leaf and an open gate")
    leaf = Subscription(event.key, job.schedule, job.generation, gate.version, job.leaf, since=0)
    ref = apply_event(ports, event, [leaf], now, along=[TakeOut(job)])
    if ports.jobs.job(job.schedule, job.generation, job.place) is not None and ports.catalog.gate(job.schedule) == gate:
        ports.ledger.commit([TakeOut(job)])  # its event had been applied before: a ghost
    if ref is not None:
        ports.hints.send([ref], now, now)
    return Outcome("applied", f"fire of {event.instant} counted")


def record_of(job: Job, kind: RecordKind, why: str, now: Instant) -> Record:
    """What is kept of a job that becomes no run."""
    return Record(
        id=job.job_id,
        kind=kind,
        schedule=job.schedule,
        generation=job.generation,
        reason=why,
        recorded_at=now,
        created_at=job.created_at,
        expires_at=now + HISTORY,
    )
