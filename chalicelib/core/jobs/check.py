"""The decision of the step *check*: whether a job launches, waits, or ends on record, with the reason.

`decide` is a pure function of the job, the facts and ``now``. Sluice stores its reasons with the job; the API, the
command line and the log show them. ``why`` calls `decide` again on current facts, so the texts are the same everywhere.

Constraints that wait for the clock or for facts come first, then those that abort, then the limits. So a job that has
to wait for the night is not aborted by day because of a run of the night before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from chalicelib.core import ids
from chalicelib.core.access import grants
from chalicelib.core.constraints.constraint import Condition, Situation, externals_of, keyed
from chalicelib.core.dags import elements
from chalicelib.core.definitions import overrides
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import fire, timer
from chalicelib.core.instants import MINUTE, Instant, iso
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.jobs.timeout import deadline_of, is_over, is_repeated, runs_anyway, timed_out, too_late
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stops import why_of
from chalicelib.core.states import GATHERING_MODES, PAUSED_MODES, JobState, WaitReason, claimable
from chalicelib.core.triggers import tree
from chalicelib.core.why import Why, joined, mention

EndKind = Literal["ABORTED", "EXPIRED", "SKIPPED", "DROPPED"]


@dataclass(frozen=True, slots=True)
class Launch:
    """Claim the job now, with a permit of each of these limits."""

    asks: tuple[PermitRequest, ...]
    why: Why


@dataclass(frozen=True, slots=True)
class Wait:
    """Check the job again at ``until`` (None: an event, a permit or a resume wakes it).

    ``yields``: the job leaves its queue and releases its permits, because it now waits for something other than a
    permit. ``reason`` is the class of the wait in the metrics; None if the wait is not counted: for more events, for
    its instant, for the next try, or for the next check."""

    until: Instant | None
    state: JobState
    why: Why
    yields: bool = False
    # Two waits that differ in the class alone are equal.
    reason: WaitReason | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class End:
    """End the job with a record of this kind.

    ABORTED: a condition is not met, and its ``on_unmet`` is to abort. EXPIRED: its partial match is older than
    ``within``, and the next event begins another match (T14). SKIPPED: a user asked to skip this occurrence (L19).
    DROPPED: its schedule, or its backfill, no longer lets it run."""

    kind: EndKind
    why: Why


@dataclass(frozen=True, slots=True)
class Coalesce:
    """End the fire on record: it is added to another job of the schedule, which still waits (C11)."""

    why: Why


@dataclass(frozen=True, slots=True)
class MakeRoom:
    """Detach ``over``, the waiting job that this fire would join, because it has timed out. It is then aborted or run,
    and no fire joins it any more. Then decide on this fire again."""

    over: Job
    why: Why


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Delete the job: it has run, is on record or waits under another key, and a stalled emitter wrote it again."""

    why: Why


Decision = Launch | Wait | End | Coalesce | MakeRoom | Duplicate


def decide(job: Job, facts: Facts, now: Instant, serving: str | None = None) -> Decision:
    """What to do with a job. ``serving`` names the limit whose queue serves it at present, if one does."""
    if job.due_at is not None and job.due_at > now:
        return Wait(job.due_at, job.state, Why.of("due_later", f"due at {iso(job.due_at)}"))
    if facts.already is not None:
        return Duplicate(Why.of("duplicate", f"duplicate: this job already has {facts.already}"))
    reason = _not_claimable(job, facts)
    if reason is not None:
        return End("DROPPED", reason)
    if job.retry_at is not None and job.retry_at > now:
        return Wait(job.retry_at, job.state, job.reason)
    schedule_state, schedule = facts.schedule_state, facts.schedule
    if schedule_state is None or schedule is None or facts.workflow is None:
        gone = schedule.workflow if schedule else "unknown"
        return End("ABORTED", Why.of("workflow_deleted", f"workflow {gone} no longer exists"))
    overflow = too_late(job, schedule, now)
    if overflow is not None:
        return End("DROPPED", overflow)
    if is_unseen(job):
        locked = _decide_fire(job, facts, schedule_state, schedule)
        if locked is not None:
            return locked
    return _decide_open(job, facts, schedule, now, serving)


