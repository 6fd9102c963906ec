"""The decision of the step *check*: may this job launch, must it wait, or is it over? Always with the reason why.

`decide` is a pure function of the job, the facts and ``now``. Its reasons are stored with the job and shown by API,
CLI and logs; ``why`` calls it again on the facts of the moment, so the words are the same everywhere.

Constraints are judged in this order: what waits on the clock or on facts, then what aborts, then the lines. So a job
that has to wait for the night is not aborted by day for a run of the night before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chalicelib.core import ids
from chalicelib.core.constraints.constraint import Condition
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import timer
from chalicelib.core.instants import Instant, iso
from chalicelib.core.jobs import conditions, gather
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.jobs.timeout import deadline_of, is_over, is_repeated, runs_anyway, timed_out, too_late
from chalicelib.core.limits import permits, slots
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.rate_window import RateWindow
from chalicelib.core.limits.slots import Slots
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import GATHERING_MODES, PAUSED_MODES, JobState, WaitReason, claimable
from chalicelib.core.triggers import tree


@dataclass(frozen=True, slots=True)
class Launch:
    """Claim it now, with a permit of each of these lines."""

    asks: tuple[PermitRequest, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before ``until`` (None: an event, a line or a resume will wake it). ``leaves``: it gives up its
    place in a queue, for what it waits for now is no line. ``reason`` is the class of the wait in the metrics, None for
    one that is not counted: for more events, for its instant, for the next try, or for a moment."""

    until: Instant | None
    state: JobState
    why: str
    leaves: bool = False
    reason: WaitReason | None = field(default=None, compare=False)  # two waits are equal if they say the same


@dataclass(frozen=True, slots=True)
class Abort:
    """A condition is not met and the schedule says not to wait: out, on record."""

    why: str


@dataclass(frozen=True, slots=True)
class Expire:
    """A partial match has grown too old (T14): out, on record; the next event begins anew."""

    why: str


@dataclass(frozen=True, slots=True)
class Drop:
    """The schedule is no longer what it was when the job came: out, on record."""

    why: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Somebody asked that this occurrence be left out (L19): out, on record."""

    why: str


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Another job of the schedule is waiting already: this fire is added to it, on record (C11)."""

    why: str


@dataclass(frozen=True, slots=True)
class MakeRoom:
    """The job that waits in its place has timed out: that one is set apart, to be aborted or run, and takes in no more
    fires. Then this fire is decided again."""

    over: Job
    why: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """It has run, or has its record: a stalled writer brought it back. Away with it."""

    why: str


Decision = Launch | Wait | Abort | Expire | Drop | Skip | Coalesce | MakeRoom | Duplicate


def decide(job: Job, facts: Facts, now: Instant, serving: str | None = None) -> Decision:
    """What is to become of a job. ``turn`` names the line whose queue serves it at this moment, if one does."""
    if job.due_at is not None and job.due_at > now:
        return Wait(job.due_at, job.state, f"is due at {iso(job.due_at)}")
    if facts.already is not None:
        return Duplicate(f"has {facts.already} already")
    gone = _not_claimable(job, facts)
    if gone:
        return Drop(gone)
    if job.retry_at is not None and job.retry_at > now:
        return Wait(job.retry_at, job.state, job.reason)
    schedule_state, schedule = facts.schedule_state, facts.schedule
    if schedule_state is None or schedule is None or facts.workflow is None:
        return Abort(f"workflow {schedule.workflow if schedule else 'unknown'} does not exist any more")
    overflow = too_late(job, schedule, now)
    if overflow is not None:
        return Drop(overflow)
    if is_unseen(job):
        locked = _decide_fire(job, facts, schedule_state, schedule)
        if locked is not None:
            return locked
    return _decide_open(job, facts, schedule, now, serving)


def is_prepared(job: Job) -> bool:
    """Whether a job is still the schedule event that the emitter wrote. One that had to wait has left that place, which
    a stalled emitter may write again; set apart, it is a job by itself: it joins none, and none joins it (C11)."""
    return sort_keys.is_fire(job.sort_key)


def is_unseen(job: Job) -> bool:
    """Whether nobody has looked at a fire since it is due. One approved before then has left the emitter's place."""
    return is_prepared(job) or (job.kind == "fire" and job.met_at is None and job.tries == 0)


def coalesces(schedule: Schedule, schedule_state: ScheduleState) -> bool:
    """Whether a fire that has to wait makes the one pending job, which later fires join (C11)."""
    return schedule_state.mode in GATHERING_MODES and not schedule.own_jobs(schedule_state.mode)


def detaches(schedule: Schedule, schedule_state: ScheduleState) -> bool:
    """Whether a match that is complete makes room for the next one at once (C11, and the backlog of L4)."""
    return schedule_state.mode in GATHERING_MODES and not coalesces(schedule, schedule_state)


