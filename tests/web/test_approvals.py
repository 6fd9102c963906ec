"""Approvals over HTTP: the signer of the request approves or rejects, and what follows (C16)."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from app import app
from tests.web.conftest import APP, WEEKDAYS, Api

ADA = "arn:aws:sts::123456789012:assumed-role/DataOwner/ada"
BOB = "arn:aws:iam::123456789012:user/bob"
EVE = "arn:aws:sts::123456789012:assumed-role/Reader/DataOwner"
BY_OWNER = {"type": "approval", "role": "DataOwner"}


def says(arn: str, job: str, verdict: str, reason: str = "") -> tuple[int, dict[str, Any]]:
    """A request as API Gateway passes it on after IAM has identified its signer."""
    path = f"/v1/jobs/{job}/{verdict}"
    event = {
        "httpMethod": "POST",
        "path": path,
        "headers": {},
        "multiValueHeaders": {},
        "multiValueQueryStringParameters": None,
        "pathParameters": {"job_id": job},
        "stageVariables": None,
        "body": json.dumps({"reason": reason}),
        "isBase64Encoded": False,
        "requestContext": {
            "httpMethod": "POST",
            "path": path,
            "resourcePath": f"/v1/jobs/{{job_id}}/{verdict}",
            "requestId": "r1",
            "identity": {"userArn": arn},
        },
    }
    answer = app(event, SimpleNamespace(aws_request_id="r1", function_name="api", memory_limit_in_mb="512"))
    return answer["statusCode"], json.loads(answer["body"])


def stored(api: Api) -> list[Any]:
    """Every stored row but the audit records of refusals."""
    return [[row for row in table if "AUDIT#" not in row] for table in api.everything()]


@pytest.fixture
def job(api: Api) -> str:
    """A job that waits only for the approval of a data owner."""
    api.schedule("nightly", workflow="notify", trigger=WEEKDAYS, constraints=[BY_OWNER])
    made: str = api.post(f"{APP}/schedules/nightly/run", {"properties": {"day": "1"}})["job_id"]
    api.work()
    assert api.get(f"/v1/jobs/{made}/why")["why"] == "approved by a DataOwner, else wait: waits for approval"
    return made


def test_c16_a_person_with_the_role_approves_and_is_on_record(api: Api, job: str) -> None:
    status, answer = says(ADA, job, "approve", "the figures are in")
    assert status == 200
    [given] = answer["approvals"]
    assert (given["for"], given["by"]) == ("DataOwner", ADA)
    api.work()
    run = api.get(f"/v1/runs/{job}")
    assert (run["state"], run["properties"]) == ("SUCCEEDED", {"day": "1"})
    assert f"approved by {ADA} at " in run["fired_by"]
    assert run["fired_by"].endswith(": the figures are in")


def test_c16_a_person_with_the_role_refuses_and_job_is_aborted(api: Api, job: str) -> None:
    status, answer = says(ADA, job, "refuse", "not this week")
    assert (status, answer["job_id"], answer["state"]) == (200, job, "ABORTED")
    assert answer["reason"].startswith(f"refused by {ADA} at ")
    api.work()
    assert api.refused(404, "GET", f"/v1/runs/{job}")["code"] == "not_found"
    [record] = api.get(f"{APP}/schedules/nightly/records")["items"]
    assert (record["id"], record["kind"]) == (job, "ABORTED")
    assert record["reason"].endswith(": not this week")
    assert says(ADA, job, "approve")[0] == 404, "what was refused is not approved any more"


@pytest.mark.parametrize("stranger", [BOB, EVE])
def test_c16_others_are_refused_and_change_nothing(api: Api, job: str, stranger: str) -> None:
    before = stored(api)
    for verdict in ("approve", "refuse"):
        status, answer = says(stranger, job, verdict)
        assert (status, answer["error"]["code"]) == (403, "forbidden")
        assert stranger in answer["error"]["message"]
    assert stored(api) == before


def test_c16_a_named_person_approves_and_two_names_need_both(api: Api) -> None:
    both = [BY_OWNER, {"type": "approval", "people": [BOB]}]
    api.schedule("nightly", workflow="notify", trigger=WEEKDAYS, constraints=both)
    job = api.post(f"{APP}/schedules/nightly/run")["job_id"]
    api.work()
    assert says(BOB, job, "approve")[0] == 200
    api.work()
    assert api.get(f"/v1/jobs/{job}")["approvals"][0]["by"] == BOB
    assert says(ADA, job, "approve")[0] == 200
    api.work()
    assert api.get(f"/v1/runs/{job}")["state"] == "SUCCEEDED"
