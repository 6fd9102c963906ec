"""Structured logs: one JSON object a line, with the ids that follow a piece of work through the steps."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.logging import Logger

from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run

logger = Logger(service="sluice", utc=True)


def job_fields(job: Job) -> dict[str, Any]:
    """The fields by which the lines about a job are found. Its run has the same id."""
    return {"schedule": job.schedule, "job": job.job_id, "attempt": job.attempt}


def run_fields(run: Run) -> dict[str, Any]:
    """The fields by which the lines about a run are found. Its job has the same id."""
    return {"schedule": run.schedule, "run": run.run_id, "attempt": run.attempt}