def _decide_fire(job: Job, facts: Facts, schedule_state: ScheduleState, schedule: Schedule) -> Decision | None:
    nominal = job.nominal_at if job.nominal_at is not None else job.due_at
    if nominal in schedule_state.skips:
        return Skip(f"the occurrence of {iso(nominal or 0)} is skipped, as was asked")
    unwanted = timer.unwanted(job, schedule)
    if unwanted is not None:
        return Drop(unwanted)
    if schedule_state.mode == "drain" and (job.due_at or 0) >= schedule_state.mode_at:
        return Drop("it was due after the schedule was paused to drain")
    if schedule_state.mode not in GATHERING_MODES and not tree.is_single_time(schedule.trigger):
        return Drop(f"the schedule gathers no more: its mode is {schedule_state.mode}")
    waiting = facts.gathering if is_prepared(job) else None
    if waiting is None or waiting.closed:
        return None
    if waiting.job_id == job.job_id:
        return Duplicate("waits already: a stalled emitter wrote it again")
    if not coalesces(schedule, schedule_state):
        return None
    if is_over(waiting, schedule, schedule_state, job.due_at or 0):
        return MakeRoom(waiting, f"job {waiting.job_id} timed out before this fire was due")
    return Coalesce(f"joined job {waiting.job_id}, which was still waiting")


def _decide_open(job: Job, facts: Facts, schedule: Schedule, now: Instant, serving: str | None) -> Decision:
    deadline = deadline_of(job, schedule, facts.schedule_state)
    late = deadline is not None and now >= deadline
    forced = late and runs_anyway(schedule)
    verdict = verdict_of(job, schedule, now)
    met = verdict is None or verdict.met
    if gather.has_expired(job, schedule, now):
        return Expire(gather.expiry(job, schedule, now).reason)
    if late and not forced:
        return Abort(timed_out(job, schedule))
    if verdict is not None and not met and not forced:
        limit = tree.expires_at(schedule.trigger, job.leaves)
        return Wait(_earliest(deadline, limit, verdict.changes_at), "PENDING_TRIGGER", verdict.why)
    held_up = _paused(job, facts, None if forced else deadline)
    if held_up is not None:
        return held_up
    until = None if forced else deadline
    queued = job.queued_in is not None and job.queued_in != serving
    unmet = _decide_constraints(job, facts, schedule, now, until, forced) if not queued else None
    why = f"run anyway after its timeout: {job.reason}" if forced else _reason(job, schedule, verdict, now)
    return unmet or _decide_limits(job, facts, now, serving, until, why, forced)


def _decide_constraints(
    job: Job, facts: Facts, schedule: Schedule, now: Instant, deadline: Instant | None, forced: bool
) -> Decision | None:
    """``forced``: its timeout has run it anyway, past all but the word of a person (C10, C16)."""
    unmet = [each for each in conditions.evaluate(job, facts, schedule, now) if not each.met]
    unmet = [each for each in unmet if each.constraint.survives_timeout] if forced else unmet
    waits = [each for each in unmet if each.waits or (is_repeated(job) and _is_no_line(each))]
    if waits:
        until = _earliest(deadline, _latest(waits))
        reason = waits[0].constraint.wait_reason
        return Wait(until, "PENDING_CONSTRAINTS", _words(waits), job.queued_in is not None, reason)
    aborts = [each for each in unmet if each.aborts and not (_queues(each) and job.queued_in)]
    return Abort(_words(aborts)) if aborts and not is_repeated(job) else None


def _decide_limits(
    job: Job, facts: Facts, now: Instant, serving: str | None, deadline: Instant | None, why: str, forced: bool
) -> Decision:
    asks = facts.asks(job.schedule.partition(".")[0])
    waiting = next((ask for ask in asks if ask.limit_name == job.queued_in), None) if job.queued_in != serving else None
    if waiting is not None:
        inherited = f"; {job.inherited}" if job.inherited else ""
        return Wait(
            deadline, "PENDING_LAUNCH", f"{permits.why(waiting, facts.limit_state(waiting.limit_name))}{inherited}"
        )
    too_large = next((ask for ask in asks if permits.never_fits(ask) and not permits.is_held(ask, job.held)), None)
    if too_large is not None:
        # At the head of a queue it would stop all others for ever; the pool may grow, so it is looked at again.
        until = _earliest(deadline, now + slots.TOO_LARGE)
        state = facts.limit_state(too_large.limit_name)
        return Wait(until, "PENDING_CONSTRAINTS", permits.why(too_large, state), job.queued_in is not None, "pool")
    used_up = next((ask for ask in asks if isinstance(ask, RateWindow) and _is_void(ask, job, facts, now)), None)
    if used_up is not None:
        rate = permits.why(used_up, facts.limit_state(used_up.limit_name))
        return Wait(now, "PENDING_CONSTRAINTS", f"the rate was used up by others while it queued: {rate}", leaves=True)
    if _is_out_of_order(asks, job) or permits.holds_other_units(asks, job.held, job.units):
        # A changed schedule asks for a line that comes before one it holds: taken out of order, two jobs could wait
        # for each other. Or for other units of a pool: what a run gives back is what it asked for when it was claimed.
        return Wait(now, "PENDING_CONSTRAINTS", "begins its way through the lines anew: they changed", leaves=True)
    # A gap was judged before; in the claim it is held as it was read, unless a timeout overrides it (C10).
    asks = tuple(replace(ask, gap=None) if forced and isinstance(ask, Slots) else ask for ask in asks)
    return Launch(asks, why)


