"""How each constraint of a job stands at a moment: met or not, why, and when time alone would meet it (C1-C8, C14-C16).

Pure, of the job, the facts and ``now``. `core/jobs/check.py` decides by it, and ``why`` shows it: the same words.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.constraints import approval, probe
from chalicelib.core.constraints import constraint as constraint_constraint
from chalicelib.core.constraints import load as constraint_load
from chalicelib.core.constraints.constraint import (
    AnyConstraint,
    Approval,
    Concurrency,
    Delay,
    Fresh,
    Load,
    Probe,
    Rate,
    SinceLastRun,
    TimeWindow,
)
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import Instant, duration, iso
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import names, rate_window, slots
from chalicelib.core.limits.slots import Slots
from chalicelib.core.rows.job import Job
from chalicelib.core.time import windows


@dataclass(frozen=True, slots=True)
class Condition:
    """One constraint as it stands. ``until``: when the passing of time alone meets it, if it can, or when to ask again.
    ``abort``: it says by itself that waiting is in vain. ``open``: a probe that is yet to be asked; it decides nothing.
    """

    constraint: AnyConstraint
    met: bool
    why: str
    until: Instant | None = None
    abort: bool = False
    open: bool = False

    @property
    def waits(self) -> bool:
        """Whether an unmet one makes the job wait on the clock or on facts; lines have queues of their own."""
        if self.abort or self.open:
            return False
        return self.constraint.on_unmet == "wait" and not isinstance(self.constraint, Concurrency | Rate)

    @property
    def aborts(self) -> bool:
        return not self.open and (self.abort or self.constraint.on_unmet == "abort")


def evaluate(job: Job, facts: Facts, schedule: Schedule, now: Instant) -> tuple[Condition, ...]:
    """Each constraint of the schedule, in the order in which it names them. What measures the present (the hour, how
    often, how fresh) holds no backfill up: its jobs ask for a place among the runs at a time, for the approval of each,
    and the probe."""
    timeless = Concurrency | Approval | Probe
    asked = [each for each in schedule.constraints if job.backfill is None or isinstance(each, timeless)]
    return tuple(_stand(constraint, job, facts, schedule, now) for constraint in asked)


def _stand(constraint: AnyConstraint, job: Job, facts: Facts, schedule: Schedule, now: Instant) -> Condition:
    match constraint:
        case Concurrency():
            return _concurrency(constraint, job, facts, schedule)
        case Delay():
            began = job.created_at if constraint.since == "created" else _met_at(job, now)
            return _until(constraint, began + constraint.span, now)
        case TimeWindow():
            opens = now if windows.is_inside(constraint.window, now) else windows.next_opening(constraint.window, now)
            return _until(constraint, opens, now)
        case SinceLastRun():
            ask = Slots(names.workflow_limit(schedule.workflow), None, constraint.span, constraint.of == "any")
            return _until(constraint, slots.gap_ends(ask, facts.line(ask.line)) or 0, now)
        case Rate():
            rule = names.rate_rule(constraint.max, constraint.span)
            log = rate_window.rate_window_of(schedule.workflow, rule, binding=True)
            held = log.line in job.held
            return _until(constraint, now if held else rate_window.frees_at(log, facts.line(log.line)), now)
        case Fresh():
            return _fresh(constraint, facts, now)
        case Load():
            return _load(constraint, job, facts, schedule, now)
        case Approval():
            return _approval(constraint, job, now)
        case Probe():
            return _probe(constraint, job, facts, now)


def _until(constraint: AnyConstraint, opens: Instant, now: Instant) -> Condition:
    """A condition that holds from an instant on."""
    rule = constraint_constraint.describe(constraint)
    if now >= opens:
        return Condition(constraint, True, f"{rule}: met")
    return Condition(constraint, False, f"{rule}: not before {iso(opens)}", opens)


def _concurrency(constraint: Concurrency, job: Job, facts: Facts, schedule: Schedule) -> Condition:
    line = line_of(constraint, schedule, job.schedule)
    active, rule = facts.line(line).active, constraint_constraint.describe(constraint)
    held = line in job.held
    told = f"{active} of {constraint.max} in use"
    return Condition(constraint, held or active < constraint.max, f"{rule}: {'a slot is held' if held else told}")


def line_of(constraint: Concurrency, schedule: Schedule, name: str) -> str:
    """The line whose slots a concurrency constraint limits. A group belongs to the schedule's namespace."""
    if constraint.group is not None:
        return names.group_limit(name.partition(".")[0], constraint.group)
    return names.workflow_limit(schedule.workflow)


