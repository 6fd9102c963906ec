"""Structured logs: one JSON object per line, with the ids that identify a job or run in all steps."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.logging import Logger

from chalicelib.core import ids
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run

logger = Logger(service="sluice", utc=True)


def job_fields(job: Job) -> dict[str, Any]:
    """The log fields that identify a job. Its run has the same id."""
    return {"schedule": ids.plain(job.schedule), "job": job.job_id, "attempt": job.attempt}


def run_fields(run: Run) -> dict[str, Any]:
    """The log fields that identify a run. Its job has the same id."""
    return {"schedule": ids.plain(run.schedule), "run": run.run_id, "attempt": run.attempt}