def _is_void(ask: RateWindow, job: Job, facts: Facts, now: Instant) -> bool:
    """Whether a job holds a place in a log that it would not be given now: it queued elsewhere, others started (C5)."""
    state, own = facts.limit_state(ask.limit_name), ids.holder_of(job.job_id, job.attempt)
    others = {holder: at for holder, at in state.starts.items() if holder != own}
    return ask.limit_name in job.held and not permits.has_permit(ask, replace(state, starts=others), now)


def _is_out_of_order(asks: tuple[PermitRequest, ...], job: Job) -> bool:
    """Whether a job holds a line that comes after one where it may still have to wait. A line that only counts it never
    holds it up, and a log that does is told at the start, whatever the job holds by then."""
    last = max((ask.order for ask in permits.with_fallbacks(asks) if ask.limit_name in job.held), default=None)
    missing = [ask for ask in asks if not permits.is_held(ask, job.held) and not permits.is_unlimited(ask)]
    return last is not None and any(ask.order < last for ask in missing)


def verdict_of(job: Job, schedule: Schedule, now: Instant) -> tree.Verdict | None:
    """How the trigger of a gathering job stands; None for a job that needs none, or whose match is settled."""
    if job.kind != "gathering":
        return None
    verdict = tree.evaluate(schedule.trigger, job.leaves, now)
    return replace(verdict, met=True, missing=()) if gather.is_locked(job, schedule) else verdict


def _reason(job: Job, schedule: Schedule, verdict: tree.Verdict | None, now: Instant) -> str:
    """What fired it, whatever it waited for since."""
    match job.kind:
        case "detached":
            arrived = "; ".join(tree.evaluate(schedule.trigger, job.leaves, now).arrived)
            return f"trigger met: {arrived}"
        case "run_now":
            return "run now" if job.due_at is None else f"asked to run at {iso(job.due_at)}"
        case "backfill":
            return f"backfill {job.backfill}"
        case "redrive":
            return "delivered again, as was asked"
        case "retry":
            return f"attempt {job.attempt - 1} failed"
        case _:
            return verdict.why if verdict is not None else "due"


def _not_claimable(job: Job, facts: Facts) -> str | None:
    schedule_state = facts.schedule_state
    if schedule_state is None or not schedule_state.exists:
        return "the schedule was deleted"
    if schedule_state.generation != job.generation:
        return "the schedule was replaced or enabled anew since"
    if job.backfill is not None and (facts.backfill is None or facts.backfill.state != "RUNNING"):
        return facts.backfill.reason if facts.backfill else "its backfill is gone"
    if schedule_state.mode not in claimable(job.kind, job.backfill) and schedule_state.mode not in PAUSED_MODES:
        return f"the schedule was {schedule_state.mode}"
    return "the schedule was disabled" if job.closed else None


def _paused(job: Job, facts: Facts, deadline: Instant | None) -> Wait | None:
    """In hold and backlog a job that could go is kept until the schedule is resumed (L4)."""
    schedule_state = facts.schedule_state
    if schedule_state is None or schedule_state.mode in claimable(job.kind, job.backfill):
        return None
    reason = f" ({schedule_state.reason})" if schedule_state.reason else ""
    why = f"the schedule is on {schedule_state.mode} since {iso(schedule_state.mode_at)}{reason}"
    return Wait(deadline, "PENDING_CONSTRAINTS", why, job.queued_in is not None, "paused")


def _is_no_line(condition: Condition) -> bool:
    """What is repeated waits where others abort (W1); at a limit of runs it queues like any other."""
    return not _queues(condition) and condition.aborts


def _queues(condition: Condition) -> bool:
    return condition.constraint.queues == "always"


def _words(unmet: Sequence[Condition]) -> str:
    return "; ".join(condition.why for condition in unmet)


def _earliest(*instants: Instant | None) -> Instant | None:
    return min((instant for instant in instants if instant is not None), default=None)


def _latest(waits: Sequence[Condition]) -> Instant | None:
    """When all that the clock will meet is met. What waits for an event is woken by it, or looked at then."""
    return max((each.until for each in waits if each.until is not None), default=None)
