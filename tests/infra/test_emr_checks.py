"""A deployment that names a missing EMR application or role changes nothing and names the missing one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from moto.core import set_initial_no_auth_action_count

from infra import deploy, emr_checks, preflight, stack

ACCOUNT = "arn:aws:iam::123456789012"
TRUST = {"Version": "2012-10-17", "Statement": []}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_EMR_SERVERLESS"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield boto3.Session("x", "x", region_name="eu-west-1")


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto does not know the limits of an account."""
    monkeypatch.setattr(preflight, "account_limit", lambda functions: None)


@pytest.fixture
def application(session: boto3.Session) -> str:
    emr = session.client("emr-serverless")
    made = emr.create_application(name="a", type="SPARK", releaseLabel="emr-7.9.0", clientToken="a")
    return str(made["applicationId"])


@pytest.fixture
def role(session: boto3.Session) -> str:
    made = session.client("iam").create_role(
        RoleName="sales", Path="/jobs/", AssumeRolePolicyDocument=json.dumps(TRUST)
    )
    return str(made["Role"]["Arn"])


def asked(session: boto3.Session, **parameters: str) -> list[stack.Step]:
    steps: list[stack.Step] = []
    emr_checks.check(session, parameters, steps.append)
    return steps


def test_existing_resources_pass_the_check(session: boto3.Session, application: str, role: str) -> None:
    assert asked(session) == []
    assert asked(session, EmrApplicationIds=f"{application}, {application}", EmrRoleArns=role) == []
    assert asked(session, EmrApplicationId=application, EmrJobRoleArn=role, EmrRoleArns="") == []


@pytest.mark.parametrize("parameter", ["EmrApplicationId", "EmrApplicationIds"])
def test_a_missing_application_is_named(session: boto3.Session, application: str, parameter: str) -> None:
    named = "00nothing" if parameter == "EmrApplicationId" else f"{application},00nothing"
    with pytest.raises(
        stack.DeployError, match=f"expected {parameter} to name an existing EMR application, got 00nothing"
    ):
        asked(session, **{parameter: named})


def test_a_deleted_application_counts_as_missing(session: boto3.Session, application: str) -> None:
    emr = session.client("emr-serverless")
    emr.stop_application(applicationId=application)
    emr.delete_application(applicationId=application)
    with pytest.raises(stack.DeployError, match=f"got {application}, which is terminated"):
        asked(session, EmrApplicationIds=application)


@pytest.mark.parametrize(
    ("arn", "why"),
    [
        (f"{ACCOUNT}:role/nobody", "which does not exist"),
        (f"{ACCOUNT}:role/sales", f"while the role of that name is {ACCOUNT}:role/jobs/sales"),
        ("arn:aws:iam::999999999999:role/jobs/sales", f"while the role of that name is {ACCOUNT}:role/jobs/sales"),
    ],
)
def test_a_missing_role_is_named(session: boto3.Session, role: str, arn: str, why: str) -> None:
    with pytest.raises(stack.DeployError) as refused:
        asked(session, EmrRoleArns=f"{role},{arn}")
    assert str(refused.value).startswith(f"expected EmrRoleArns to name an existing role, got {arn}, {why}.")


@set_initial_no_auth_action_count(3)  # moto allows these calls to create the user, and checks IAM from then on
def test_without_the_right_to_read_roles_a_deployment_goes_on(session: boto3.Session) -> None:
    iam = session.client("iam")
    iam.create_user(UserName="deployer")
    key = iam.create_access_key(UserName="deployer")["AccessKey"]
    iam.create_role(RoleName="sales", AssumeRolePolicyDocument=json.dumps(TRUST))
    narrow = boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name="eu-west-1")
    arn = f"{ACCOUNT}:role/sales"
    assert [(step.resource, step.status) for step in asked(narrow, EmrRoleArns=arn)] == [
        (f"EmrRoleArns {arn}", "NOT_CHECKED")
    ]


@pytest.mark.parametrize("emulator", ["EmrEndpointUrl", "ApiBaseUrl"])
def test_an_emulator_is_not_checked(session: boto3.Session, emulator: str) -> None:
    local = {emulator: "http://127.0.0.1:4566"}
    assert asked(session, EmrApplicationId="emulator-missing", EmrJobRoleArn=f"{ACCOUNT}:role/none", **local) == []


def release(client: Any, label: str, **parameters: str) -> list[stack.Step]:
    class Session:
        region_name = "eu-west-1"

        def client(self, service: str) -> Any:
            assert service == "emr"
            return client

    steps: list[stack.Step] = []
    emr_checks.check_release(Session(), {"EmrApplicationId": "", "EmrReleaseLabel": label, **parameters}, steps.append)
    return steps


@pytest.fixture
def releases() -> Iterator[tuple[Any, Stubber]]:
    client = boto3.client("emr", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        yield client, stub


def test_a_release_that_does_not_exist_is_refused(releases: tuple[Any, Stubber]) -> None:
    client, stub = releases
    asked = {"Filters": {"Prefix": "emr-7.1.0"}}
    stub.add_response("list_release_labels", {"ReleaseLabels": ["emr-7.1.0"]}, asked)
    assert release(client, "emr-7.1.0") == []
    stub.add_response("list_release_labels", {"ReleaseLabels": []}, {"Filters": {"Prefix": "emr-7.99.0"}})
    with pytest.raises(stack.DeployError) as refused:
        release(client, "emr-7.99.0")
    assert str(refused.value).startswith(
        "expected EmrReleaseLabel to name a release of EMR in eu-west-1, got emr-7.99.0"
    )
    assert "aws emr list-release-labels. Nothing was changed" in str(refused.value)
    with pytest.raises(stack.DeployError, match="expected EmrReleaseLabel such as emr-7.14.0, got '7.14.0'"):
        release(client, "7.14.0")


def test_a_release_that_cannot_be_checked_stops_no_deployment(releases: tuple[Any, Stubber]) -> None:
    client, stub = releases
    stub.add_client_error("list_release_labels", "AccessDeniedException")
    [step] = release(client, "emr-7.14.0")
    assert (step.resource, step.status) == ("EmrReleaseLabel emr-7.14.0", "NOT_CHECKED")
    [step] = release(client, "emr-spark-8.1.0")
    assert step.status == "NOT_CHECKED"
    for ignored in ({"EmrApplicationId": "00abc"}, {"ApiBaseUrl": "http://x"}, {"EmrEndpointUrl": "http://x"}):
        assert release(client, "emr-7.99.0", **ignored) == []


def test_a_larger_application_needs_a_limit_of_runs(session: boto3.Session) -> None:
    with pytest.raises(stack.DeployError, match="EmrMaximumRuns=25 for runs of 16 vCPUs each"):
        asked(session, EmrMaximumVcpu="400 vCPU")
    assert asked(session, EmrMaximumVcpu="400 vCPU", EmrMaximumRuns="1") == []
    assert asked(session, EmrMaximumVcpu="16 vCPU") == []


def test_a_refused_deployment_uploads_nothing(session: boto3.Session, packaged: Any) -> None:
    with pytest.raises(stack.DeployError, match="Nothing was changed"):
        deploy.deploy(session, "sluice-dev", packaged, {"EmrApplicationIds": "00nothing"})
    assert session.client("s3").list_buckets()["Buckets"] == []
    assert session.client("cloudformation").list_stacks()["StackSummaries"] == []
