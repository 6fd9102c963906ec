"""Views: what the API, the CLI and the console show. One shape each, instants in RFC 3339, reasons in the words of the
decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.core import changes, dag_keys, errors, ids, progress, triggers
from chalicelib.core.calendar import Instant, iso
from chalicelib.core.model import Schedule
from chalicelib.core.prices import LIST, Prices
from chalicelib.core.rehearse import Step
from chalicelib.core.rows import Definition, Gate, Job, Partition, Record, Run, Version
from chalicelib.flow import context
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
        **({"dag": ids.dag_of(gate.schedule)} if ids.is_of_dag(gate.schedule) else {}),
    }


def job_view(job: Job) -> View:
    return {
        "job_id": job.job_id,
        "schedule": job.schedule,
        "kind": job.kind,
        "state": job.state,
        "reason": job.reason,
        "created_at": iso(job.created_at),
        "due_at": iso_of(job.due_at),
        "nominal_at": iso_of(job.nominal_at if job.nominal_at is not None else job.due_at),
        "met_at": iso_of(job.met_at),
        "wake_at": iso_of(job.wake_at),
        "waits_at": job.waits_at,
        "holds": list(job.held),
        "correlation": dag_keys.without(job.correlation),
        "dag": dag_keys.told(job),
        "attempt": job.attempt,
        "lent": job.lent or None,
        "approvals": [{"for": key, "by": said["by"], "at": iso(said["at"])} for key, said in job.approvals.items()],
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
        "workflow_version": run.workflow_version or None,
        "state": run.state,
        "reason": run.reason,
        "fired_by": run.fired_by,
        "kind": run.kind,
        **account(run, prices),
        "backfill": run.backfill,
        "rerun_of": run.rerun_of,
        "outcome": run.outcome,
        "metrics": dict(run.metrics) if run.metrics else None,
        "priority": run.priority,
        "correlation": dag_keys.without(run.correlation),
        "partition": dag_keys.without(run.partition),
        "dag": dag_keys.told(run),
        "properties": dict(run.request.properties),
        "target": dict(run.request.target),
        "target_id": run.target_id,
        "context": run.request.context_uri,
        "created_at": iso(run.created_at),
        "nominal_at": iso_of(run.nominal_at),
        "due_at": iso_of(run.due_at),
        "late": run.late,
        "lateness_ms": run.lateness,
        "accepted_at": iso_of(run.accepted_at),
        "claimed_at": iso(run.claimed_at),
        "start_requested_at": iso_of(run.start_requested_at),
        "started_at": iso_of(run.started_at),
        "ended_at": iso_of(run.ended_at),
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
            {
                "why": verdict.why,
                "turns_at": iso_of(verdict.turns_at),
                "correlation": dag_keys.without(job.correlation),
            }
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
        **({"snapshot": dict(event.payload)} if event.payload is not None else {}),
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


def iso_of(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)
