"""Views: what the API, the CLI and the console show. One shape each, instants in RFC 3339, reasons in the words of the
decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.core import changes, check, conditions, errors, foresee, lines, progress, triggers
from chalicelib.core.calendar import Instant, iso
from chalicelib.core.facts import Facts
from chalicelib.core.model import Schedule
from chalicelib.core.prices import LIST, Prices
from chalicelib.core.rehearse import Step
from chalicelib.core.rows import Definition, Gate, Job, Partition, Record, Run, Version
from chalicelib.core.states import GATHERING_MODES
from chalicelib.flow import context, facts, schedules
from chalicelib.flow.account import account
from chalicelib.ports import Ports

View = dict[str, Any]


def definition_view(row: Definition) -> View:
    return {
        "name": row.name,
        "kind": row.kind,
        **row.document,
        "version": row.version,
        "updated_at": iso(row.updated_at),
        "updated_by": row.by,
    }


def schedule_view(gate: Gate, schedule: Schedule) -> View:
    return {
        "name": gate.schedule,
        "kind": "schedule",
        **schedule.model_dump(mode="json"),
        "state": gate.mode,
        "enabled": gate.mode == "enabled",
        "paused_because": gate.reason or None,
        "skips": [iso(at) for at in gate.skips],
        "triggered_by": triggers.describe(schedule.trigger),
        "version": gate.version,
        "generation": gate.generation,
        "updated_at": iso(gate.updated_at),
        "updated_by": gate.by,
    }


def job_view(job: Job) -> View:
    return {
        "job_id": job.job_id,
        "schedule": job.schedule,
        "kind": job.kind,
        "state": job.state,
        "reason": job.reason,
        "created_at": iso(job.created_at),
        "due_at": _iso(job.due_at),
        "nominal_at": _iso(job.nominal_at if job.nominal_at is not None else job.due_at),
        "met_at": _iso(job.met_at),
        "wake_at": _iso(job.wake_at),
        "waits_at": job.waits_at,
        "holds": list(job.held),
        "correlation": dict(job.correlation) if job.correlation else None,
        "attempt": job.attempt,
        "backfill": job.backfill,
        "progress": {leaf: gathered.count for leaf, gathered in job.leaves.items()},
    }


def run_view(run: Run, prices: Prices = LIST) -> View:
    return {
        "run_id": run.run_id,
        "attempt": run.attempt,
        "attempts": run.attempts,
        "schedule": run.schedule,
        "workflow": run.workflow,
        "state": run.state,
        "reason": run.reason,
        "fired_by": run.fired_by,
        "kind": run.kind,
        **account(run, prices),
        "backfill": run.backfill,
        "priority": run.priority,
        "correlation": dict(run.correlation) if run.correlation else None,
        "partition": dict(run.partition) if run.partition else None,
        "properties": dict(run.request.properties),
        "target": dict(run.request.target),
        "target_id": run.target_id,
        "context": run.request.context_uri,
        "created_at": iso(run.created_at),
        "nominal_at": _iso(run.nominal_at),
        "due_at": _iso(run.due_at),
        "late": run.late,
        "lateness_ms": run.lateness,
        "accepted_at": _iso(run.accepted_at),
        "claimed_at": iso(run.claimed_at),
        "start_requested_at": _iso(run.start_requested_at),
        "started_at": _iso(run.started_at),
        "ended_at": _iso(run.ended_at),
        "start_calls": run.calls,
    }


def record_view(record: Record) -> View:
    return {
        "id": record.id,
        "kind": record.kind,
        "schedule": record.schedule,
        "reason": record.reason,
        "at": iso(record.recorded_at),
        "count": record.count,
    }


def version_view(row: Version, before: Version | None) -> View:
    """A version of a schedule, and what it changed: who, when, and which fields (L7)."""
    return {
        "version": row.version,
        "created_at": iso(row.created_at),
        "created_by": row.by,
        "changes": changes.changes(before.definition, row.definition) if before else ["created"],
        "definition": dict(row.definition),
    }


def rehearsal_view(schedule: Schedule, steps: Sequence[Step], left: Sequence[Job], now: Instant) -> View:
    """What a trigger would make of events, step by step, and what it would still wait for after the last one."""
    fires, end = sum(step.fires for step in steps), steps[-1].at if steps else now
    waiting = [triggers.evaluate(schedule.trigger, job.leaves, end) for job in left]
    why = "; ".join(verdict.why for verdict in waiting[:3]) or f"waits for {triggers.describe(schedule.trigger)}"
    return {
        "steps": [
            {
                "at": iso(step.at),
                "event": step.event,
                "touched": step.touched,
                "fires": step.fires,
                "why": step.why,
                "came": list(step.verdict.came),
                "missing": list(step.verdict.missing),
            }
            for step in steps
        ],
        "fires": fires,
        "left": [
            {"why": verdict.why, "turns_at": _iso(verdict.turns_at), "correlation": dict(job.correlation or {}) or None}
            for job, verdict in zip(left, waiting, strict=True)
        ],
        "why": f"fires {progress.count_of(fires, 'time')}; then {why}",
    }


def partition_view(partition: Partition) -> View:
    event = partition.event
    return {
        "dataset": partition.dataset,
        "partition": dict(event.partition or {}),
        "path": event.path,
        "ready_at": iso(event.accepted_at),
        "put_at": iso(event.instant),
        "object": partition.object_key,
    }


def why_job(ports: Ports, job: Job) -> View:
    """Why a job has not run yet, and what would make it run: the decision itself, taken on the facts of the moment."""
    now = ports.clock.now()
    known = facts.gather(ports, job)
    decision = check.decide(job, known, now)
    verdict = check.verdict_of(job, known.schedule, now) if known.schedule else None
    until = decision.until if isinstance(decision, check.Wait) else None
    return {
        "job_id": job.job_id,
        "schedule": job.schedule,
        "state": job.state,
        "decision": type(decision).__name__.lower(),
        "why": decision.why,
        "came": list(verdict.came) if verdict else [],
        "missing": list(verdict.missing) if verdict and not verdict.met else [],
        "since": iso(job.created_at),
        "correlation": dict(job.correlation) if job.correlation else None,
        "wakes": _wakes(job, known, verdict, until),
        "constraints": _constraints(job, known, now),
    }


def why_schedule(ports: Ports, name: str, limit: int = 100) -> View:
    """Why a schedule has not run: its state, what it waits for, and the jobs that wait for it."""
    gate, schedule = schedules.existing(ports, name)
    page = ports.jobs.jobs(name, gate.generation, limit, None)
    now = ports.clock.now()
    # A fire that is prepared for its second waits for nothing but that.
    present = [job for job in page.items if not (job.closed or (check.is_prepared(job) and (job.due_at or 0) > now))]
    waiting = [why_job(ports, job) for job in present]
    timer = ports.catalog.timer(name) if gate.mode in GATHERING_MODES else None
    upcoming = foresee.preview(schedule, now, 1, timer) if timer else []
    if gate.mode != "enabled":
        why = _not_enabled(gate, len(waiting))
    elif waiting:
        why = "; ".join(dict.fromkeys(str(job["why"]) for job in waiting[:3]))
    else:
        why = f"nothing has come yet: waits for {triggers.describe(schedule.trigger)}"
    return {
        "schedule": name,
        "state": gate.mode,
        "why": why,
        "next_fire": _iso(upcoming[0]) if upcoming else None,
        "jobs": waiting,
    }


def why_run(run: Run) -> View:
    """Why a run is where it is: what fired it, and the reason that it carries."""
    texts = {
        "STARTING": "its start was requested and is not confirmed yet" if run.calls else "it is about to be started",
        "RUNNING": "the target is running it",
        "SUCCEEDED": "it is done",
    }
    return {
        "run_id": run.run_id,
        "state": run.state,
        "why": run.reason or texts.get(run.state, "no reason was recorded"),
        "fired_by": run.fired_by,
        "waited_ms": (run.start_requested_at or run.claimed_at) - run.created_at,
    }


def find_job(ports: Ports, job_id: str) -> Job:
    job = ports.jobs.find(job_id)
    if job is None or job.closed:
        run = ports.runs.attempts(job_id)
        record = None if run else ports.runs.record(job_id)
        hint = "it has become a run: ask for the run of the same id" if run else None
        if record is not None:
            hint = f"it was {record.kind.lower()} at {iso(record.recorded_at)}: {record.reason}"
        raise errors.not_found("job", job_id, hint)
    return job


def find_run(ports: Ports, run_id: str) -> tuple[Run, ...]:
    """All attempts of a run, the first one first."""
    attempts = ports.runs.attempts(run_id)
    if not attempts:
        waiting = ports.jobs.find(run_id)
        hint = f"it is still a job: {waiting.reason}" if waiting and not waiting.closed else None
        raise errors.not_found("run", run_id, hint)
    return attempts


def events_view(ports: Ports, run: Run) -> list[View]:
    return [context.describe_event(event) for event in context.events_of(ports, run)]


def _constraints(job: Job, known: Facts, now: Instant) -> list[View]:
    """Each constraint as it stands, in the words of the decision."""
    standing = conditions.stand(job, known, known.schedule, now) if known.schedule else ()
    return [
        {"type": each.constraint.type, "met": each.met, "why": each.why, "until": _iso(each.until)} for each in standing
    ]


def _not_enabled(gate: Gate, waiting: int) -> str:
    """Why a schedule that is not enabled does not run, and what to do."""
    since = f"since {iso(gate.mode_at)}{f': {gate.reason}' if gate.reason else ''}"
    match gate.mode:
        case "hold" | "backlog":
            return f"the schedule is on {gate.mode} {since}; {waiting} waiting: resume it"
        case "drain":
            return f"the schedule takes no more work {since}; {waiting} left to go: resume it to take more"
        case "completed":
            return "the schedule has fired as often as it was to: enable it to begin anew"
        case _:
            return f"the schedule is {gate.mode}: enable it, or run it now"


def _wakes(job: Job, known: Facts, verdict: triggers.Verdict | None, until: Instant | None) -> str:
    """What will make the job move, in words."""
    ways: list[str] = []
    if verdict is not None and not verdict.met:
        ways.append("the next event that its trigger waits for")
    elif known.gate is not None and known.gate.mode in ("hold", "backlog"):
        ways.append("resuming the schedule")
    elif job.state == "PENDING_CONSTRAINTS" and known.schedule and known.schedule.fresh_upstreams:
        ways.append(f"a success of {' or '.join(known.schedule.fresh_upstreams)}")
    if job.waits_at is not None:
        ways.append(f"a permit of {lines.spell(job.waits_at)}")
    if until is not None:
        deadline = check.deadline_of(job, known.schedule, known.gate) if known.schedule else None
        what = "its timeout" if until == deadline else "its time"
        ways.append(f"{what} at {iso(until)}")
    return ", or ".join(ways) or "the next look"


def _iso(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)
