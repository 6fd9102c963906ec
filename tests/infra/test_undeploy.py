"""Removing a stage: what is deleted and what stays. Each remaining resource is named with the command
that removes it.
"""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from infra import stack, undeploy
from infra.undeploy import Removed, Undeploy

NAME, REGION = "sluice-dev", "eu-west-1"
LAKE = f"{NAME}-lake-123456789012-{REGION}"


def template(retention: str, protected: bool) -> str:
    """A stack of one table and one versioned bucket, and the parameter that decides whether they are kept."""
    key = [{"AttributeName": "pk", "KeyType": "HASH"}]
    table = {
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": key,
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": protected,
    }
    bucket = {"BucketName": LAKE}
    return json.dumps(
        {
            "Parameters": {"DataRetention": {"Type": "String", "Default": retention}},
            "Resources": {
                "CatalogTable": {"Type": "AWS::DynamoDB::Table", "DeletionPolicy": retention, "Properties": table},
                "LakeBucket": {"Type": "AWS::S3::Bucket", "DeletionPolicy": retention, "Properties": bucket},
                "HintsQueue": {"Type": "AWS::SQS::Queue", "Properties": {}},
            },
        }
    )


def emptied(bucket: str) -> str:
    """The command that removes a bucket with all versions, which `aws s3 rb --force` does not."""
    code = f"b = boto3.resource('s3').Bucket('{bucket}'); b.object_versions.delete(); b.delete()"
    return f'python -c "import boto3; {code}"'


class Stage:
    """The deployed resources, and those that are left."""

    def __init__(self, retention: str = "Retain", protected: bool = False) -> None:
        self.session = boto3.Session("x", "x", region_name=REGION)
        self.cloudformation = self.session.client("cloudformation")
        self.s3, self.dynamodb = self.session.client("s3"), self.session.client("dynamodb")
        body = template(retention, protected)
        given = [{"ParameterKey": "DataRetention", "ParameterValue": retention}]
        self.cloudformation.create_stack(StackName=NAME, TemplateBody=body, Parameters=given)
        self.s3.put_bucket_versioning(Bucket=LAKE, VersioningConfiguration={"Status": "Enabled"})
        for content in (b"1", b"2"):
            self.s3.put_object(Bucket=LAKE, Key="raw/a", Body=content)
        self.s3.delete_object(Bucket=LAKE, Key="raw/a")
        self.reported: list[str] = []

    def undeploy(self, delete_data: bool = False) -> Removed:
        return Undeploy(self.session, NAME, tell=self.reported.append, poll_seconds=0.001).run(delete_data)

    @property
    def tables(self) -> list[str]:
        return list(self.dynamodb.list_tables()["TableNames"])

    @property
    def buckets(self) -> list[str]:
        return [each["Name"] for each in self.s3.list_buckets()["Buckets"]]

    @property
    def queues(self) -> list[str]:
        return list(self.session.client("sqs").list_queues().get("QueueUrls", []))


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield


def test_undeploy_removes_the_stack_and_names_the_remaining_data() -> None:
    stage = Stage()
    (table,) = stage.tables
    removed = stage.undeploy()
    assert stack.parameters(stage.cloudformation, NAME) is None
    assert stage.queues == []
    assert (stage.tables, stage.buckets) == ([table], [LAKE])
    assert removed.stays == (
        f"table {table}: aws dynamodb delete-table --table-name {table}",
        f"bucket {LAKE}: {emptied(LAKE)}",
    )
    assert stage.reported == [f"will be removed: stack {NAME} with 3 resources"]


def test_the_printed_command_removes_a_bucket_with_versions() -> None:
    stage = Stage()
    (*_, line) = stage.undeploy().stays
    exec(line.partition('-c "')[2].rstrip('"'))
    assert stage.buckets == []


def test_with_the_data_everything_is_listed_and_then_removed() -> None:
    stage = Stage(protected=True)
    (table,) = stage.tables
    removed = stage.undeploy(delete_data=True)
    assert (stage.tables, stage.buckets, stage.queues) == ([], [], [])
    assert removed.stays == ()
    assert stage.reported == [
        f"will be removed: stack {NAME} with 3 resources",
        f"will be removed: table {table} with about 0 rows, and its continuous backups",
        f"will be removed: bucket {LAKE} with 3 objects and versions",
    ]


