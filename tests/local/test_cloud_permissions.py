"""ministack and the emulator of EMR refuse a Lambda of the local cloud that lacks a permission."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from infra.local import refusals
from infra.local.endpoints import Endpoints
from infra.local.layout import Layout
from infra.local.rollout import STACK
from tests.local.conftest import eventually
from tests.support.cloud import cloud as cloud

pytestmark = pytest.mark.cloud
KNOWN = "was not started by Sluice"
PATIENCE = 30.0  # seconds: the emulator caches a role for five


@pytest.fixture
def without(cloud: Endpoints) -> Iterator[Callable[[str], None]]:
    """Remove a statement from the role of `run_state`. At the end the role is restored, and the refusals
    are cleared.
    """
    iam = cloud.client("iam")
    [role] = [each["RoleName"] for each in iam.list_roles()["Roles"] if f"{STACK}-RunStateRole" in each["RoleName"]]
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    kept = {name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names}

    def put(left_out: str = "") -> None:
        for name, document in kept.items():
            left = [each for each in document["Statement"] if each.get("Sid") != left_out]
            document = json.dumps({**document, "Statement": left})
            iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=document)

    yield put
    put()
    eventually(lambda: KNOWN in run_state(cloud), PATIENCE)
    Layout().refusals.unlink(missing_ok=True)


def run_state(cloud: Endpoints) -> str:
    """The answer of the Lambda for an unknown run: it reads the table, and polls EMR by the run's name."""
    detail = {"applicationId": cloud.outputs["EmrApplicationId"], "jobRunId": "nosuch", "state": "RUNNING"}
    event: dict[str, Any] = {"version": "0", "id": "1", "source": "aws.emr-serverless", "account": "000000000000"}
    event |= {"region": "us-east-1", "resources": [], "time": "2026-03-02T12:00:00Z", "detail": detail}
    event["detail-type"] = "EMR Serverless Job Run State Change"
    answer = cloud.client("lambda").invoke(FunctionName="sluice-local-run-state", Payload=json.dumps(event).encode())
    return str(answer["Payload"].read().decode())


@pytest.mark.parametrize(
    ("statement", "action"), [("AskAboutTheRun", "emr-serverless:GetJobRun"), ("Runs", "dynamodb:GetItem")]
)
def test_a_call_beyond_the_role_is_refused_and_logged(
    cloud: Endpoints, without: Callable[[str], None], statement: str, action: str
) -> None:
    assert KNOWN in run_state(cloud)
    before = len(refusals.read(Layout().refusals))
    without(statement)
    eventually(lambda: f"is not authorized to perform: {action}" in run_state(cloud), PATIENCE)
    assert {each["action"] for each in refusals.read(Layout().refusals, before)} == {action}
