"""check: look at one job, decide, and act: claim it, deliver it, queue it, let it wait, or take it out on record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.core import (
    approvals,
    check,
    claim,
    complete,
    conditions,
    emit,
    gather,
    lines,
    measures,
    permits,
    routes,
)
from chalicelib.core.calendar import Instant, Millis
from chalicelib.core.check import (
    Abort,
    Coalesce,
    Decision,
    Drop,
    Expire,
    Ghost,
    Launch,
    MakeRoom,
    Skip,
    Wait,
)
from chalicelib.core.complete import News
from chalicelib.core.constraints import Concurrency
from chalicelib.core.facts import Facts
from chalicelib.core.lines import Ask, LineState
from chalicelib.core.routes import Route
from chalicelib.core.rows import HISTORY, Job, Record, RecordKind
from chalicelib.core.sweep import Ref, ref_of
from chalicelib.core.writes import Put, Replace, TakeOut, WakeBackfill, Write
from chalicelib.flow import cancel, fires, load, notices, probe, urgency, waiting, watches
from chalicelib.flow import facts as facts_of
from chalicelib.flow import launch as launching
from chalicelib.flow.deliver import deliver, put_back
from chalicelib.log import job_fields, logger
from chalicelib.ports import LONGEST_DELAY, MOST_RACES, Ports

# The hint of a line may lie in the queue behind those of a crowd that joins it: then whoever joins serves it (E3).
OVERDUE: Millis = 200
Ended = Literal["gone", "launched", "delivered", "queued", "waiting", "dropped", "aborted", "coalesced", "applied"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check did, and why: the sentence that the log carries. ``overdue`` is a line whose queue the job has
    joined, and which should have been served a while ago. ``same``: a look that changed nothing, so that the log has
    said why already."""

    ended: Ended
    why: str = ""
    overdue: str | None = None
    same: bool = False


def check_job(
    ports: Ports, place: tuple[str, int, str], turn: str | None = None, only: str | None = None
) -> Outcome:  # fmt: skip
    """Look at a job until something is settled. ``turn`` names the line whose queue serves it; the turn is that of the
    job ``only``, which may have made room for another. Losing a race is ordinary: the job is read and decided again."""
    number = 0
    for race in range(MOST_RACES):
        now = ports.clock.now()
        job = ports.jobs.job(*place)
        if job is None or job.closed or only not in (None, job.job_id):
            return Outcome("gone")  # what lies under a tombstone is the drain's to take off
        if race or job.waits_at != turn:  # the server of a queue has just read that row
            job = waiting.regained(ports, job)
        facts = facts_of.gather(ports, job)
        if fires.is_event(job, facts, now):
            return Outcome("applied", fires.apply(ports, job, facts, now))
        watches.begin(ports, job, facts, now)
        job, facts = load.ask(ports, job, facts, now, turn)
        job, facts = probe.ask(ports, job, facts, now, turn)
        decision = check.decide(job, facts, now, turn)
        if race and isinstance(decision, Launch) and (line := claim.wants_number(job, decision.asks)):
            # Many start at once: it takes a number by itself, and no start of another stands in its way again.
            number = number or ports.ledger.number(line)
            job = replace(job, number=number)
        outcome = _act(ports, job, facts, decision, now, turn)
        if outcome is not None:
            _log(job, outcome)
            return outcome
    raise RuntimeError(f"the check of {place} lost {MOST_RACES} races; the sweep will find it again")


def _log(job: Job, outcome: Outcome) -> None:
    """One line for a decision that changed something: a queue is looked at often, and says the same each time."""
    told = {**job_fields(job), "outcome": outcome.ended, "why": outcome.why}
    if outcome.ended in ("launched", "delivered"):
        told["run"] = job.job_id
    (logger.debug if outcome.same else logger.info)("checked", extra=told)


def _act(ports: Ports, job: Job, facts: Facts, decision: Decision, now: Instant, turn: str | None) -> Outcome | None:
    """Carry a decision out; None if somebody else was faster."""
    match decision:
        case Launch():
            return _launch(ports, job, facts, decision, now, turn)
        case Wait():
            return _wait(ports, job, facts, decision, now)
        case Ghost():
            return _settled(ports, claim.forget(job, _held(ports, job), now), "gone", decision.why)
        case Coalesce():
            record = record_of(job, "COALESCED", decision.why, now)
            return _settled(ports, [TakeOut(job), Put(record)], "coalesced", decision.why)
        case MakeRoom():
            _make_room_beside(ports, decision.over, now)
            return None
        case Abort():
            return take_off(ports, job, "ABORTED", decision.why, now, exact=True)
        case Expire():
            return take_off(ports, job, "EXPIRED", decision.why, now, exact=True)
        case Skip():
            return take_off(ports, job, "SKIPPED", decision.why, now)
        case Drop():
            return take_off(ports, job, "DROPPED", decision.why, now)


