"""The local cloud refuses a Lambda's call that its role does not allow, and records the refusal."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from infra.local import callers, refusals
from infra.local.emr_serverless import errors
from infra.local.emr_serverless.permissions import Permissions, statements_of
from infra.local.permissions import Place
from tests.local.conftest import ROLE, Emulators, client

KEY = "ASIA0123456789ABCDEF"
CHECK = "arn:aws:sts::000000000000:assumed-role/sluice-local-CheckRole-X/sluice-local-check"
SIGNED = f"AWS4-HMAC-SHA256 Credential={KEY}/20260302/us-east-1/emr-serverless/aws4_request, SignedHeaders=host"
APPLICATION = "arn:aws:emr-serverless:us-east-1:000000000000:/applications/00app"
RUN = {"applicationId": "00app", "jobRunId": "jr"}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A local cloud in which one Lambda has keys."""
    sts = SimpleNamespace(register_session=lambda key, session: None)
    callers.install(sts, tmp_path / "callers.json")
    sts.register_session(KEY, {"Arn": CHECK})
    return tmp_path


def allowing(*actions: str, on: str = f"{APPLICATION}/jobruns/*") -> list[dict[str, Any]]:
    return [{"Effect": "Allow", "Action": list(actions), "Resource": on}]


def test_a_lambda_is_refused_what_its_role_forbids_on_record(known: Path) -> None:
    permissions = Permissions(lambda role: allowing("emr-serverless:GetJobRun"), known, Place())

    permissions.admit(SIGNED, "GetJobRun", RUN)
    assert refusals.read(known / "refusals.jsonl") == []

    with pytest.raises(errors.ApiError, match="not authorized to perform: emr-serverless:CancelJobRun") as refused:
        permissions.admit(SIGNED, "CancelJobRun", RUN)
    assert (refused.value.code, refused.value.status) == ("AccessDeniedException", 403)
    assert refusals.read(known / "refusals.jsonl") == [
        {"caller": CHECK, "action": "emr-serverless:CancelJobRun", "resource": f"{APPLICATION}/jobruns/jr"}
    ]


def test_a_start_is_refused_without_the_right_to_pass_its_role(known: Path) -> None:
    start = {"applicationId": "00app", "executionRoleArn": ROLE}
    allowed = allowing("emr-serverless:StartJobRun", on=APPLICATION)
    with pytest.raises(errors.ApiError, match="iam:PassRole"):
        Permissions(lambda role: allowed, known, Place()).admit(SIGNED, "StartJobRun", start)
    allowed += allowing("iam:PassRole", on=ROLE)
    Permissions(lambda role: allowed, known, Place()).admit(SIGNED, "StartJobRun", start)


def test_a_caller_that_is_no_cloud_lambda_needs_no_role(tmp_path: Path) -> None:
    def nobody(role: str) -> list[Any]:
        raise AssertionError(f"expected no role to be asked for, got {role}")

    Permissions(nobody, tmp_path, Place()).admit(SIGNED, "CancelJobRun", RUN)
    Permissions(nobody, tmp_path, Place()).admit("", "CancelJobRun", RUN)


def test_a_redeployed_role_is_effective_within_seconds(known: Path) -> None:
    allowed, clock, asked = allowing("emr-serverless:GetJobRun"), Clock(), []

    def statements(role: str) -> list[dict[str, Any]]:
        asked.append(role)
        return list(allowed)

    permissions = Permissions(statements, known, Place(), clock)
    for _ in range(3):
        permissions.admit(SIGNED, "GetJobRun", RUN)
    assert asked == ["sluice-local-CheckRole-X"]
    allowed.clear()
    clock.now = 5.1
    with pytest.raises(errors.ApiError):
        permissions.admit(SIGNED, "GetJobRun", RUN)


def test_the_statements_of_a_role_are_those_of_all_its_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with mock_aws():
        iam = boto3.client("iam", region_name="us-east-1")
        iam.create_role(RoleName="check", AssumeRolePolicyDocument="{}")
        for name, action in (("a", "s3:GetObject"), ("b", "s3:PutObject")):
            document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]}
            iam.put_role_policy(RoleName="check", PolicyName=name, PolicyDocument=json.dumps(document))
        assert sorted(each["Action"] for each in statements_of(iam)("check")) == ["s3:GetObject", "s3:PutObject"]


def test_a_lambda_gets_the_refusal_in_the_form_of_aws(emulators: Emulators, cloud: str, known: Path) -> None:
    """The role is that of the cloud around the emulator; users need none."""
    iam = client("iam", cloud)
    iam.create_role(RoleName="sluice-local-CheckRole-X", AssumeRolePolicyDocument="{}")
    emr = emulators.start(state_dir=known / "emr", endpoint_url=cloud, instant_ms=60_000)
    run = emr.start()
    policy = {"Version": "2012-10-17", "Statement": allowing("emr-serverless:GetJobRun", on="*")}
    iam.put_role_policy(RoleName="sluice-local-CheckRole-X", PolicyName="own", PolicyDocument=json.dumps(policy))
    check: Any = boto3.client(
        "emr-serverless", "us-east-1", endpoint_url=emr.emulator.url, aws_access_key_id=KEY, aws_secret_access_key="x"
    )

    assert check.get_job_run(applicationId=emr.application, jobRunId=run)["jobRun"]["jobRunId"] == run
    with pytest.raises(ClientError, match="AccessDeniedException.*emr-serverless:CancelJobRun"):
        check.cancel_job_run(applicationId=emr.application, jobRunId=run)
    assert [each["action"] for each in refusals.read(known / "refusals.jsonl")] == ["emr-serverless:CancelJobRun"]
    emr.cancel(run)


def test_only_refusals_of_the_stack_roles_are_logged(tmp_path: Path) -> None:
    path = tmp_path / "refusals.jsonl"
    somebody = CHECK.replace("sluice", "x")
    answers: list[Any] = [None, SimpleNamespace(principal_arn=CHECK), SimpleNamespace(principal_arn=somebody)]
    evaluator = SimpleNamespace(enforce=lambda *args, **named: answers.pop(0))
    refusals.install(evaluator, path)
    asked = (KEY, "s3:GetObject", "s3", "us-east-1")
    answer = [evaluator.enforce(*asked, resource_arn="arn:aws:s3:::b/k") for _ in range(3)]
    assert [each is None for each in answer] == [True, False, False]
    assert refusals.read(path) == [{"caller": CHECK, "action": "s3:GetObject", "resource": "arn:aws:s3:::b/k"}]
    assert refusals.read(path, after=1) == []
