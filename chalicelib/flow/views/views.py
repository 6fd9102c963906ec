"""Views of rows for the API, the CLI and the console: one shape each, with instants in RFC 3339."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from chalicelib.core import ids, text
from chalicelib.core.dags import rounds
from chalicelib.core.definitions import diff
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import Instant, iso, iso_or_none
from chalicelib.core.jobs.dry_run import Step
from chalicelib.core.rows.access import AccessRow, AllowedRow
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.event import CLAIMED_LIFE, Partition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.runs.costs import LIST, Prices
from chalicelib.core.triggers import tree
from chalicelib.core.why import Why
from chalicelib.flow.runs import context
from chalicelib.flow.views.account import account
from chalicelib.ports import Ports

if TYPE_CHECKING:
    from chalicelib.flow.definitions.uses import Uses

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


def access_view(row: AccessRow) -> View:
    return _of_namespace("access", row)


def allowed_view(row: AllowedRow) -> View:
    return _of_namespace("allowed", row)


def proposal_view(uses: Uses) -> View:
    """What a namespace would be refused without lists, the list that covers it, and what that list leaves out."""
    return {
        "name": uses.namespace,
        "refused": [asdict(each) for each in uses.refused],
        "allowed": dict(uses.proposed),
        "left_out": [asdict(each) for each in uses.left_out],
        "complete": uses.complete,
    }


def _of_namespace(kind: str, row: AccessRow | AllowedRow) -> View:
    return {
        "name": row.namespace,
        "kind": kind,
        **row.document,
        "version": row.rev,
        "updated_at": iso(row.updated_at),
        "updated_by": row.by,
    }


def grants_view(row: GrantsRow) -> View:
    return {
        "name": row.namespace,
        "kind": "grants",
        **row.document,
        "version": row.version,
        "updated_at": iso(row.updated_at),
        "updated_by": row.by,
    }


def prefix_view(row: PrefixRow) -> View:
    return {
        "bucket": row.bucket,
        "prefix": row.prefix,
        "namespace": row.namespace,
        "dataset": row.dataset or None,
        "given": row.owner != "",
    }


def schedule_view(schedule_state: ScheduleState, schedule: Schedule) -> View:
    return {
        "name": schedule_state.schedule,
        "kind": "schedule",
        **schedule.model_dump(mode="json"),
        "state": schedule_state.mode,
        "enabled": schedule_state.mode == "enabled",
        "pause_reason": schedule_state.reason or None,
        "skips": [iso(at) for at in schedule_state.skips],
        "triggered_by": tree.describe(schedule.trigger),
        "version": schedule_state.version,
        "generation": schedule_state.generation,
        "updated_at": iso(schedule_state.updated_at),
        "updated_by": schedule_state.by,
        **({"dag": ids.dag_of(schedule_state.schedule)} if ids.is_of_dag(schedule_state.schedule) else {}),
    }


def reason_view(reason: Why) -> View:
    """A reason for people, and its code for programs."""
    return {"reason": reason.text, "code": reason.code or None}


def job_view(job: Job) -> View:
    return {
        "job_id": job.job_id,
        "schedule": job.schedule,
        "kind": job.kind,
        "state": job.state,
        **reason_view(job.reason),
        "created_at": iso(job.created_at),
        "due_at": iso_or_none(job.due_at),
        "nominal_at": iso_or_none(job.nominal_at if job.nominal_at is not None else job.due_at),
        "met_at": iso_or_none(job.met_at),
        "wake_at": iso_or_none(job.wake_at),
        "queued_in": job.queued_in,
        "holds": list(job.held),
        "correlation": rounds.without(job.correlation),
        "dag": rounds.dag_view(job),
        "attempt": job.attempt,
        "inherited_priority": job.inherited.text or None,
        "approvals": [{"for": key, "by": given["by"], "at": iso(given["at"])} for key, given in job.approved.items()],
        "backfill": job.backfill,
        "progress": {leaf: gathered.count for leaf, gathered in job.leaves.items()},
        "requested_by": job.requested_by,
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
        **reason_view(run.reason),
        "fired_by": run.fired_by.text,
        "kind": run.kind,
        **account(run, prices),
        "backfill": run.backfill,
        "rerun_of": run.rerun_of,
        "requested_by": run.requested_by,
        "outcome": run.outcome,
        "metrics": dict(run.metrics) if run.metrics else None,
        "priority": run.priority,
        "correlation": rounds.without(run.correlation),
        "partition": rounds.without(run.partition),
        "dag": rounds.dag_view(run),
        "properties": dict(run.request.properties),
        "target": dict(run.request.target),
        "target_id": run.target_id,
        "context": run.request.context_uri,
        "created_at": iso(run.created_at),
        "nominal_at": iso_or_none(run.nominal_at),
        "due_at": iso_or_none(run.due_at),
        "late": run.late,
        "lateness_ms": run.lateness,
        "accepted_at": iso_or_none(run.accepted_at),
        "claimed_at": iso(run.claimed_at),
        "start_requested_at": iso_or_none(run.start_requested_at),
        "started_at": iso_or_none(run.started_at),
        "ended_at": iso_or_none(run.ended_at),
        "start_calls": run.calls,
    }


def record_view(record: Record) -> View:
    return {
        "id": record.id,
        "kind": record.kind,
        "schedule": record.schedule,
        **reason_view(record.reason),
        "at": iso(record.recorded_at),
        "count": record.count,
    }


def ended_view(run: Run) -> View:
    """A run that was aborted or cancelled, in the form of a record."""
    return {
        "id": run.run_id,
        "kind": run.state,
        "schedule": run.schedule,
        **reason_view(run.reason),
        "at": iso(run.ended_at if run.ended_at is not None else run.claimed_at),
        "count": 1,
    }


def version_view(row: Version, before: Version | None) -> View:
    """A version of a schedule, with its author, its instant and the fields that it changed (L7)."""
    return {
        "version": row.version,
        "created_at": iso(row.created_at),
        "created_by": row.by,
        "changes": diff.changes(before.definition, row.definition) if before else ["created"],
        "definition": dict(row.definition),
    }


def dry_run_view(schedule: Schedule, steps: Sequence[Step], left: Sequence[Job], now: Instant) -> View:
    """The dry run of a trigger: its state after each event, and the events that it still waits for after the last."""
    fires, end = sum(step.fires for step in steps), steps[-1].at if steps else now
    waiting = [tree.evaluate(schedule.trigger, job.leaves, end) for job in left]
    why = "; ".join(verdict.why.text for verdict in waiting[:3]) or f"waits for {tree.describe(schedule.trigger)}"
    return {
        "steps": [
            {
                "at": iso(step.at),
                "event": step.event,
                "touched": step.touched,
                "fires": step.fires,
                "why": step.why,
                "arrived": list(step.verdict.arrived),
                "missing": list(step.verdict.missing),
            }
            for step in steps
        ],
        "fires": fires,
        "left": [
            {
                "why": verdict.why.text,
                "changes_at": iso_or_none(verdict.changes_at),
                "correlation": rounds.without(job.correlation),
            }
            for job, verdict in zip(left, waiting, strict=True)
        ],
        "why": f"fires {text.count_of(fires, 'time')}; then {why}",
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


def events_view(ports: Ports, run: Run) -> list[View]:
    """The events that a run got. The rows of those that it gathered expire before the run, and its stored context does
    not."""
    if run.event is None and ports.clock.now() - run.claimed_at >= CLAIMED_LIFE:
        stored = context.stored_events(ports, run)
        if stored is not None:
            return stored
    return [context.describe_event(event) for event in context.events_of(ports, run)]