def take_off(ports: Ports, job: Job, kind: RecordKind, why: str, now: Instant, exact: bool = False) -> Outcome | None:
    """Out with a job, on record, giving back what it holds. A retry that goes leaves its run FAILED, and announced,
    a redrive its dead letter where it was.

    ``exact``: only as it was read, for an event that came meanwhile may have changed what was decided."""
    job = waiting.regained(ports, job)
    held = _held(ports, job)
    if check.is_prepared(job) and (already := facts_of.already(ports, job)) is not None:
        return _settled(ports, claim.forget(job, held, now), "gone", f"has {already} already")
    plan: list[Write] = claim.drop(job, record_of(job, kind, why, now), held, now, exact)
    if job.kind == "retry":
        run = ports.runs.run(job.job_id, job.attempt - 1)
        news = News("FAILED", now, f"{run.reason if run else ''}; not attempted again: {why}")
        step = complete.advance(run, news, now, None) if run else None
        plan = [write for write in plan if not isinstance(write, Put)]
        plan += [Replace(step.run)] if step else []
    elif job.kind == "redrive":
        kept = [write for write in plan if not isinstance(write, Put)]
        plan = [*kept, *put_back(ports, job, why, now)]
    if job.backfill is not None:
        plan.append(WakeBackfill(job.schedule, job.backfill, now))
    notes = notices.of_job(ports, job, "aborted", why, now) if kind == "ABORTED" and job.kind != "retry" else []
    outcome = _settled(ports, [*plan, *notes], "aborted" if kind == "ABORTED" else "dropped", why)
    if outcome is not None:
        notices.hint(ports, notes)
        woken = _to_wake(held)
        if job.backfill is not None:
            woken.append(Ref("backfill", (job.schedule, job.backfill)))
        if job.kind == "retry":
            woken.append(Ref("run", (job.job_id, str(job.attempt - 1))))
        if woken:
            ports.hints.send(woken, now, now)
    return outcome


def _make_room_beside(ports: Ports, over: Job, now: Instant) -> None:
    """A job that has timed out leaves the place in which fires join it. The one that came is decided again."""
    apart = gather.out_of_time(over, now)
    if ports.ledger.commit([TakeOut(over, exact=True), *claim.beside(over, apart)]) is None:
        ports.hints.send([ref_of(apart)], now, now)


def _launch(ports: Ports, job: Job, facts: Facts, decision: Launch, now: Instant, turn: str | None) -> Outcome | None:
    if job.kind == "fire" and not decision.asks and facts.workflow and not facts.workflow.target.has_lifecycle:
        sent = deliver(ports, job, facts, decision.why, now, turn)
        if sent is None:
            return None
        ended, why = sent
        return Outcome("delivered" if ended else "waiting", why)
    route = routes.route(decision.asks, job.held, facts.lines, now, turn)
    if route.blocked is not None:
        why = claim.why_blocked(route, facts)
        if route.blocked.line == job.waits_at:
            _make_room(ports, job, facts, route.blocked)
            return Outcome("waiting", why, same=True)
        return _queue(ports, job, facts, route, now, why)
    taken = tuple(line for line in (*job.held, *(ask.line for ask in route.take)) if not lines.is_turn(line))
    why = f"{decision.why}{approvals.words_of(job.approvals)}"
    ready = replace(job, reason=why, event=emit.fire_event(job) if job.kind == "fire" else job.event)
    paces, route = routes.paces_of(route.take), routes.prepared(route, ports.clock.now())
    units = permits.units_of(route.take, job.units)
    uri = ports.payloads.context_uri(job.job_id)
    made = claim.build_run(ready, facts, taken, uri, now, paces, units, route.appointment)
    run = replace(made, waited_for=claim.waited_for(job, now))
    before = ports.runs.run(job.job_id, job.attempt - 1) if job.kind == "retry" else None
    last: list[Write] = [Replace(complete.superseded(before, now))] if before is not None else []
    if ports.ledger.commit([*claim.claim(job, run, facts, route, now), *last]) is not None:
        return None
    if woken := _to_wake({line: facts.line(line) for line in claim.turns_of(job)}):
        ports.hints.send(woken, now, now)
    launching.start(ports, run.run_id, run.attempt)
    return Outcome("launched", decision.why)


