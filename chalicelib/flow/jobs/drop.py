"""Drop jobs on record and release what they hold: single ones, and all of a closed generation (L3, L5, L6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from chalicelib.core import states
from chalicelib.core.fires import continued, fire
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import check, claim
from chalicelib.core.rows import kinds, sort_keys
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.ref import Ref, limit_ref, run_ref
from chalicelib.core.rows.run import RecordKind, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import complete
from chalicelib.core.schedules.lifecycle import TOMBSTONE_LIFE
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.why import NONE, Why
from chalicelib.core.writes import DeleteJob, Put, Replace, WakeBackfill, Write
from chalicelib.flow import facts as facts_of
from chalicelib.flow import lookup
from chalicelib.flow.limits import waiting
from chalicelib.flow.notices import notices
from chalicelib.flow.runs.dead_letters import put_back
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

BATCH_SIZE = 100  # jobs per page


REPLACED = Why.of("schedule_replaced", "the schedule was replaced or enabled again")


def drain(ports: Ports, schedule: str, generation: int) -> int:
    """Drop the jobs of this generation that may no longer be claimed, then close its tombstone. Idempotent.

    Returns how many jobs were dropped. The tombstone is closed last: until then it stays in the wake index, so the
    sweep finds it if this invocation crashes.
    """
    schedule_state = ports.rows.get(ScheduleState, schedule)
    same = schedule_state is not None and schedule_state.generation == generation
    why = _why(schedule_state) if same or schedule_state is None else REPLACED
    dropped, left = 0, False
    tombstone: Job | None = None
    for job in lookup.every(partial(ports.jobs.jobs, schedule, generation), BATCH_SIZE):
        if job.closed:
            # Another closed row refuses the statuses of one cancelled DAG run; it has nothing to drop.
            tombstone = job if job.sort_key == sort_keys.GATHERING else tombstone
        elif same and _comes_after_drain(job, schedule_state):
            left = committed(ports, [DeleteJob(job)], "gone", NONE) is None or left
        elif not same or not _may_stay(job, schedule_state) or _is_unmet(ports, job, schedule_state):
            is_dropped = drop_job(ports, job, "DROPPED", why, ports.clock.now()) is not None
            dropped, left = dropped + is_dropped, left or not is_dropped
    # A conflict leaves a job behind: the tombstone keeps its `wake_at`, so the sweep starts this drain again.
    return dropped if tombstone is None or left else dropped + _close(ports, tombstone, why)


def _why(schedule_state: ScheduleState | None) -> Why:
    mode = schedule_state.mode if schedule_state else "deleted"
    if mode == "drain":
        return Why.of("drained", "the schedule was paused to drain before its trigger was met")
    return Why.of("schedule_deleted" if mode == "deleted" else "schedule_ended", f"the schedule was {mode}")


def _may_stay(job: Job, schedule_state: ScheduleState | None) -> bool:
    return schedule_state is not None and schedule_state.mode in states.claimable(job.kind, job.backfill)


def _comes_after_drain(job: Job, schedule_state: ScheduleState | None) -> bool:
    """Whether a fire was prepared, and its nominal instant comes after the schedule was paused to drain. It is none of
    the schedule's fires. After a resume it is one again, under the same id, so it gets no record."""
    if schedule_state is None or schedule_state.mode != "drain" or not check.is_prepared(job):
        return False
    return fire.nominal_of(job) > schedule_state.mode_at


def _is_unmet(ports: Ports, job: Job, schedule_state: ScheduleState | None) -> bool:
    """Whether the schedule gathers no longer and the trigger of this job is unmet: only met jobs stay (L4)."""
    if schedule_state is None or schedule_state.mode not in ("drain", "completed"):
        return False
    schedule = lookup.definition_of(ports, schedule_state)
    verdict = check.verdict_of(job, schedule, ports.clock.now()) if schedule else None
    return verdict is not None and not verdict.met


def _close(ports: Ports, job: Job, why: Why) -> int:
    """Drop the job under a tombstone on record and release its permits. Returns how many jobs were dropped, 0 or 1.

    The tombstone itself stays, so that no event joins it.
    """
    if job.wake_at is None:
        return 0
    job, now = waiting.regained(ports, job), ports.clock.now()
    # From now on the tombstone only refuses late events, so it may expire. Before, it named the permits to release.
    bare = replace(job, job_id="", queued_in=None, rank=None, held=(), reason=why, rev=job.rev + 1)
    closed = replace(bare, wake_at=None, expires_at=now + TOMBSTONE_LIFE)
    plan: list[Write] = [Replace(closed, over=job)]
    held = {limit_name: ports.jobs.limit_state(limit_name) for limit_name in job.held}
    if job.job_id:
        drop_plan = claim.drop_plan(job, record_of(job, "DROPPED", why, now), held, now)
        plan += [write for write in drop_plan if not isinstance(write, DeleteJob)]
    if ports.ledger.commit(plan) is not None:
        return 0
    woken = [limit_ref(limit_name) for limit_name, state in held.items() if state.waiters]
    if woken:
        ports.hints.send(woken, now, now)
    return 1 if job.job_id else 0