def is_prepared(job: Job) -> bool:
    """Whether a job is still the fire that the emitter wrote, under its ``FIRE#`` key.

    A fire that had to wait gets another key, because a stalled emitter may write the first one again. A detached fire
    joins no other job, and no other fire joins it (C11)."""
    return sort_keys.is_fire(job.sort_key)


def is_upcoming(job: Job, now: Instant) -> bool:
    """Whether a job is a prepared fire that is not due yet: it only waits for its instant."""
    return is_prepared(job) and (job.due_at or 0) > now


def is_unseen(job: Job) -> bool:
    """Whether a fire has not been checked since it was due. A fire that was approved before has another key already."""
    return is_prepared(job) or (job.traits.timed and job.met_at is None and job.tries == 0)


def coalesces(job: Job, schedule: Schedule, schedule_state: ScheduleState) -> bool:
    """Whether a fire that has to wait becomes the gathering job, which later fires join (C11). One of several events
    does not, also if an update has taken the ``spread`` away since."""
    gathers = schedule_state.mode in GATHERING_MODES and not schedule.own_jobs(schedule_state.mode)
    return gathers and not job.shape


def detaches(schedule: Schedule, schedule_state: ScheduleState) -> bool:
    """Whether a job is detached as soon as its match is complete (C11, and the mode backlog of L4)."""
    return schedule_state.mode in GATHERING_MODES and schedule.own_jobs(schedule_state.mode)


def _decide_fire(job: Job, facts: Facts, schedule_state: ScheduleState, schedule: Schedule) -> Decision | None:
    nominal = job.nominal_at if job.nominal_at is not None else job.due_at
    if nominal in schedule_state.skips:
        why = f"the occurrence of {iso(nominal or 0)} was skipped on request"
        return End("SKIPPED", Why.of("occurrence_skipped", why))
    after_end = timer.after_end(job, schedule)
    if after_end is not None:
        return End("DROPPED", after_end)
    if schedule_state.mode == "drain" and (job.due_at or 0) >= schedule_state.mode_at:
        return End("DROPPED", Why.of("drained", "the fire was due after the schedule was paused to drain"))
    if schedule_state.mode not in GATHERING_MODES and not tree.is_single_time(schedule.trigger):
        why = f"the schedule takes no new fires: its mode is {schedule_state.mode}"
        return End("DROPPED", Why.of("schedule_ended", why))
    waiting = facts.gathering if is_prepared(job) else None
    if waiting is None or waiting.closed:
        return None
    if waiting.job_id == job.job_id:
        return Duplicate(Why.of("duplicate", "duplicate: this fire is already waiting"))
    if not coalesces(job, schedule, schedule_state):
        return None
    if is_over(waiting, schedule, schedule_state, job.due_at or 0):
        over = Why.of("waiting_job_over", "job ", mention("run", waiting.job_id), " timed out before this fire was due")
        return MakeRoom(waiting, over)
    return Coalesce(Why.of("coalesced", "joined job ", mention("run", waiting.job_id), ", which was still waiting"))


