"""Drop jobs on record and release what they hold: single ones, and all of a closed generation (L3, L5, L6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from chalicelib.core import states
from chalicelib.core.dags import rounds
from chalicelib.core.fires import continued, fire
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import check, claim
from chalicelib.core.rows import kinds, sort_keys
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.elements import Elements
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.ref import Ref, limit_ref, run_ref
from chalicelib.core.rows.run import RecordKind, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import complete
from chalicelib.core.schedules import lifecycle
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.why import Why
from chalicelib.core.writes import DeleteJob, Put, Replace, WakeBackfill, Write
from chalicelib.flow import facts as facts_of
from chalicelib.flow import lookup
from chalicelib.flow.check_result import CheckResult, committed
from chalicelib.flow.limits import queues
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
    current = schedule_state if schedule_state is not None and schedule_state.generation == generation else None
    why = _why(current) if current is schedule_state else REPLACED
    dropped, left = 0, False
    tombstone: Job | None = None
    for job in lookup.every(partial(ports.jobs.jobs, schedule, generation), BATCH_SIZE):
        if job.closed:
            # Another closed row refuses the statuses of one cancelled DAG run; it has nothing to drop.
            tombstone = job if job.sort_key == sort_keys.GATHERING else tombstone
        elif _comes_after_drain(job, current):
            left |= ports.ledger.commit([DeleteJob(job)]) is not None
        elif not _may_stay(ports, job, current):
            is_dropped = drop_job(ports, job, "DROPPED", why, ports.clock.now()) is not None
            dropped, left = dropped + is_dropped, left or not is_dropped
    # A conflict leaves a job behind: the tombstone keeps its `wake_at`, so the sweep starts this drain again.
    return dropped if tombstone is None or left else dropped + _close(ports, tombstone, why)


def _why(schedule_state: ScheduleState | None) -> Why:
    mode = schedule_state.mode if schedule_state else "deleted"
    if mode == "drain":
        return Why.of("drained", "the schedule was paused to drain before its trigger was met")
    return Why.of("schedule_deleted" if mode == "deleted" else "schedule_ended", f"the schedule was {mode}")


def _may_stay(ports: Ports, job: Job, schedule_state: ScheduleState | None) -> bool:
    """Whether the job may still be claimed. Of a schedule that gathers no longer, only met jobs may (L4)."""
    if schedule_state is None or schedule_state.mode not in states.claimable(job.kind, job.backfill):
        return False
    if schedule_state.mode not in ("drain", "completed"):
        return True
    schedule = lookup.definition_of(ports, schedule_state)
    verdict = check.verdict_of(job, schedule, ports.clock.now()) if schedule else None
    return verdict is None or verdict.met


def _comes_after_drain(job: Job, schedule_state: ScheduleState | None) -> bool:
    """Whether a fire was prepared, and its nominal instant comes after the schedule was paused to drain. It is none of
    the schedule's fires. After a resume it is one again, under the same id, so it gets no record."""
    if schedule_state is None or schedule_state.mode != "drain" or not check.is_prepared(job):
        return False
    return fire.nominal_of(job) > schedule_state.mode_at


def _close(ports: Ports, job: Job, why: Why) -> int:
    """Drop the job under a tombstone on record and release its permits. Returns how many jobs were dropped, 0 or 1.

    The tombstone itself stays, so that no event joins it.
    """
    if job.wake_at is None:
        return 0
    job, now = queues.regained(ports, job), ports.clock.now()
    plan: list[Write] = [Replace(replace(lifecycle.tombstone(job, why, now), rev=job.rev + 1), over=job)]
    held = states_of_held(ports, job)
    if job.job_id:
        plan += [Put(record_of(job, "DROPPED", why, now)), *claim.released(job, held, now)]
    if ports.ledger.commit(plan) is not None:
        return 0
    wake_queues(ports, held, now)
    return 1 if job.job_id else 0


