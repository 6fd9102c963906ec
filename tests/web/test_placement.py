"""Other EMR applications and roles than the stack's own: those that the stack lists are accepted, no others (W13)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from chalicelib.wiring import ports
from tests.web.conftest import APP, WEEKDAYS, Api

EMR: dict[str, Any] = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
OWN_ROLE, ROLE = "arn:aws:iam::123456789012:role/job", "arn:aws:iam::123456789012:role/other"
GONE = "00nosuchapplication"  # listed, but it does not exist at EMR
UNLISTED = "00unlisted"
UNLISTED_ROLE = "arn:aws:iam::123456789012:role/admin"


@pytest.fixture
def other(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Another application, which the stack lists together with a role."""
    emr = boto3.client("emr-serverless")
    made: str = emr.create_application(name="other", type="SPARK", releaseLabel="emr-7.1.0", clientToken="other")[
        "applicationId"
    ]
    monkeypatch.setenv("SLUICE_EMR_APPLICATION_IDS", f"{made}, {GONE}")
    monkeypatch.setenv("SLUICE_EMR_ROLE_ARNS", ROLE)
    ports.cache_clear()
    yield made
    ports.cache_clear()


def run_of(api: Api, workflow: dict[str, Any], **schedule: Any) -> dict[str, Any]:
    api.put(f"{APP}/workflows/spark", workflow)
    api.schedule("nightly", workflow="spark", trigger=WEEKDAYS, **schedule)
    job = api.post(f"{APP}/schedules/nightly/run")["job_id"]
    api.work()
    found: dict[str, Any] = api.get(f"/v1/runs/{job}")
    return found


def test_w13_a_listed_application_and_role_of_workflow_reach_emr(api: Api, other: str) -> None:
    run = run_of(api, {"target": {**EMR, "application_id": other, "execution_role_arn": ROLE}})
    assert run["target_id"].startswith(f"{other}/")
    assert (run["target"]["application_id"], run["target"]["execution_role_arn"]) == (other, ROLE)
    answer = boto3.client("emr-serverless").get_job_run(
        applicationId=other, jobRunId=run["target_id"].partition("/")[2]
    )["jobRun"]
    assert answer["executionRole"] == ROLE


def test_w13_the_application_and_role_of_the_stack_may_be_named(api: Api) -> None:
    own = ports().settings.emr_application_id
    run = run_of(api, {"target": {**EMR, "application_id": own, "execution_role_arn": OWN_ROLE}})
    assert run["target_id"].startswith(f"{own}/")


@pytest.mark.parametrize("where", ["target", "resources of the workflow", "resources of the schedule"])
def test_w13_a_listed_application_refused_by_emr_fails_the_run(api: Api, other: str, where: str) -> None:
    workflow: dict[str, Any] = {"target": {**EMR, "application_id": GONE} if where == "target" else EMR}
    if where == "resources of the workflow":
        workflow["resources"] = {"application": GONE}
    schedule = {"resources": {"application": GONE}} if where == "resources of the schedule" else {}
    run = run_of(api, workflow, **schedule)
    assert (run["state"], run["target_id"]) == ("FAILED", None)
    assert run["reason"].startswith("EMR Serverless refused the start: ")
    assert (run["target"]["application_id"], run["start_calls"]) == (GONE, 1)


@pytest.mark.parametrize(
    ("workflow", "field", "got", "parameter"),
    [
        ({"target": {**EMR, "application_id": UNLISTED}}, "target.application_id", UNLISTED, "EmrApplicationIds"),
        (
            {"target": {**EMR, "execution_role_arn": UNLISTED_ROLE}},
            "target.execution_role_arn",
            UNLISTED_ROLE,
            "EmrRoleArns",
        ),
        (
            {"target": EMR, "resources": {"application": UNLISTED}},
            "resources.application",
            UNLISTED,
            "EmrApplicationIds",
        ),
    ],
)
def test_w13_a_workflow_with_an_unlisted_application_is_refused(
    api: Api, other: str, workflow: dict[str, Any], field: str, got: str, parameter: str
) -> None:
    before = api.everything()
    error = api.refused(400, "PUT", f"{APP}/workflows/spark", workflow)
    own, listed = ports().settings.emr_application_id, f"{other}, {GONE}"
    expected = f"{own}, {listed}" if parameter == "EmrApplicationIds" else f"{OWN_ROLE}, {ROLE}"
    assert (error["code"], error["field"]) == ("invalid", field)
    assert error["message"] == f"expected one of {expected}, got '{got}'"
    assert error["hint"] == f"add it to the stack parameter {parameter} and deploy, or leave it out"
    assert api.everything() == before


def test_w13_an_app_with_an_unlisted_application_is_not_deployed(api: Api, other: str) -> None:
    before = api.everything()
    document = {"workflows": {"spark": {"target": {**EMR, "application_id": UNLISTED}}}, "schedules": {}}
    error = api.refused(400, "PUT", "/v1/namespaces/demo/apps/more", document)
    assert error["field"] == "workflows.spark.target.application_id"
    assert api.everything() == before


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"resources": {"application": UNLISTED}}, "resources.application"),
        (
            {"constraints": [{"type": "load", "of": {"emr_application": UNLISTED}, "below": 0.5}]},
            "constraints.0.of.emr_application",
        ),
    ],
)
def test_w13_a_schedule_with_an_unlisted_application_is_refused(
    api: Api, other: str, changed: dict[str, Any], field: str
) -> None:
    body = {"workflow": "clean", "trigger": WEEKDAYS, **changed}
    error = api.refused(400, "PUT", f"{APP}/schedules/nightly", body)
    assert (error["code"], error["field"]) == ("invalid", field)
    assert "EmrApplicationIds" in error["hint"]


def test_w13_a_message_to_an_unlisted_application_is_refused(api: Api, other: str) -> None:
    body = {"due_time": "10m", "target": {**EMR, "application_id": UNLISTED}}
    error = api.refused(400, "PUT", f"{APP}/messages/hello", body)
    assert (error["code"], error["field"]) == ("invalid", "target.application_id")
