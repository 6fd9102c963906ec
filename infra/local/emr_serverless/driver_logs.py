"""Uploads a driver's logs to the S3 paths that EMR Serverless uses."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any

from . import aws, s3_paths
from .records import JobRun

log = logging.getLogger(__name__)


def destination(run: JobRun) -> s3_paths.S3Path | None:
    """`<logUri>/applications/<application>/jobs/<run>/SPARK_DRIVER/`, or None if the run has no logs in S3.

    A run with a retry policy has one directory per attempt, `.../jobs/<run>/attempts/<n>/SPARK_DRIVER/`.
    """
    monitoring = (run.request.get("configurationOverrides") or {}).get("monitoringConfiguration") or {}
    uri = (monitoring.get("s3MonitoringConfiguration") or {}).get("logUri")
    root = s3_paths.parse(uri) if uri else None
    if root is None:
        return None
    attempt = f"/attempts/{run.attempt}" if run.max_attempts > 1 else ""
    prefix = f"{root.key.rstrip('/')}/" if root.key else ""
    return s3_paths.S3Path(
        root.bucket, f"{prefix}applications/{run.application_id}/jobs/{run.id}{attempt}/SPARK_DRIVER/"
    )


def upload(s3: Any, run: JobRun, logs: Path) -> None:
    """Upload `stdout.gz` and `stderr.gz`. As in AWS, a failure does not change the result of the run; it is logged."""
    target = destination(run)
    if target is None:
        return
    try:
        for name in ("stdout", "stderr"):
            body = gzip.compress((logs / name).read_bytes())
            s3.put_object(Bucket=target.bucket, Key=f"{target.key}{name}.gz", Body=body)
    except aws.FAILURES as error:
        log.warning("logs of run %s could not be put to %s: %s", run.id, target, error)