def _queue(ports: Ports, job: Job, facts: Facts, route: Route, now: Instant, why: str) -> Outcome | None:
    """Into the queue of the line that blocks. A slot's end wakes it; a pace, the instant of its next permit."""
    if facts.schedule is not None and facts.workflow is not None:
        job = urgency.lifted(ports, job, facts.schedule, facts.workflow)
    outcome = _settled(ports, claim.queue(job, facts, route, now), "queued", f"{why}{claim.told_lent(job)}")
    if outcome is None or route.blocked is None:
        return outcome
    ports.metrics.add(measures.WAITS_BEGUN, 1, measures.reason_of_line(route.blocked.line))
    state = facts.line(route.blocked.line)
    # Only the first to queue sets the instant, and hints it: a hint per waiter would be a hint per waiter and permit.
    first = state.waiters == 0 or state.wake_at is None
    if first and lines.is_timed(route.blocked):
        look = routes.queue_looks_at(route, facts.lines, now)
        ports.hints.send([Ref("line", (route.blocked.line,))], look, now)
    _make_room(ports, job, facts, route.blocked)
    late = state.waiters > 0 and state.wake_at is not None and now - state.wake_at >= OVERDUE
    return replace(outcome, overdue=state.line) if late else outcome


def _make_room(ports: Ports, job: Job, facts: Facts, blocked: Ask) -> None:
    """`cancel_other`: the older runs that stand in the way are to end; the job waits for that in its queue (C1)."""
    schedule = facts.schedule
    if job.kind in ("retry", "backfill"):
        return  # the runs that came after its first attempt are not the older ones; the past makes no room for itself
    for constraint in schedule.constraints if schedule else ():
        if not isinstance(constraint, Concurrency) or constraint.on_unmet != "cancel_other" or schedule is None:
            continue
        if conditions.line_of(constraint, schedule, job.schedule) == blocked.line:
            why = f"cancelled to make room for job {job.job_id}"
            cancel.oldest(ports, facts.line(blocked.line), constraint.max, why)


def _wait(ports: Ports, job: Job, facts: Facts, decision: Wait, now: Instant) -> Outcome | None:
    """Keep the job until something wakes it: an instant, an event, a line, a resume."""
    same = (job.wake_at, job.state, job.reason) == (decision.until, decision.state, decision.why)
    # A prepared fire waits for its second and keeps its row as it is: writing it again would cost the hottest path.
    if (same and not decision.leaves) or (job.due_at is not None and job.due_at == decision.until):
        return Outcome("waiting", decision.why, same=True)
    unmet = decision.state == "PENDING_TRIGGER"
    tried = decision.until is not None and decision.until == job.retry_at  # it waits for its next try where it is
    met_at = None if unmet else job.met_at if job.met_at is not None else now
    later = replace(
        job, wake_at=decision.until, state=decision.state, reason=decision.why, rev=job.rev + 1, leases=0, met_at=met_at
    )
    if facts.schedule is not None and facts.gate is not None and not unmet and not tried:
        free = replace(job, waits_at=None) if decision.leaves else job
        later = replace(later, place=claim.settled_place(free, facts.schedule, facts.gate))
    held = _held(ports, job) if decision.leaves else {}
    plan = claim.stand_aside(job, later, held, now) if decision.leaves else claim.moved(job, later)
    outcome = _settled(ports, plan, "queued" if decision.leaves else "waiting", decision.why)
    if outcome is not None:
        if decision.reason is not None:
            ports.metrics.add(measures.WAITS_BEGUN, 1, decision.reason)
        refs = [ref_of(later)] if decision.until is not None and decision.until - now <= LONGEST_DELAY else []
        if refs:
            ports.hints.send(refs, decision.until or now, now)
        if woken := _to_wake(held):
            ports.hints.send(woken, now, now)
    return outcome


def _held(ports: Ports, job: Job) -> dict[str, LineState]:
    return {line: ports.jobs.line(line) for line in job.held}


def _to_wake(held: dict[str, LineState]) -> list[Ref]:
    return [Ref("line", (line,)) for line, state in held.items() if state.waiters]


def _settled(ports: Ports, plan: list[Write], ended: Ended, why: str) -> Outcome | None:
    return Outcome(ended, why) if ports.ledger.commit(plan) is None else None


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