Ended = Literal["gone", "launched", "delivered", "queued", "waiting", "dropped", "aborted", "coalesced", "applied"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check. ``why`` is the sentence in the log.

    ``overdue`` names a limit whose queue the job joined and which should have been served a while ago. ``same`` means
    that the check changed nothing, so the log already holds this ``why``.
    """

    ended: Ended
    why: Why = NONE
    overdue: str | None = None
    same: bool = False


def drop_job(
    ports: Ports, job: Job, kind: RecordKind, why: Why, now: Instant, exact: bool = False
) -> CheckResult | None:
    """Drop a job on record and release what it holds. Returns None after a conflict.

    Dropping a retry ends its run as FAILED and announces that; dropping a redrive restores its dead letter. ``exact``
    drops the job only in the revision that was read, because an event may have changed the decision since.
    """
    job = waiting.regained(ports, job)
    held = states_of_held(ports, job)
    if job.traits.timed and _is_again(ports, job):
        again = Why.of("duplicate", "prepared again after an update")
        return committed(ports, claim.delete_plan(job, held, now), "gone", again)
    if check.is_prepared(job) and (already := facts_of.already(ports, job)) is not None:
        return committed(
            ports, claim.delete_plan(job, held, now), "gone", Why.of("duplicate", f"has {already} already")
        )
    plan: list[Write] = claim.drop_plan(job, record_of(job, kind, why, now), held, now, exact)
    if job.traits.retries:
        run = ports.rows.get(Run, job.job_id, job.attempt - 1)
        before = run.reason if run is not None else ""
        update = RunUpdate("FAILED", now, Why.of("not_attempted_again", before, "; not attempted again: ", why))
        step = complete.advance(run, update, now, None) if run else None
        plan = [write for write in plan if not isinstance(write, Put)]
        plan += [Replace(step.run)] if step else []
    elif job.traits.redelivers:
        kept = [write for write in plan if not isinstance(write, Put)]
        plan = [*kept, *put_back(ports, job, why, now)]
    if job.backfill is not None:
        plan.append(WakeBackfill(job.schedule, job.backfill, now))
    notices_due = (
        notices.of_job(ports, job, "aborted", why, now) if kind == "ABORTED" and not job.traits.retries else []
    )
    outcome = committed(ports, [*plan, *notices_due], "aborted" if kind == "ABORTED" else "dropped", why)
    if outcome is not None:
        notices.hint(ports, notices_due)
        woken = queues_to_wake(held)
        if job.backfill is not None:
            woken.append(kinds.ref(Backfill, job.schedule, job.backfill))
        if job.traits.retries:
            woken.append(run_ref(job.job_id, job.attempt - 1))
        if woken:
            ports.hints.send(woken, now, now)
    return outcome


def drop_at(ports: Ports, key: tuple[str, int, str], why: Why) -> bool:
    """Drop the job under a key, also if it changes meanwhile. Returns whether there was one."""
    for _ in range(MAX_CONFLICTS):
        job = ports.rows.get(Job, *key)
        if job is None:
            return False
        if drop_job(ports, job, "DROPPED", why, ports.clock.now()) is not None:
            return True
    raise too_many_conflicts(f"dropping job {key}", "the sweep will try again")


def _is_again(ports: Ports, job: Job) -> bool:
    """Whether the fire of a closed generation is prepared again in the present one, whose trigger is the same."""
    schedule_state = ports.rows.get(ScheduleState, job.schedule)
    schedule = lookup.definition_of(ports, schedule_state)
    return schedule_state is not None and schedule is not None and continued.is_again(job, schedule_state, schedule)


def states_of_held(ports: Ports, job: Job) -> dict[str, LimitState]:
    return {limit_name: ports.jobs.limit_state(limit_name) for limit_name in job.held}


def queues_to_wake(held: dict[str, LimitState]) -> list[Ref]:
    return [limit_ref(limit_name) for limit_name, state in held.items() if state.waiters]


def committed(ports: Ports, plan: list[Write], ended: Ended, why: Why) -> CheckResult | None:
    return CheckResult(ended, why) if ports.ledger.commit(plan) is None else None