def drop_job(
    ports: Ports, job: Job, kind: RecordKind, why: Why, now: Instant, exact: bool = False
) -> CheckResult | None:
    """Drop a job on record and release what it holds. Returns None after a conflict.

    Dropping a retry ends its run as FAILED and announces that; dropping a redrive restores its dead letter. ``exact``
    drops the job only in the revision that was read, because an event may have changed the decision since.
    """
    job = queues.regained(ports, job)
    held = states_of_held(ports, job)
    lost = _lost_of(ports, job)
    if isinstance(lost, Why):
        return committed(ports, claim.delete_plan(job, held, now), "gone", lost)
    kind, settling, settled = _of_node(ports, job, kind, now)
    ending = [*_ending(ports, lost, kind, why, now), *settling]
    plan = claim.drop_plan(job, ending, held, now, exact or job.is_bundle)
    if job.backfill is not None:
        plan.append(WakeBackfill(job.schedule, job.backfill, now))
    of_whole = job.element is not None and job.rerun_of is None  # the run of its node tells of all elements, once
    told = kind == "ABORTED" and not job.traits.retries and not of_whole
    notices_due = notices.of_job(ports, job, "aborted", why, now) if told else []
    outcome = committed(ports, [*plan, *notices_due], "aborted" if kind == "ABORTED" else "dropped", why)
    if outcome is not None:
        notices.hint(ports, notices_due)
        backfill = [kinds.ref(Backfill, job.schedule, job.backfill)] if job.backfill is not None else []
        run = [run_ref(job.job_id, job.attempt - 1)] if job.traits.retries else []
        wake_queues(ports, held, now, *backfill, *run, *settled)
    return outcome


def _of_node(
    ports: Ports, job: Job, kind: RecordKind, now: Instant
) -> tuple[RecordKind, Sequence[Write], Sequence[Ref]]:
    """How a job of a DAG's node ends on record, and the writes and the row by which the joins after it are decided, or
    by which the end of its element is counted."""
    if job.element is not None:
        from chalicelib.flow.runs import element_ends

        write = element_ends.after_drop(ports, job, now)
        return kind, [Replace(write)] if write is not None else (), [kinds.ref(Elements, write.run_id)] if write else ()
    if rounds.decides(job.correlation) is None:
        return kind, (), ()
    from chalicelib.flow.runs import joins  # few jobs are those of nodes

    kind, after = joins.record_kind(ports, job, kind), joins.after_drop(ports, job, now)
    return (kind, after.writes, (after.ref,)) if after is not None else (kind, (), ())


def _lost_of(ports: Ports, job: Job) -> Job | Why:
    """What is lost with a job: the job, or a part of a bundle. The reason why nothing is for a fire that is prepared
    again, or has run: it goes without a record."""
    schedule_state = ports.rows.get(ScheduleState, job.schedule) if job.traits.timed else None
    schedule = lookup.definition_of(ports, schedule_state)
    lost: Job | None = job
    if schedule_state is not None and schedule is not None:
        lost = continued.lost_of(job, schedule_state, schedule)
    if lost is None:
        return Why.of("duplicate", "prepared again after an update")
    already = facts_of.already(ports, job, schedule_state) if check.is_prepared(job) else None
    return Why.of("duplicate", f"has {already} already") if already is not None else lost


def _ending(ports: Ports, job: Job, kind: RecordKind, why: Why, now: Instant) -> list[Write]:
    """The writes that tell how a dropped job ended: its record, the failed run of a retry, or the dead letter of a
    redrive."""
    if job.traits.redelivers:
        return put_back(ports, job, why, now)
    if not job.traits.retries:
        return [Put(record_of(job, kind, why, now))]
    run = ports.rows.get(Run, job.job_id, job.attempt - 1)
    if run is None:
        return []
    update = RunUpdate("FAILED", now, Why.of("not_attempted_again", run.reason, "; not attempted again: ", why))
    step = complete.advance(run, update, now, None)
    return [Replace(step.run)] if step else []


def drop_at(ports: Ports, key: tuple[str, int, str], why: Why) -> bool:
    """Drop the job under a key, also if it changes meanwhile. Returns whether there was one."""
    for _ in range(MAX_CONFLICTS):
        job = ports.rows.get(Job, *key)
        if job is None:
            return False
        if drop_job(ports, job, "DROPPED", why, ports.clock.now()) is not None:
            return True
    raise too_many_conflicts(f"dropping job {key}", "the sweep will try again")


def states_of_held(ports: Ports, job: Job) -> dict[str, LimitState]:
    return {limit_name: ports.jobs.limit_state(limit_name) for limit_name in job.held}


def wake_queues(ports: Ports, released: Mapping[str, LimitState], now: Instant, *others: Ref) -> None:
    """Hint the limits, of those whose permits were released, for which jobs wait, and ``others``."""
    woken = [*(limit_ref(limit_name) for limit_name, state in released.items() if state.waiters), *others]
    if woken:
        ports.hints.send(woken, now, now)
