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
USER = "AKIA0123456789ABCDEF"
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
    """A local cloud in which one Lambda and one user have keys."""
    sts, iam, lambdas = fake_ministack()
    callers.install(sts, iam, [lambdas], tmp_path / "callers.json", "the root's")
    sts.register_session(KEY, {"Arn": CHECK, "SecretAccessKey": "x"})
    iam._IAM_HANDLERS["CreateAccessKey"](USER)
    return tmp_path


def fake_ministack() -> tuple[Any, Any, Any]:
    """The parts of ministack that `callers` changes: sessions, keys of users, keys of Lambdas."""
    sts = SimpleNamespace(_sessions={})
    sts.register_session = sts._sessions.__setitem__
    keys: dict[tuple[str, str], dict[str, str]] = {}

    def create(key: str) -> None:
        keys["000000000000", key] = {"UserName": "somebody", "Status": "Active", "SecretAccessKey": "y"}

    def delete(key: str) -> None:
        del keys["000000000000", key]

    handlers = {"CreateAccessKey": create, "UpdateAccessKey": delete, "DeleteAccessKey": delete}
    iam = SimpleNamespace(_access_keys=SimpleNamespace(to_dict=lambda: dict(keys)), _IAM_HANDLERS=handlers)

    def execution_credentials(config: Any) -> dict[str, str]:
        sts.register_session("ASIALAMBDA", {"Arn": CHECK, "SecretAccessKey": "guessable"})
        return {"AWS_ACCESS_KEY_ID": "ASIALAMBDA", "AWS_SECRET_ACCESS_KEY": "guessable"}

    return sts, iam, SimpleNamespace(execution_credentials=execution_credentials)


def test_a_key_is_known_to_the_emulator_until_it_is_deleted(tmp_path: Path) -> None:
    sts, iam, lambdas = fake_ministack()
    path = tmp_path / "callers.json"
    callers.install(sts, iam, [lambdas], path, "the root's")
    known, own = callers.Callers(path), callers.secret_of(sts, iam, "ROOT", "the root's")
    assert known.get(USER) is None
    iam._IAM_HANDLERS["CreateAccessKey"](USER)
    found = known.get(USER)
    assert (found, found and found.role) == (callers.Caller("arn:aws:iam::000000000000:user/somebody", "y"), None)
    assert (own(USER), own("ROOT"), own("test"), own("")) == ("y", "the root's", None, None)
    assert path.stat().st_mode & 0o777 == 0o600
    iam._IAM_HANDLERS["DeleteAccessKey"](USER)
    assert (known.get(USER), own(USER)) == (None, None)


def test_the_secret_of_a_lambda_cannot_be_computed_from_names(tmp_path: Path) -> None:
    sts, iam, lambdas = fake_ministack()
    callers.install(sts, iam, [lambdas], tmp_path / "callers.json", "the root's")
    secret = lambdas.execution_credentials({})["AWS_SECRET_ACCESS_KEY"]
    assert secret != "guessable"
    assert callers.Callers(tmp_path / "callers.json").get("ASIALAMBDA") == callers.Caller(CHECK, secret)
    assert callers.secret_of(sts, iam, "ROOT", "the root's")("ASIALAMBDA") == secret


def allowing(*actions: str, on: str = f"{APPLICATION}/jobruns/*") -> list[dict[str, Any]]:
    return [{"Effect": "Allow", "Action": list(actions), "Resource": on}]


def test_a_lambda_is_refused_what_its_role_forbids_on_record(known: Path) -> None:
    permissions = Permissions(lambda role: allowing("emr-serverless:GetJobRun"), known, Place(), "ROOT")

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
        Permissions(lambda role: allowed, known, Place(), "ROOT").admit(SIGNED, "StartJobRun", start)
    allowed += allowing("iam:PassRole", on=ROLE)
    Permissions(lambda role: allowed, known, Place(), "ROOT").admit(SIGNED, "StartJobRun", start)


@pytest.mark.parametrize("tagged", [(APPLICATION,), (f"{APPLICATION}/jobruns/*",)])
def test_a_tagged_start_is_refused_with_one_resource_of_two(known: Path, tagged: tuple[str, ...]) -> None:
    start = {"applicationId": "00app", "executionRoleArn": ROLE, "tags": {"sluice:schedule": "demo.flights.daily"}}
    allowed = [*allowing("emr-serverless:StartJobRun", on=APPLICATION), *allowing("iam:PassRole", on=ROLE)]
    allowed += [each for resource in tagged for each in allowing("emr-serverless:TagResource", on=resource)]
    with pytest.raises(errors.ApiError, match="emr-serverless:TagResource"):
        Permissions(lambda role: allowed, known, Place(), "ROOT").admit(SIGNED, "StartJobRun", start)
    for resource in (APPLICATION, f"{APPLICATION}/jobruns/*"):
        allowed += allowing("emr-serverless:TagResource", on=resource)
    Permissions(lambda role: allowed, known, Place(), "ROOT").admit(SIGNED, "StartJobRun", start)


def nobody(role: str) -> list[Any]:
    raise AssertionError(f"expected no role to be asked for, got {role}")


@pytest.mark.parametrize("key", [USER, "ROOT"])
def test_a_user_and_the_root_need_no_role(known: Path, key: str) -> None:
    Permissions(nobody, known, Place(), "ROOT").admit(SIGNED.replace(KEY, key), "CancelJobRun", RUN)


@pytest.mark.parametrize("signed", ["", SIGNED.replace(KEY, "test"), SIGNED.replace(KEY, "AKIA0")])
def test_a_missing_or_unknown_key_is_refused(known: Path, signed: str) -> None:
    with pytest.raises(errors.ApiError, match="expected a key of this local cloud") as refused:
        Permissions(nobody, known, Place(), "ROOT").admit(signed, "CancelJobRun", RUN)
    assert (refused.value.code, refused.value.status) == ("UnrecognizedClientException", 403)


def test_a_redeployed_role_is_effective_within_seconds(known: Path) -> None:
    allowed, clock, asked = allowing("emr-serverless:GetJobRun"), Clock(), []

    def statements(role: str) -> list[dict[str, Any]]:
        asked.append(role)
        return list(allowed)

    permissions = Permissions(statements, known, Place(), "ROOT", clock)
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
