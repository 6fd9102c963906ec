"""The decisions of the step *launch*: the plans that claim a job or queue it, and what each answer to a start means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chalicelib.core import ids, lines
from chalicelib.core.calendar import MINUTE, SECOND, Instant, Millis
from chalicelib.core.check import CLAIMABLE, Facts
from chalicelib.core.lines import Ask, LineState, Route, Waiter
from chalicelib.core.model import DEFAULT_PRIORITY, Schedule, Workflow
from chalicelib.core.rows import GATHERING, HISTORY, Gate, Job, Record, Run, StartRequest
from chalicelib.core.writes import (
    Create,
    GateIs,
    GiveBack,
    JoinLine,
    LeaveLine,
    NoneGathering,
    Put,
    Remove,
    Replace,
    TakeOut,
    TakePermit,
    Write,
)

# Longer than the start call's own timeout (botocore: 60 s to connect and read), so that a call under way is over.
CALL_LEASE: Millis = 2 * MINUTE
# A run whose state event never came is asked about after this long, then ever less often.
SILENT_FIRST: Millis = 2 * MINUTE
SILENT_LATER: Millis = 10 * MINUTE


def build_run(job: Job, facts: Facts, permits: tuple[str, ...], context_uri: str, now: Instant) -> Run:
    """The run that a job becomes: its outbox, with exactly the start request that every call will carry."""
    gate, schedule, workflow = _complete(facts)
    properties = {**workflow.properties, **schedule.properties, **job.properties}
    request = StartRequest(
        target=workflow.target.model_dump(mode="json"),
        properties=properties,
        context_uri=context_uri,
        client_token=ids.client_token(job.job_id, job.attempt),
        name=f"{job.job_id}-{job.attempt}"[-256:],
    )
    return Run(
        run_id=job.job_id,
        attempt=job.attempt,
        schedule=gate.schedule,
        generation=gate.generation,
        workflow=schedule.workflow,
        state="STARTING",
        request=request,
        permits=permits,
        fired_by=job.reason or job.kind,
        claimed_at=now,
        created_at=job.created_at,
        priority=priority_of(schedule, workflow),
        attempts=workflow.retries.attempts if workflow.target.has_lifecycle else 1,
        kind=job.kind,
        nominal_at=job.event.instant if job.event and job.event.kind == "time" else None,
        accepted_at=job.accepted_at,
        correlation=job.correlation,
        partition=job.correlation,
        event=job.event,
        wake_at=now,
        expires_at=now + HISTORY,
    )


def claim(job: Job, run: Run, facts: Facts, route: Route, now: Instant) -> list[Write]:
    """One transaction: the job out, the run in, permits taken, the gate open for this generation and version."""
    gate, _, _ = _complete(facts)
    plan: list[Write] = [TakeOut(job), Create(run), GateIs(gate, CLAIMABLE[job.kind])]
    if job.kind == "fire" and job.place != GATHERING:
        plan.append(NoneGathering(job.schedule, job.generation))
    return [*plan, *_permits(route.take, job, facts.lines, now), *_leave(job, taken=route.take)]


def queue(job: Job, facts: Facts, route: Route, now: Instant) -> list[Write]:
    """One transaction: the permits before the line that blocks are held, the job queues there, counted as a waiter."""
    gate, schedule, workflow = _complete(facts)
    blocked = route.blocked
    if blocked is None:
        raise ValueError("expected a route that is blocked, got one that is free")
    state = facts.line(blocked.line)
    deadline = job.created_at + schedule.timeout_millis if schedule.timeout_millis and job.kind != "retry" else None
    place = lines.rank(priority_of(schedule, workflow), None, job.created_at, job.job_id)
    waiting = replace(
        job,
        place=GATHERING if job.kind == "fire" else job.place,
        state="PENDING_LAUNCH",
        held=(*job.held, *(ask.line for ask in route.take)),
        waits_at=blocked.line,
        rank=place,
        reason=lines.why(blocked, state),
        rev=job.rev + 1,
        wake_at=deadline,
    )
    waiter = Waiter(blocked.line, place, waiting.schedule, waiting.generation, waiting.place, waiting.job_id)
    moved = waiting.place != job.place
    # A fire that must wait becomes the gathering job, so that later fires coalesce with it.
    stored: list[Write] = [TakeOut(job), Create(replace(waiting, rev=1))] if moved else [Replace(waiting)]
    return [
        *stored,
        GateIs(gate, CLAIMABLE[job.kind]),
        *_permits(route.take, job, facts.lines, now),
        *_leave(job, taken=route.take),
        JoinLine(blocked, now, lines.next_look(blocked, state, now)),
        Create(waiter),
    ]


def drop(job: Job, record: Record, held: Mapping[str, LineState], now: Instant) -> list[Write]:
    """One transaction: the job out with its record, its place in a queue given up, what it held given back."""
    out, *rest = forget(job, held, now)
    return [out, Put(record), *rest]


def forget(job: Job, held: Mapping[str, LineState], now: Instant) -> list[Write]:
    """The same without a record, for a job that has one already, or has run."""
    return [TakeOut(job), *_leave(job, taken=()), *give_back(job.held, held, now)]


def give_back(permits: tuple[str, ...], states: Mapping[str, LineState], now: Instant) -> list[Write]:
    """Give slots back; where somebody waits, the very same write wakes the queue."""
    slots = [line for line in permits if lines.gives_back(line)]
    return [GiveBack(line, now if (states.get(line) or LineState(line)).waiters > 0 else None) for line in slots]


def priority_of(schedule: Schedule, workflow: Workflow) -> int:
    if schedule.priority is not None:
        return schedule.priority
    return workflow.priority if workflow.priority is not None else DEFAULT_PRIORITY


@dataclass(frozen=True, slots=True)
class Started:
    """The target took it. ``target_id`` is its own id of the run; ``done`` says that there is nothing to follow."""

    target_id: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class NotNow:
    """The target refused for the moment (throttled, at capacity): surely not started."""

    why: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing is known: it may have started."""

    why: str