def _decide_open(job: Job, facts: Facts, schedule: Schedule, now: Instant, serving: str | None) -> Decision:
    deadline = deadline_of(job, schedule, facts.schedule_state)
    late = deadline is not None and now >= deadline
    forced = late and runs_anyway(schedule)
    verdict = verdict_of(job, schedule, now)
    met = verdict is None or verdict.met
    if gather.has_expired(job, schedule, now):
        return End("EXPIRED", gather.expiry(job, schedule, now).reason)
    if late and not forced:
        return End("ABORTED", timed_out(job, schedule))
    if verdict is not None and not met and not forced:
        limit = tree.expires_at(schedule.trigger, job.leaves)
        return Wait(_earliest(deadline, limit, verdict.changes_at), "PENDING_TRIGGER", verdict.why)
    until = None if forced else deadline
    held_up = (
        _paused(job, facts, until)
        or _planned_anew(job, facts.schedule_state, schedule, now, until)
        or _ungranted(job, facts, until)
        or _beside_other_work(job, facts, now, until)
    )
    if held_up is not None:
        return held_up
    queued = job.queued_in is not None and job.queued_in != serving
    unmet = _decide_constraints(job, facts, schedule, now, until, forced) if not queued else None
    passed = Why.of("timeout_passed", "run in spite of its timeout: ", job.reason)
    why = passed if forced else _reason(job, schedule, verdict, now)
    return unmet or _decide_limits(job, facts, now, serving, until, why, forced)


def _decide_constraints(
    job: Job, facts: Facts, schedule: Schedule, now: Instant, deadline: Instant | None, forced: bool
) -> Decision | None:
    """The wait or abort of unmet constraints, None if there is none. ``forced``: the job runs in spite of its timeout,
    so only constraints that survive a timeout, such as an approval, still count (C10, C16)."""
    unmet = [condition for condition in conditions_of(job, facts, schedule, now) if not condition.met]
    unmet = [condition for condition in unmet if condition.constraint.survives_timeout] if forced else unmet
    waits = [condition for condition in unmet if condition.waits or (is_repeated(job) and _needs_no_limit(condition))]
    if waits:
        until = _earliest(deadline, _latest(waits))
        reason = waits[0].constraint.wait_reason
        return Wait(until, "PENDING_CONSTRAINTS", _why(waits), job.queued_in is not None, reason)
    aborts = [condition for condition in unmet if condition.aborts and not (_queues(condition) and job.queued_in)]
    return End("ABORTED", _why(aborts)) if aborts and not is_repeated(job) else None


def conditions_of(job: Job, facts: Facts, schedule: Schedule, now: Instant) -> tuple[Condition, ...]:
    """The condition of each constraint of the schedule, in their order, and of the approval of its workflow. For a job
    of a backfill only those that apply to backfills: concurrency, approval and probe. The others measure the present:
    the hour, a rate, or how fresh data is.
    """
    situation = Situation(
        job=job,
        workflow=schedule.workflow,
        namespace=job.schedule.partition(".")[0],
        limit_states=facts.limit_states,
        successes=facts.successes,
        newest=facts.newest,
        fresh=facts.fresh,
        now=now,
        externals=externals_of(schedule.constraints),
        answers=facts.answers,
        content=overrides.content_of(schedule, facts.workflow) if job.approvals else "",
    )
    constraints = overrides.constraints_of(schedule, facts.workflow)
    asked = [(key, each) for key, each in keyed(constraints).items() if job.backfill is None or each.for_backfill]
    return tuple(replace(constraint.evaluate(situation), key=key) for key, constraint in asked)


