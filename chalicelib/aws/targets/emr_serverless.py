"""EMR Serverless as a target: start, ask, find, cancel. Every answer is put into one of four words (`core/launch`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core.complete import News
from chalicelib.core.launch import Answer, Never, NoAnswer, NotNow, Started
from chalicelib.core.prices import Usage
from chalicelib.core.rows import Run
from chalicelib.core.states import EMR_STATE

# https://docs.aws.amazon.com/emr-serverless/latest/APIReference/CommonErrors.html
_NOT_NOW = {"ThrottlingException", "TooManyRequestsException", "ServiceQuotaExceededException", "RequestLimitExceeded"}
_NO_ANSWER = {"InternalServerException", "InternalFailure", "ServiceUnavailable", "RequestTimeout"}
UNKNOWN = "the target knows no such run any more"
MOST_REASON = 4_000  # characters of the driver's last lines that a run row keeps


class EmrServerlessTarget:
    def __init__(self, client: Any, application_id: str, role_arn: str, control_bucket: str) -> None:
        self._client = client
        self._application_id = application_id
        self._role_arn = role_arn
        self._control_bucket = control_bucket

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        del context  # it stands in the control bucket, and the job reads it there
        try:
            answer = self._client.start_job_run(**self.request(run))
        except ClientError as error:
            return _refusal(error)
        except BotoCoreError as error:
            return NoAnswer(f"StartJobRun gave no answer: {error}")
        return Started(f"{answer['applicationId']}/{answer['jobRunId']}")

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        """StartJobRun knows no batches, and its pace is a line's business."""
        return [self.start(run, context) for run, context in calls]

    def request(self, run: Run) -> dict[str, Any]:
        """The exact StartJobRun request of a run: it follows from the stored row alone."""
        target = run.request.target
        driver: dict[str, Any] = {
            "entryPoint": target["entry_point"],
            "entryPointArguments": [*target["arguments"], "--sluice-context", run.request.context_uri],
        }
        parameters = [f"--py-files {','.join(target['py_files'])}"] if target["py_files"] else []
        parameters += [f"--conf {name}={value}" for name, value in sorted(target["spark"].items())]
        if parameters:
            driver["sparkSubmitParameters"] = " ".join(parameters)
        logs = {"s3MonitoringConfiguration": {"logUri": f"s3://{self._control_bucket}/logs/"}}
        return {
            "applicationId": target["application_id"] or self._application_id,
            "executionRoleArn": target["execution_role_arn"] or self._role_arn,
            "clientToken": run.request.client_token,
            "name": run.request.name,
            "jobDriver": {"sparkSubmit": driver},
            "configurationOverrides": {"monitoringConfiguration": logs},
            "tags": {"sluice:schedule": run.schedule, "sluice:workflow": run.workflow},
        }

    def ask(self, run: Run) -> News | None:
        application_id, _, job_run_id = (run.target_id or "").partition("/")
        try:
            found = self._client.get_job_run(applicationId=application_id, jobRunId=job_run_id)["jobRun"]
        except self._client.exceptions.ResourceNotFoundException:
            return News("FAILED", run.start_requested_at or run.claimed_at, UNKNOWN, run.target_id)
        state = EMR_STATE.get(found["state"], "STARTING")
        if state == "STARTING":
            return None
        reason = str(found.get("stateDetails") or "")[-MOST_REASON:] if state in ("FAILED", "CANCELLED") else ""
        at = round(found["updatedAt"].timestamp() * 1000)
        return News(state, at, reason, run.target_id, _billed(found.get("billedResourceUtilization")))

    def find(self, run: Run) -> str | None:
        application_id = run.request.target["application_id"] or self._application_id
        # The listing is by creation; a day before the first call leaves room for any clock.
        since = datetime.fromtimestamp((run.start_requested_at or run.claimed_at) / 1000, UTC) - timedelta(days=1)
        pages = self._client.get_paginator("list_job_runs").paginate(applicationId=application_id, createdAtAfter=since)
        for page in pages:
            for found in page["jobRuns"]:
                if found.get("name") == run.request.name:
                    return f"{application_id}/{found['id']}"
        return None

    def cancel(self, run: Run) -> None:
        application_id, _, job_run_id = (run.target_id or "").partition("/")
        try:
            self._client.cancel_job_run(applicationId=application_id, jobRunId=job_run_id)
        except (self._client.exceptions.ResourceNotFoundException, self._client.exceptions.ValidationException):
            return  # it has ended already: the question that follows tells how

    def run_name(self, application_id: str, job_run_id: str) -> str | None:
        try:
            found = self._client.get_job_run(applicationId=application_id, jobRunId=job_run_id)["jobRun"]
        except self._client.exceptions.ResourceNotFoundException:
            return None
        return str(found.get("name") or "") or None


def _billed(hours: Mapping[str, float] | None) -> tuple[int, ...]:
    """https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_ResourceUtilization.html"""
    if hours is None:
        return ()
    return Usage(hours.get("vCPUHour", 0), hours.get("memoryGBHour", 0), hours.get("storageGBHour", 0)).stored()


def _refusal(error: ClientError) -> Answer:
    code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _NOT_NOW:
        return NotNow(f"EMR Serverless refused for now: {code}")
    if code in _NO_ANSWER or status >= 500:
        return NoAnswer(f"StartJobRun gave no answer: {code}")
    return Never(f"EMR Serverless refused the start: {code}: {message}")
