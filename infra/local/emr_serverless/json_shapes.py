"""Applications and runs in the shapes of the API model; the serializer selects the members of the model."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from .records import Application, JobRun, Usage


def application(one: Application) -> dict[str, Any]:
    """The shape `Application`: the parameters as sent, and the members that the service adds."""
    defaults = {
        "autoStartConfiguration": {"enabled": True},
        "autoStopConfiguration": {"enabled": True, "idleTimeoutMinutes": 15},
    }
    return {**defaults, **one.request, "applicationId": one.id, **application_summary(one)}


def application_summary(one: Application) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "arn": one.arn,
        "releaseLabel": one.release_label,
        "type": one.type,
        "state": one.state,
        "stateDetails": "",
        "createdAt": _instant(one.created_at),
        "updatedAt": _instant(one.updated_at),
    }


def job_run(run: JobRun) -> dict[str, Any]:
    """The shape `JobRun`. It has durations and resources once the run has ended."""
    shape = {
        **run.request,
        **job_run_summary(run),
        "jobRunId": run.id,
        "executionTimeoutMinutes": run.timeout_minutes,
        "startedAt": _instant(run.started_at) if run.started_at is not None else None,
        "endedAt": _instant(run.ended_at) if run.ended_at is not None else None,
        "queuedDurationMilliseconds": 0,
        "totalResourceUtilization": _hours(run.used),
        "billedResourceUtilization": _hours(run.billed),
        "totalExecutionDurationSeconds": _duration_s(run),
    }
    return {name: value for name, value in shape.items() if value is not None}


def job_run_summary(run: JobRun) -> dict[str, Any]:
    return {
        "applicationId": run.application_id,
        "id": run.id,
        "name": run.name,
        "mode": run.request.get("mode") or "BATCH",
        "arn": run.arn,
        "createdBy": run.created_by,
        "createdAt": _instant(run.created_at),
        "updatedAt": _instant(run.updated_at),
        "executionRole": run.execution_role,
        "state": run.state,
        "stateDetails": run.state_details,
        "releaseLabel": run.release_label,
        "type": "Spark",
        "attempt": run.attempt,
        "attemptCreatedAt": _instant(run.attempt_created_at),
        "attemptUpdatedAt": _instant(run.updated_at),
    }


def attempt_summary(run: JobRun) -> dict[str, Any]:
    """The shape `JobRunAttemptSummary` of a run as of one of its attempts."""
    created = {"jobCreatedAt": _instant(run.created_at), "createdAt": _instant(run.attempt_created_at)}
    return {**job_run_summary(run), **created}


def _duration_s(run: JobRun) -> int | None:
    if run.ended_at is None:
        return None
    return round(run.ended_at - run.started_at) if run.started_at is not None else 0


def _hours(usage: Usage | None) -> dict[str, float] | None:
    if usage is None:
        return None
    return {
        "vCPUHour": usage.vcpu_hours,
        "memoryGBHour": usage.memory_gb_hours,
        "storageGBHour": usage.storage_gb_hours,
    }


def _instant(epoch: float) -> datetime:
    return datetime.fromtimestamp(epoch, UTC)