def _fresh(constraint: Fresh, facts: Facts, now: Instant) -> Condition:
    rule = constraint_constraint.describe(constraint)
    stale = [_staleness(name, facts.successes.get(name)) for name in constraint.workflows
             if (at := facts.successes.get(name)) is None or at < now - constraint.span]  # fmt: skip
    if not stale:
        return Condition(constraint, True, f"{rule}: met")
    return Condition(constraint, False, f"{rule}: {'; '.join(stale)}")


def _staleness(name: str, at: Instant | None) -> str:
    return f"{name} has not succeeded yet" if at is None else f"{name} succeeded last at {iso(at)}"


def _load(constraint: Load, job: Job, facts: Facts, schedule: Schedule, now: Instant) -> Condition:
    """What was measured just now, else what was measured last, for as long as that holds."""
    rule = constraint_constraint.describe(constraint)
    key = next(
        key
        for key, load in constraint_load.loads_of(schedule.constraints).items()
        if load is constraint or load == constraint
    )
    fresh = facts.loads.get(key)
    said = fresh or constraint_load.remembered(job.measured, key)
    if said is None or (fresh is None and said.until <= now):
        last = f", last seen at {said.value}" if said is not None and said.value is not None else ""
        return Condition(constraint, False, f"{rule}: it is measured when all else is met{last}", open=True)
    if said.value is None:
        # What cannot be measured is no refusal: whatever an unmet one does, this is asked again.
        patient = constraint.model_copy(update={"on_unmet": "wait"})
        why = f"{rule}: it could not be measured: {said.why}; asked again at {iso(said.until)}"
        return Condition(patient, False, why, said.until)
    if constraint.holds(float(said.value)):
        return Condition(constraint, True, f"{rule}: met, it is {said.value}")
    why = f"{rule}: it is {said.value} at {iso(said.at)}; measured again at {iso(said.until)}"
    return Condition(constraint, False, why, said.until)


def _approval(constraint: Approval, job: Job, now: Instant) -> Condition:
    """Given to this job, or to an earlier attempt of its run."""
    rule = constraint_constraint.describe(constraint)
    said = job.approvals.get(constraint.key)
    if said is not None or job.kind == "retry":
        return Condition(constraint, True, f"{rule}: {approval.told(said) if said else 'for an earlier attempt'}")
    ends = None if constraint.timeout is None else _met_at(job, now) + duration(constraint.timeout)
    if ends is not None and now >= ends:
        return Condition(constraint, False, f"{rule}: nobody did until {iso(ends)}", ends, abort=True)
    return Condition(constraint, False, f"{rule}: waits for that", ends)


def _probe(constraint: Probe, job: Job, facts: Facts, now: Instant) -> Condition:
    """What it said just now, else what it said last, for as long as that holds."""
    rule = constraint_constraint.describe(constraint)
    said = facts.probe or probe.remembered(job.probed)
    if said is None or (facts.probe is None and said.until <= now):
        return Condition(constraint, False, f"{rule}: it is asked when all else is met", open=True)
    if said.verdict == "met":
        return Condition(constraint, True, f"{rule}: met")
    if said.verdict == "abort":
        return Condition(constraint, False, f"{rule}: it says to abort: {said.why}", said.until, abort=True)
    again = f"{said.why}; asked again at {iso(said.until)}"
    # No answer is no refusal: whatever an unmet one does, this is asked again.
    patient = constraint if said.verdict == "unmet" else constraint.model_copy(update={"on_unmet": "wait"})
    return Condition(patient, False, f"{rule}: {again}", said.until)


def _met_at(job: Job, now: Instant) -> Instant:
    """When the trigger was met: of a job that needs none, when it came into being."""
    if job.kind in ("gathering", "backlog"):
        return job.met_at if job.met_at is not None else now
    return job.created_at
