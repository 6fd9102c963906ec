"""The decision of the step *check*: may this job launch, must it wait, or is it over? Always with the reason why.

`decide` is a pure function of the job, the facts and ``now``. Its reasons are stored with the job and shown by API,
CLI and logs; ``why`` calls it again on the facts of the moment, so the words are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chalicelib.core import lines, triggers
from chalicelib.core.calendar import Instant, Millis, iso, spell_duration
from chalicelib.core.constraints import Concurrency
from chalicelib.core.lines import Ask, LineState, Pace, Slots
from chalicelib.core.model import EmrServerlessTarget, Schedule, Workflow
from chalicelib.core.rows import Gate, Job, Mode
from chalicelib.core.states import JobState

# Which jobs may be claimed from a schedule in which mode (DESIGN section 3).
CLAIMABLE: dict[str, tuple[Mode, ...]] = {
    "gathering": ("enabled",),
    "fire": ("enabled",),
    "retry": ("enabled",),
    "run_now": ("enabled", "disabled"),
}


@dataclass(frozen=True, slots=True)
class StartRate:
    """What an EMR Serverless application allows: a start every ``spacing`` ms, ``burst`` at once (E8)."""

    application_id: str
    spacing: Millis
    burst: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the decision about a job depends on, read beforehand."""

    gate: Gate | None
    schedule: Schedule | None
    workflow: Workflow | None
    start_rate: StartRate
    gathering: Job | None = None
    already: str | None = None
    lines: Mapping[str, LineState] = field(default_factory=dict)

    def line(self, name: str) -> LineState:
        return self.lines.get(name) or LineState(name)


@dataclass(frozen=True, slots=True)
class Launch:
    """Claim it now, with a permit of each of these lines."""

    asks: tuple[Ask, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before ``until`` (None: an event or a line will wake it)."""

    until: Instant | None
    state: JobState
    why: str


@dataclass(frozen=True, slots=True)
class Abort:
    """A condition is not met and the schedule says not to wait: out, on record."""

    why: str


@dataclass(frozen=True, slots=True)
class Drop:
    """The schedule is no longer what it was when the job came: out, on record."""

    why: str


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Another job of the schedule is waiting already: this fire is added to it, on record (C11)."""

    why: str


@dataclass(frozen=True, slots=True)
class Ghost:
    """It has run, or has its record: a stalled writer brought it back. Away with it."""

    why: str


Decision = Launch | Wait | Abort | Drop | Coalesce | Ghost


def decide(job: Job, facts: Facts, now: Instant, turn: str | None = None) -> Decision:
    """What is to become of a job. ``turn`` names the line whose queue serves it at this moment, if one does."""
    if job.due_at is not None and job.due_at > now:
        return Wait(job.due_at, job.state, f"is due at {iso(job.due_at)}")
    if facts.already is not None:
        return Ghost(f"has {facts.already} already")
    gone = _not_claimable(job, facts)
    if gone:
        return Drop(gone)
    schedule, workflow = facts.schedule, facts.workflow
    if schedule is None or workflow is None:
        return Abort(f"workflow {schedule.workflow if schedule else 'unknown'} does not exist any more")
    if job.kind == "fire" and facts.gathering is not None and facts.gathering.place != job.place:
        if facts.gathering.job_id == job.job_id:
            return Ghost("waits already: a stalled emitter wrote it again")
        return Coalesce(f"joined job {facts.gathering.job_id}, which was still waiting")
    return _decide_open(job, facts, schedule, workflow, now, turn)


def _decide_open(
    job: Job, facts: Facts, schedule: Schedule, workflow: Workflow, now: Instant, turn: str | None
) -> Decision:
    deadline = deadline_of(job, schedule)
    late = deadline is not None and now >= deadline
    forced = late and schedule.timeout != "never" and schedule.timeout.then == "run"
    verdict = triggers.evaluate(schedule.trigger, job.leaves) if job.kind == "gathering" else None
    if late and not forced:
        span = spell_duration(schedule.timeout_millis or 0)
        return Abort(f"not launched within its timeout of {span}: {job.reason or 'it was not looked at in time'}")
    if verdict is not None and not verdict.met and not forced:
        return Wait(deadline, "PENDING_TRIGGER", verdict.why)
    asks = asks_of(schedule, workflow, facts.start_rate)
    if not forced:
        unmet = _unmet_abort(job, facts, schedule, asks)
        if unmet:
            return Abort(unmet)
    if job.waits_at is not None and job.waits_at != turn:
        waiting = next((ask for ask in asks if ask.line == job.waits_at), None)
        if waiting is not None:
            until = None if forced else deadline
            return Wait(until, "PENDING_LAUNCH", lines.why(waiting, facts.line(waiting.line)))
    why = f"run anyway after its timeout: {job.reason}" if forced else (verdict.why if verdict else "due")
    return Launch(asks, why)


def asks_of(schedule: Schedule, workflow: Workflow, rate: StartRate) -> tuple[Ask, ...]:
    """The lines that a job of this schedule goes through, in their order. A target without a lifecycle needs none."""
    if not workflow.target.has_lifecycle:
        return ()
    limits = [constraint.max for constraint in schedule.constraints if isinstance(constraint, Concurrency)]
    asks: list[Ask] = [Slots(lines.workflow_line(schedule.workflow), min(limits, default=None))]
    if isinstance(workflow.target, EmrServerlessTarget):
        application = workflow.target.application_id or rate.application_id
        asks.append(Pace(lines.emr_line(application), rate.spacing, rate.burst))
    return lines.in_order(tuple(asks))


def deadline_of(job: Job, schedule: Schedule) -> Instant | None:
    """When the job's timeout ends; a retry has none, for its run was launched in time."""
    span = schedule.timeout_millis
    return None if span is None or job.kind == "retry" else job.created_at + span


def _not_claimable(job: Job, facts: Facts) -> str | None:
    gate = facts.gate
    if gate is None or gate.mode == "deleted":
        return "the schedule was deleted"
    if gate.generation != job.generation:
        return "the schedule was replaced or enabled anew since"
    if gate.mode not in CLAIMABLE[job.kind]:
        return f"the schedule was {gate.mode}"
    return "the schedule was disabled" if job.closed else None


def _unmet_abort(job: Job, facts: Facts, schedule: Schedule, asks: tuple[Ask, ...]) -> str | None:
    """The first constraint that is unmet and says abort. A retry waits instead, and so does whoever queues already."""
    aborting = [c.max for c in schedule.constraints if isinstance(c, Concurrency) and c.on_unmet == "abort"]
    if not aborting or job.kind == "retry" or job.waits_at is not None:
        return None
    for ask in asks:
        state = facts.line(ask.line)
        # Each constraint is asked for its own limit: one that waits at 1 does not make one abort that allows 5.
        if isinstance(ask, Slots) and ask.line not in job.held and state.active >= min(aborting):
            return f"concurrency of {lines.spell(ask.line)} is not met: {state.active} of {min(aborting)} in use"
    return None