@dataclass(frozen=True, slots=True)
class Never:
    """The target refused for good: this request can never succeed."""

    why: str


Answer = Started | NotNow | NoAnswer | Never


def calling(run: Run, now: Instant) -> Run:
    """The run as it is recorded before a start call: one call more, and a lease that outlives it."""
    lease = now + CALL_LEASE
    first = run.start_requested_at if run.start_requested_at is not None else now
    return replace(
        run,
        calls=run.calls + 1,
        lease_until=lease,
        # A lease that was never answered is a call whose caller died: it may have started the run.
        unknown_answer=run.unknown_answer or run.lease_until is not None,
        start_requested_at=first,
        rev=run.rev + 1,
        wake_at=lease,
    )


def answered(run: Run, answer: NotNow | NoAnswer | Started, now: Instant) -> Run:
    """The run after an answer that leaves it STARTING."""
    later = replace(run, rev=run.rev + 1, leases=0)
    if isinstance(answer, Started):
        return replace(later, target_id=answer.target_id, lease_until=None, reason="", wake_at=now + SILENT_FIRST)
    delay = backoff(run.calls, run.run_id)
    if isinstance(answer, NotNow):
        return replace(later, lease_until=None, reason=answer.why, wake_at=now + delay)
    # Unknown sticks, whatever later calls say: the token makes a repeat harmless, giving the slot away would not be.
    return replace(later, unknown_answer=True, reason=answer.why, wake_at=now + delay)


def backoff(tries: int, salt: str) -> Millis:
    """Exponential, 1 s to 5 min, with a jitter computed from the id: a crowd refused together comes back apart."""
    span: int = min(SECOND * 2 ** min(tries, 9), 5 * MINUTE)
    jitter = int(ids.digest(salt, tries, length=4), 16) / 0xFFFF
    return round(span * (0.5 + jitter / 2))


def surely_not_started(run: Run) -> bool:
    """Whether no start call can have succeeded: none was made, or each one was answered with a refusal."""
    return not run.unknown_answer and run.target_id is None and run.lease_until is None


def _permits(take: tuple[Ask, ...], job: Job, states: Mapping[str, LineState], now: Instant) -> list[Write]:
    return [
        TakePermit(ask, now, (states.get(ask.line) or LineState(ask.line)).head, ask.line == job.waits_at)
        for ask in take
    ]


def _leave(job: Job, taken: tuple[Ask, ...]) -> list[Write]:
    """Give up the place in the queue. Taking the permit there counts the waiter down in the same write."""
    if job.waits_at is None or job.rank is None:
        return []
    gone = Remove(Waiter(job.waits_at, job.rank, job.schedule, job.generation, job.place, job.job_id))
    served = any(ask.line == job.waits_at for ask in taken)
    return [gone] if served else [gone, LeaveLine(job.waits_at)]


def _complete(facts: Facts) -> tuple[Gate, Schedule, Workflow]:
    if facts.gate is None or facts.schedule is None or facts.workflow is None:
        raise ValueError("expected complete facts: a job without gate, schedule or workflow is dropped before")
    return facts.gate, facts.schedule, facts.workflow
