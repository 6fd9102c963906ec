"""Another EMR application or role than the stack's: taken in by the API, and left to AWS to allow (W13)."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from tests.web.conftest import APP, WEEKDAYS, Api

EMR: dict[str, Any] = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
ROLE = "arn:aws:iam::123456789012:role/other"


def run_of(api: Api, workflow: dict[str, Any], **schedule: Any) -> dict[str, Any]:
    api.put(f"{APP}/workflows/spark", workflow)
    api.schedule("nightly", workflow="spark", trigger=WEEKDAYS, **schedule)
    job = api.post(f"{APP}/schedules/nightly/run")["job_id"]
    api.work()
    found: dict[str, Any] = api.get(f"/v1/runs/{job}")
    return found


def test_w13_the_application_and_role_of_a_workflow_reach_emr_where_the_account_allows_them(api: Api) -> None:
    other = boto3.client("emr-serverless").create_application(
        name="other", type="SPARK", releaseLabel="emr-7.1.0", clientToken="other"
    )["applicationId"]
    run = run_of(api, {"target": {**EMR, "application_id": other, "execution_role_arn": ROLE}})
    assert run["target_id"].startswith(f"{other}/")
    assert (run["target"]["application_id"], run["target"]["execution_role_arn"]) == (other, ROLE)
    told = boto3.client("emr-serverless").get_job_run(applicationId=other, jobRunId=run["target_id"].partition("/")[2])[
        "jobRun"
    ]
    assert told["executionRole"] == ROLE


@pytest.mark.parametrize("where", ["target", "resources of the workflow", "resources of the schedule"])
def test_w13_an_application_that_emr_refuses_is_stored_and_fails_the_run_with_the_reason(api: Api, where: str) -> None:
    gone = "00nosuchapplication"
    workflow: dict[str, Any] = {"target": {**EMR, "application_id": gone} if where == "target" else EMR}
    if where == "resources of the workflow":
        workflow["resources"] = {"application": gone}
    schedule = {"resources": {"application": gone}} if where == "resources of the schedule" else {}
    run = run_of(api, workflow, **schedule)
    assert (run["state"], run["target_id"]) == ("FAILED", None)
    assert run["reason"].startswith("EMR Serverless refused the start: ")
    assert (run["target"]["application_id"], run["start_calls"]) == (gone, 1)