def test_remaining_data_is_removed_later_by_the_same_command() -> None:
    stage = Stage()
    stage.undeploy()
    stage.undeploy(delete_data=True)
    assert (stage.tables, stage.buckets) == ([], [])
    assert stage.undeploy(delete_data=True) == Removed((), ())


def test_a_protected_table_is_named_with_both_commands() -> None:
    stage = Stage(protected=True)
    (table,) = stage.tables
    off = f"aws dynamodb update-table --no-deletion-protection-enabled --table-name {table}"
    assert stage.undeploy().stays[0] == f"table {table}: {off} && aws dynamodb delete-table --table-name {table}"


def test_a_stage_that_would_lose_its_tables_goes_only_on_demand() -> None:
    stage = Stage("Delete")
    with pytest.raises(stack.DeployError, match="expected DELETE_DATA=yes.*DataRetention=Delete"):
        stage.undeploy()
    assert len(stage.tables) == 1
    stage.undeploy(delete_data=True)
    assert (stage.tables, stage.buckets) == ([], [])


def test_data_of_other_stages_and_applications_is_not_removed() -> None:
    stage = Stage()
    others = (f"{NAME}2-CatalogTable-ABC", f"{NAME}-Orders-ABC")
    for name in others:
        attribute = {"AttributeName": "pk", "AttributeType": "S"}
        key = {"AttributeName": "pk", "KeyType": "HASH"}
        stage.dynamodb.create_table(
            TableName=name, AttributeDefinitions=[attribute], KeySchema=[key], BillingMode="PAY_PER_REQUEST"
        )  # fmt: skip
    stage.s3.create_bucket(Bucket=f"{NAME}-lake", CreateBucketConfiguration={"LocationConstraint": REGION})
    stage.undeploy(delete_data=True)
    assert set(stage.tables) == set(others)
    assert stage.buckets == [f"{NAME}-lake"]


def test_an_object_that_cannot_be_deleted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    made = Undeploy(stage.session, NAME, poll_seconds=0.001)
    locked = {"Errors": [{"Code": "AccessDenied", "Key": "raw/a", "Message": "it is locked"}]}
    monkeypatch.setattr(made._s3, "delete_objects", lambda **asked: locked)
    with pytest.raises(stack.DeployError, match=f"expected to empty bucket {LAKE}, got AccessDenied for raw/a"):
        made.run(True)


class Application:
    """An EMR application that is stopped step by step, or not at all."""

    class exceptions:  # noqa: N801
        ValidationException = ClientError

    def __init__(self, *states: str, busy: bool = False) -> None:
        self.states, self.busy, self.stopped = list(states), busy, 0

    def get_application(self, applicationId: str) -> dict[str, Any]:
        if not self.states:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "gone"}}, "GetApplication")
        return {"application": {"state": self.states.pop(0) if len(self.states) > 1 else self.states[0]}}

    def stop_application(self, applicationId: str) -> None:
        if self.busy:
            raise ClientError(
                {"Error": {"Code": "ValidationException", "Message": "it has job runs"}}, "StopApplication"
            )
        self.stopped += 1


def stopping(application: Application) -> Undeploy:
    class Session:
        def client(self, service: str) -> Any:
            return application

    return Undeploy(Session(), NAME, poll_seconds=0.001)


def test_a_running_application_is_stopped_before_it_is_deleted() -> None:
    application = Application("STARTED", "STOPPING", "STOPPED")
    stopping(application)._stop("00f")
    assert application.stopped == 1
    stopping(application)._stop("00f")
    assert application.stopped == 1


def test_a_missing_application_needs_no_stop() -> None:
    stopping(Application())._stop("00f")


def test_an_application_with_job_runs_is_not_removed() -> None:
    with pytest.raises(stack.DeployError, match="without active job runs.*Pause the schedules"):
        stopping(Application("STARTED", busy=True))._stop("00f")


def test_the_command_line_says_what_it_expects(capsys: pytest.CaptureFixture[str]) -> None:
    assert undeploy.main([]) == 2
    assert undeploy.main(["dev", "--all"]) == 2
    assert "usage: make undeploy STAGE=stage [DELETE_DATA=yes]" in capsys.readouterr().err


def test_a_missing_stage_needs_no_removal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    assert undeploy.main(["gone"]) == 0
    assert f"sluice-gone: nothing to remove in {REGION}" in capsys.readouterr().out