def _decide_limits(
    job: Job, facts: Facts, now: Instant, serving: str | None, deadline: Instant | None, why: Why, forced: bool
) -> Decision:
    asks = facts.asks(job.schedule.partition(".")[0])
    queue = names.whole(job.queued_in) if job.queued_in is not None and job.queued_in != serving else None
    waiting = next((ask for ask in asks if ask.limit_name == queue), None)
    if waiting is not None:
        blocked = permits.why(waiting, facts.limit_state(waiting.limit_name))
        return Wait(deadline, "PENDING_LAUNCH", joined([blocked, job.inherited]))
    too_large = next((ask for ask in asks if permits.never_fits(ask) and not permits.is_held(ask, job.held)), None)
    if too_large is not None:
        # At the head of a queue the job would block all others. The pool may grow, so Sluice checks the job again.
        until = _earliest(deadline, now + permits.TOO_LARGE)
        state = facts.limit_state(too_large.limit_name)
        return Wait(until, "PENDING_CONSTRAINTS", permits.why(too_large, state), job.queued_in is not None, "pool")
    used_up = next((ask for ask in asks if ask.records_claim and _is_void(ask, job, facts, now)), None)
    if used_up is not None:
        rate = permits.why(used_up, facts.limit_state(used_up.limit_name))
        why = Why.of("limit_used_up", "the rate limit was reached while this job was queued: ", rate)
        return Wait(now, "PENDING_CONSTRAINTS", why, yields=True)
    if _is_out_of_order(asks, job) or permits.holds_other_units(asks, job.held, job.units):
        # A changed schedule may need a limit that comes before a limit whose permit the job holds: if jobs acquired
        # permits out of order, two of them could wait for each other. Or it may need other units of a pool: a run
        # releases exactly the units that it requested at its claim.
        why = Why.of("limits_changed", "limits changed; requesting permits again from the first")
        return Wait(now, "PENDING_CONSTRAINTS", why, yields=True)
    # The constraints have checked the gap. The claim expects it as it was read, unless a timeout overrides it (C10).
    return Launch(tuple(ask.without_gap() for ask in asks) if forced else asks, why)


def _is_void(ask: PermitRequest, job: Job, facts: Facts, now: Instant) -> bool:
    """Whether a job holds an entry in a rate window that it would not get now: others started while it queued (C5)."""
    state, own = facts.limit_state(ask.limit_name), ids.holder_of(job.job_id, job.attempt)
    others = {holder: at for holder, at in state.starts.items() if holder != own}
    return ask.limit_name in job.held and not permits.has_permit(ask, replace(state, starts=others), now)


def _is_out_of_order(asks: tuple[PermitRequest, ...], job: Job) -> bool:
    """Whether a job holds a permit of a limit that comes after one for which it may still have to wait. A limit that
    only counts the job never makes it wait. It counts the start in every case."""
    last = max((ask.order for ask in permits.with_fallbacks(asks) if ask.limit_name in job.held), default=None)
    missing = [ask for ask in asks if not permits.is_held(ask, job.held) and not permits.is_unlimited(ask)]
    return last is not None and any(ask.order < last for ask in missing)


def verdict_of(job: Job, schedule: Schedule, now: Instant) -> tree.Verdict | None:
    """The verdict on the trigger of a gathering job, met if its match is locked; None for any other kind of job."""
    if not job.traits.gathers:
        return None
    verdict = tree.evaluate(schedule.trigger, job.leaves, now)
    return replace(verdict, met=True, missing=()) if gather.is_locked(job, schedule) else verdict


def _reason(job: Job, schedule: Schedule, verdict: tree.Verdict | None, now: Instant) -> Why:
    """What started the job, without the waits since."""
    if verdict is not None:
        return verdict.why
    if job.element is not None and not job.traits.retries and not job.traits.requested:
        return elements.reason(job.element)
    if job.traits.of_events:
        arrived = "; ".join(tree.evaluate(schedule.trigger, job.leaves, now).arrived)
        return Why.of("trigger_met", f"trigger met: {arrived}")
    if job.traits.replays:
        return Why.of("backfill", f"backfill {job.backfill}")
    if job.traits.redelivers:
        return Why.of("redriven", "delivered again on request")
    if job.traits.requested:
        return Why.of("requested", "run now" if job.due_at is None else f"run requested for {iso(job.due_at)}")
    if job.traits.retries:
        return Why.of("attempt_failed", f"attempt {job.attempt - 1} failed")
    return Why.of("due", "due")


