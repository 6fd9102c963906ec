"""Sluice's own app, `system.history`: upload its jobs to the control bucket, deploy its definitions through the API.

    python -m infra.system_app STAGE

`make up` does this for the local cloud. For a stage in AWS it is the second step, after `make deploy`. The API must be
reachable, and the caller must be allowed to use it. The command is idempotent.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra import stack
from sluice import documents
from sluice.client import Client
from sluice.errors import Failure

ROOT = Path(__file__).resolve().parent.parent
APP = ROOT / "sluice" / "system_app.yaml"
JOBS = (
    *(ROOT / "jobs" / name for name in ("history_compact.py", "history_report.py", "history_days.py")),
    ROOT / "job_library" / "sluice_job.py",
)
PATH = "/v1/namespaces/system"


def fingerprint() -> str:
    """A hash of everything that is installed."""
    digest = hashlib.sha256()
    for file in (APP, *JOBS):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def install(s3: Any, outputs: Mapping[str, str], client: Client) -> dict[str, Any]:
    """Upload the jobs and deploy the app; returns the API's report of the changes.

    The name of the jobs contains a hash of their content, so that an active run keeps the jobs with which it started.
    Raises `Failure` for errors of the API, `ClientError` and `BotoCoreError` for errors of S3.
    """
    folder = f"code/history/{fingerprint()[:16]}/"
    for job in JOBS:
        s3.put_object(Bucket=outputs["ControlBucket"], Key=folder + job.name, Body=job.read_bytes())
    values = {"lake": outputs["LakeBucket"], "code": f"s3://{outputs['ControlBucket']}/{folder}"}
    client.put(PATH, {"description": "Sluice's own workflows"})
    report: dict[str, Any] = client.put(f"{PATH}/apps/history", documents.load(str(APP), values))
    return report


def main(argv: list[str] | None = None) -> int:
    """Command line. Exit code 1 with one message if a service refuses a call or is not reachable."""
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        print("usage: python -m infra.system_app STAGE", file=sys.stderr)
        return 2
    session = boto3.Session()
    name = f"sluice-{arguments[0]}"
    try:
        outputs = stack.outputs(session.client("cloudformation"), name)
        if "ApiUrl" not in outputs:
            print(
                f"system app: expected stack {name}, got none; run `make deploy STAGE={arguments[0]}` first",
                file=sys.stderr,
            )
            return 1
        report = install(session.client("s3"), outputs, Client(outputs["ApiUrl"]))
    except (Failure, ClientError, BotoCoreError) as error:
        print(f"system app: {error}", file=sys.stderr)
        return 1
    changed = [*report["created"], *report.get("replaced", ())]
    print(f"system.history: {', '.join(changed) or 'unchanged'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
