"""Views: what the API, the CLI and the console show. One shape each, instants in RFC 3339, reasons in the words of the
decision."""

from __future__ import annotations

from typing import Any

from chalicelib.core import check, emit, errors, lines, triggers
from chalicelib.core.calendar import Instant, iso
from chalicelib.core.check import Facts
from chalicelib.core.model import Schedule
from chalicelib.core.rows import Definition, Gate, Job, Partition, Record, Run
from chalicelib.flow import context, facts, schedules
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
        "met_at": _iso(job.met_at),
        "wake_at": _iso(job.wake_at),
        "waits_at": job.waits_at,
        "holds": list(job.held),
        "correlation": dict(job.correlation) if job.correlation else None,
        "attempt": job.attempt,
        "progress": {leaf: progress.count for leaf, progress in job.leaves.items()},
    }


def run_view(run: Run) -> View:
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
        "priority": run.priority,
        "correlation": dict(run.correlation) if run.correlation else None,
        "partition": dict(run.partition) if run.partition else None,
        "properties": dict(run.request.properties),
        "target": dict(run.request.target),
        "target_id": run.target_id,
        "context": run.request.context_uri,
        "created_at": iso(run.created_at),
        "nominal_at": _iso(run.nominal_at),
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
    verdict = _verdict(job, known)
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
    }


def why_schedule(ports: Ports, name: str, limit: int = 100) -> View:
    """Why a schedule has not run: its state, what it waits for, and the jobs that wait for it."""
    gate, schedule = schedules.existing(ports, name)
    page = ports.jobs.jobs(name, gate.generation, limit, None)
    waiting = [why_job(ports, job) for job in page.items if not job.closed]
    timer = ports.catalog.timer(name) if gate.mode == "enabled" else None
    anchors = dict.fromkeys(timer.next, timer.anchor) if timer else {}
    upcoming = emit.preview(schedule, ports.clock.now(), 1, anchors) if timer else []
    if gate.mode != "enabled":
        why = f"the schedule is {gate.mode}: enable it, or run it now"
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


def _verdict(job: Job, known: Facts) -> triggers.Verdict | None:
    if job.kind != "gathering" or known.schedule is None:
        return None
    return triggers.evaluate(known.schedule.trigger, job.leaves)


def _wakes(job: Job, known: Facts, verdict: triggers.Verdict | None, until: Instant | None) -> str:
    """What will make the job move, in words."""
    ways: list[str] = []
    if verdict is not None and not verdict.met:
        ways.append("the next event that its trigger waits for")
    if job.waits_at is not None:
        ways.append(f"a permit of {lines.spell(job.waits_at)}")
    if until is not None:
        what = "its timeout" if known.schedule and until == check.deadline_of(job, known.schedule) else "its time"
        ways.append(f"{what} at {iso(until)}")
    return ", or ".join(ways) or "the next look"


def _iso(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)