def _not_claimable(job: Job, facts: Facts) -> Why | None:
    schedule_state = facts.schedule_state
    if schedule_state is None or not schedule_state.exists:
        return Why.of("schedule_deleted", "the schedule was deleted")
    if schedule_state.generation != job.generation:
        return Why.of("schedule_replaced", "the schedule was replaced, or enabled again, since the job began")
    if job.backfill is not None and (facts.backfill is None or facts.backfill.state != "RUNNING"):
        if facts.backfill is not None:
            return Why.of("backfill_over", facts.backfill.reason)
        return Why.of("backfill_deleted", "the backfill of this job no longer exists")
    if schedule_state.mode not in claimable(job.kind, job.backfill) and schedule_state.mode not in PAUSED_MODES:
        return Why.of("schedule_ended", f"the schedule was {schedule_state.mode}")
    return Why.of("schedule_ended", "the schedule was disabled") if job.closed else None


def _paused(job: Job, facts: Facts, deadline: Instant | None) -> Wait | None:
    """The wait of a job while its schedule is stopped, or of one in the modes hold and backlog: until the schedule is
    started (L24) or resumed (L4)."""
    schedule_state = facts.schedule_state
    stopped = why_of(schedule_state)
    if stopped:
        return Wait(deadline, "PENDING_CONSTRAINTS", stopped, job.queued_in is not None, "paused")
    if schedule_state is None or schedule_state.mode in claimable(job.kind, job.backfill):
        return None
    reason = f" ({schedule_state.reason})" if schedule_state.reason else ""
    why = f"the schedule has been paused ({schedule_state.mode}) since {iso(schedule_state.mode_at)}{reason}"
    return Wait(deadline, "PENDING_CONSTRAINTS", Why.of("paused", why), job.queued_in is not None, "paused")


def _planned_anew(
    job: Job, schedule_state: ScheduleState | None, schedule: Schedule, now: Instant, deadline: Instant | None
) -> Wait | None:
    """The wait of an event whose fire a pause held up: the rest of the fire is spread again from the resume on (E2)."""
    if schedule_state is None or not job.traits.timed or is_repeated(job):
        return None
    due = fire.after_hold(job, schedule, schedule_state)
    if due is None or due <= now:
        return None
    since = iso(schedule_state.mode_at)
    why = f"the rest of this fire is spread again since the schedule was resumed at {since}; due at {iso(due)}"
    again = Why.of("spread_again", why)
    return Wait(_earliest(deadline, due), "PENDING_CONSTRAINTS", again, job.queued_in is not None, "paused")


def _ungranted(job: Job, facts: Facts, deadline: Instant | None) -> Wait | None:
    """The wait of a job whose schedule uses something of another namespace that does not grant it (O9)."""
    if not facts.granted.missing:
        return None
    why = grants.waiting_for(facts.granted.missing)
    return Wait(deadline, "PENDING_CONSTRAINTS", why, job.queued_in is not None, "grant")


def _beside_other_work(job: Job, facts: Facts, now: Instant, deadline: Instant | None) -> Decision | None:
    """What becomes of a job whose period has other work (T25). The schedule's own job waits for a backfill, whose end
    sends it a hint, which may be lost. A backfill leaves the period alone."""
    if facts.other.why is None:
        return None
    if job.backfill is not None:
        return End("DROPPED", facts.other.why)
    until = _earliest(deadline, now + MINUTE)
    return Wait(until, "PENDING_CONSTRAINTS", facts.other.why, job.queued_in is not None)


def _needs_no_limit(condition: Condition) -> bool:
    """Whether a repeated job waits for this condition where other jobs abort (W1). For a limit of runs it queues."""
    return not _queues(condition) and condition.aborts


def _queues(condition: Condition) -> bool:
    return condition.constraint.queues == "always"


def _why(unmet: Sequence[Condition]) -> Why:
    return joined(condition.why for condition in unmet)


def _earliest(*instants: Instant | None) -> Instant | None:
    return min((instant for instant in instants if instant is not None), default=None)


def _latest(waits: Sequence[Condition]) -> Instant | None:
    """When all conditions that depend on time alone are met. A condition that needs an event is checked when the event
    comes, and at this instant."""
    return max((condition.until for condition in waits if condition.until is not None), default=None)
