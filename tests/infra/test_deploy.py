"""Deploying by change set, against a scripted CloudFormation."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, WaiterError
from moto import mock_aws

from infra import deploy, emr_checks, key_checks, preflight, stack

URL = "https://bucket/key.yaml"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/0000"
PAGE = 100  # events in one answer of DescribeStackEvents


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account of usual size, whose region has all releases of EMR. moto knows neither."""
    limit = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 1000}
    monkeypatch.setattr(preflight, "account_limit", lambda functions: limit)
    monkeypatch.setattr(emr_checks, "check_release", lambda *_: None)


class ScriptedCloudFormation:
    """Answers by the script: the stack before and after, its events, and why a change set is refused."""

    def __init__(
        self, before: str | None, after: str = "", events: list[dict[str, str]] | None = None, refusal: str = ""
    ) -> None:
        self.status, self.after, self.refusal = before, after, refusal
        self.events: list[dict[str, str]] = []
        self.script = events or []
        self.requests: list[dict[str, Any]] = []
        self.executed: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.history: list[dict[str, str]] = []
        self.pages = 0

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        if self.status is None:
            raise ClientError({"Error": {"Message": f"Stack with id {StackName} does not exist"}}, "DescribeStacks")
        outputs = [{"OutputKey": "ApiUrl", "OutputValue": "https://api"}]
        names = ("Stage", "AlarmTopicArn", "GoneFromTheTemplate")
        kept = [{"ParameterKey": name, "ParameterValue": "dev"} for name in names]
        return {"Stacks": [{"StackStatus": self.status, "Outputs": outputs, "Parameters": kept}]}

    def delete_stack(self, StackName: str) -> None:
        self.deleted.append(StackName)
        self.status = None

    def create_change_set(self, **request: Any) -> None:
        self.requests.append(request)

    def get_waiter(self, name: str) -> Any:
        return self

    def wait(self, **request: Any) -> None:
        if self.refusal:
            raise WaiterError("change_set_create_complete", "failed", {})

    def describe_change_set(self, **request: Any) -> dict[str, str]:
        return {"StatusReason": self.refusal}

    def delete_change_set(self, **request: Any) -> None:
        self.requests = [each for each in self.requests if each["ChangeSetName"] != request["ChangeSetName"]]

    def execute_change_set(self, **request: Any) -> None:
        self.executed.append(request)
        self.status, self.events = self.after, [*self.history, *self.script]

    def get_paginator(self, name: str) -> Any:
        return NoChanges() if name == "describe_change_set" else self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        numbered = [{"EventId": str(number), **event} for number, event in enumerate(self.events)][::-1]
        for start in range(0, max(1, len(numbered)), PAGE):
            self.pages += 1
            yield {"StackEvents": numbered[start : start + PAGE]}


class NoChanges:
    """The pages of a change set that changes nothing of interest."""

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        yield {"Changes": []}


def apply(cloudformation: ScriptedCloudFormation, **parameters: str) -> stack.Outcome:
    declared = ["Stage", "AlarmTopicArn"]
    return stack.apply(cloudformation, "sluice-dev", URL, parameters, declared=declared, poll_seconds=0.001)


def test_a_new_stack_is_created() -> None:
    cloudformation = ScriptedCloudFormation(None, "CREATE_COMPLETE")
    assert apply(cloudformation, Stage="dev") == stack.Outcome("created", {"ApiUrl": "https://api"})
    (request,) = cloudformation.requests
    assert (request["ChangeSetType"], request["TemplateURL"]) == ("CREATE", URL)
    assert request["Parameters"] == [{"ParameterKey": "Stage", "ParameterValue": "dev"}]


def test_an_update_keeps_parameters_that_are_not_given() -> None:
    cloudformation = ScriptedCloudFormation("CREATE_COMPLETE", "UPDATE_COMPLETE")
    assert apply(cloudformation, Stage="dev").action == "updated"
    assert cloudformation.requests[0]["Parameters"] == [
        {"ParameterKey": "Stage", "ParameterValue": "dev"},
        {"ParameterKey": "AlarmTopicArn", "UsePreviousValue": True},
    ]


@pytest.mark.parametrize(("before", "taken_back"), [(None, True), ("CREATE_COMPLETE", False)])
def test_a_failed_first_deployment_leaves_no_table_or_bucket(before: str | None, taken_back: bool) -> None:
    """Otherwise the next try would find their names in use. Resources of an existing stack are never removed."""
    cloudformation = ScriptedCloudFormation(before, "CREATE_COMPLETE")
    apply(cloudformation, Stage="dev")
    assert [request["RetainExceptOnCreate"] for request in cloudformation.executed] == [taken_back]


def test_an_up_to_date_stack_is_not_changed() -> None:
    refusal = "The submitted information didn't contain changes. Submit different information to create a change set."
    assert apply(ScriptedCloudFormation("UPDATE_COMPLETE", refusal=refusal)).action == "unchanged"


def test_a_refused_change_set_says_why() -> None:
    with pytest.raises(
        stack.DeployError, match="refused the change set of sluice-dev: Parameters: .* must have values"
    ):
        apply(ScriptedCloudFormation(None, refusal="Parameters: [X] must have values"))


def test_the_first_failure_is_named_not_its_consequences() -> None:
    events = [
        {"LogicalResourceId": "LakeBucket", "ResourceStatus": "CREATE_FAILED", "ResourceStatusReason": "name is taken"},
        {"LogicalResourceId": "Tick", "ResourceStatus": "CREATE_FAILED", "ResourceStatusReason": "cancelled"},
    ]
    with pytest.raises(stack.DeployError, match="ended in ROLLBACK_COMPLETE. First failure: LakeBucket: name is taken"):
        apply(ScriptedCloudFormation(None, "ROLLBACK_COMPLETE", events))


def test_a_stack_that_cannot_be_updated_says_what_to_do() -> None:
    with pytest.raises(stack.DeployError, match="is in DELETE_FAILED and cannot be updated. Delete it"):
        apply(ScriptedCloudFormation("DELETE_FAILED"))


def test_a_stack_whose_rollback_failed_says_what_to_do() -> None:
    cloudformation = ScriptedCloudFormation("UPDATE_ROLLBACK_FAILED")
    with pytest.raises(stack.DeployError, match="stop-application.*continue-update-rollback --stack-name sluice-dev"):
        apply(cloudformation)
    assert cloudformation.requests == []


def test_a_stack_rolled_back_at_first_deployment_is_recreated() -> None:
    cloudformation = ScriptedCloudFormation("ROLLBACK_COMPLETE", "CREATE_COMPLETE")
    assert apply(cloudformation, Stage="dev").action == "created"
    assert cloudformation.deleted == ["sluice-dev"]
    assert cloudformation.requests[0]["ChangeSetType"] == "CREATE"


@pytest.mark.parametrize("error", [ClientError({"Error": {"Code": "ThrottlingException"}}, "X"), KeyboardInterrupt()])
def test_a_check_that_fails_leaves_no_change_set(error: BaseException) -> None:
    def inspect(changes: Any) -> None:
        raise error

    cloudformation = ScriptedCloudFormation("CREATE_COMPLETE", "UPDATE_COMPLETE")
    with pytest.raises(type(error)):
        stack.apply(cloudformation, "sluice-dev", URL, {}, declared=[], inspect=inspect, poll_seconds=0.001)
    assert (cloudformation.requests, cloudformation.executed) == ([], [])


def test_an_unknown_template_parameter_is_refused_at_once() -> None:
    cloudformation = ScriptedCloudFormation("CREATE_COMPLETE", "UPDATE_COMPLETE")
    with pytest.raises(stack.DeployError, match="expected parameters of AlarmTopicArn, Stage, got Stagee"):
        apply(cloudformation, Stagee="dev")
    assert cloudformation.requests == []


def test_a_deployment_during_another_is_refused() -> None:
    with pytest.raises(stack.DeployError, match="is in UPDATE_IN_PROGRESS: another deployment is active"):
        apply(ScriptedCloudFormation("UPDATE_IN_PROGRESS"))


def test_parameters_are_read_from_the_command_line() -> None:
    assert deploy.parse_parameters(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}
    with pytest.raises(ValueError, match="expected Parameter=value, got 'A'"):
        deploy.parse_parameters(["A"])


def test_without_credentials_the_error_says_what_to_set(
    packaged: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert deploy.main(["dev", str(packaged)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("deploy: No AWS credentials")
    assert "Set AWS_PROFILE" in said


def test_the_template_is_read_from_the_regional_endpoint(packaged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The global endpoint does not find a bucket of another region in its first hours."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    asked: list[str] = []
    monkeypatch.setattr(stack, "apply", lambda _, name, url, *args, **more: asked.append(url))
    with mock_aws():
        session = boto3.Session("x", "x", region_name="eu-west-1")
        deploy.deploy(session, "sluice-dev", packaged, {})
    [url] = set(asked)
    assert url.startswith("https://s3.eu-west-1.amazonaws.com/sluice-artifacts-123456789012-eu-west-1/sluice-dev/")


@pytest.mark.parametrize(
    ("present", "given", "protections"),
    [
        (None, {}, ["false", "true"]),
        (None, {"DataRetention": "Delete"}, [None]),
        (None, {"DeletionProtection": "false"}, ["false"]),
        ({"DataRetention": "Retain"}, {}, [None]),
    ],
    ids=["first", "thrown away", "unprotected", "update"],
)
def test_tables_are_protected_after_first_successful_deployment(
    packaged: Any,
    monkeypatch: pytest.MonkeyPatch,
    present: dict[str, str] | None,
    given: dict[str, str],
    protections: list[str | None],
) -> None:
    """A failed first deployment deletes its tables, which DynamoDB refuses for protected ones."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    asked: list[str | None] = []
    monkeypatch.setattr(stack, "parameters", lambda *_: present)
    monkeypatch.setattr(stack, "apply", lambda _, n, u, wanted, **more: asked.append(wanted.get("DeletionProtection")))
    with mock_aws():
        deploy.deploy(boto3.Session("x", "x", region_name="eu-west-1"), "sluice-dev", packaged, given)
    assert asked == protections


@pytest.mark.parametrize(
    ("present", "given", "encrypts"),
    [
        ({"DataRetention": "Retain"}, {"KmsKeyArn": KEY}, ["false", "true"]),
        ({"KmsKeyArn": KEY, "KmsKeyEncrypts": "false"}, {}, ["true"]),
        ({"KmsKeyArn": KEY}, {"KmsKeyArn": KEY}, ["true"]),
        ({"DataRetention": "Retain"}, {}, [None]),
        (None, {"KmsKeyArn": KEY, "DataRetention": "Delete"}, ["true"]),
    ],
    ids=["added", "interrupted", "kept", "no key", "new stack"],
)
def test_the_roles_of_a_stack_in_use_get_its_key_first(
    packaged: Any,
    monkeypatch: pytest.MonkeyPatch,
    present: dict[str, str] | None,
    given: dict[str, str],
    encrypts: list[str | None],
) -> None:
    """CloudFormation updates a role after the tables that it names, so one update would lock the Lambdas out."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(key_checks, "check", lambda *_: None)
    asked: list[str | None] = []
    monkeypatch.setattr(stack, "parameters", lambda *_: present)
    monkeypatch.setattr(stack, "apply", lambda _, n, u, wanted, **more: asked.append(wanted.get("KmsKeyEncrypts")))
    with mock_aws():
        deploy.deploy(boto3.Session("x", "x", region_name="eu-west-1"), "sluice-dev", packaged, given)
    assert asked == encrypts


def test_o7_a_deployment_reports_what_is_behind(packaged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    kept = {"EmrReleaseLabel": "emr-7.9.0", "Administrators": "x", "DataRetention": "Retain"}
    monkeypatch.setattr(stack, "parameters", lambda *_: kept)
    inspected: list[Any] = []
    monkeypatch.setattr(stack, "apply", lambda *_, inspect, **more: inspected.append(inspect))
    steps: list[stack.Step] = []
    with mock_aws():
        session = boto3.Session("x", "x", region_name="eu-west-1")
        deploy.deploy(session, "sluice-dev", packaged, {}, report=steps.append)
        emr = session.client("emr-serverless")
        made = emr.create_application(name="a", type="SPARK", releaseLabel="emr-7.9.0", clientToken="a")
        emr.start_application(applicationId=made["applicationId"])
        change = {"Action": "Modify", "ResourceType": "AWS::EMRServerless::Application"}
        change["PhysicalResourceId"] = made["applicationId"]
        with pytest.raises(stack.DeployError, match="in CREATED or STOPPED, got STARTED"):
            inspected[0]([{"ResourceChange": change}])
    assert {(step.resource, step.status) for step in steps} == {("EmrReleaseLabel", "WARNING")}


def test_names_that_do_not_fit_are_refused_before_any_change(packaged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    roles = ",".join(f"arn:aws:iam::123456789012:role/{number:060d}" for number in range(60))
    with mock_aws():
        session = boto3.Session("x", "x", region_name="eu-west-1")
        with pytest.raises(
            stack.DeployError, match=r"expected at most 4,096 characters in the environment .*EmrRoleArns"
        ):
            deploy.deploy(session, "sluice-dev", packaged, {"EmrRoleArns": roles})
        assert session.client("s3").list_buckets()["Buckets"] == []


def test_exceeding_account_limits_is_refused_before_any_change(packaged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        session = boto3.Session("x", "x", region_name="eu-west-1")
        with pytest.raises(stack.DeployError, match="WarmWriteUnits: expected 0, or 4000 and more, got 5"):
            deploy.deploy(session, "sluice-dev", packaged, {"WarmWriteUnits": "5"})
        assert session.client("s3").list_buckets()["Buckets"] == []


def test_a_missing_right_is_named_with_what_to_do() -> None:
    answer = {"Error": {"Code": "AccessDenied", "Message": "not authorized to perform: s3:CreateBucket"}}
    said = deploy.explain(ClientError(answer, "CreateBucket"))
    assert said.startswith("These credentials lack a permission: ")
    assert "s3:CreateBucket" in said
    assert "have it added" in said


def test_each_resource_is_reported_as_it_progresses() -> None:
    steps: list[str] = []
    events = [
        {"LogicalResourceId": "JobsTable", "ResourceStatus": "CREATE_IN_PROGRESS"},
        {"LogicalResourceId": "JobsTable", "ResourceStatus": "CREATE_COMPLETE"},
    ]
    cloudformation = ScriptedCloudFormation(None, "CREATE_COMPLETE", events)
    stack.apply(
        cloudformation,
        "sluice-dev",
        URL,
        {},
        declared=[],
        report=lambda step: steps.append(stack.line_of(step)),
        poll_seconds=0.001,
    )
    assert steps == ["CREATE_IN_PROGRESS           JobsTable", "CREATE_COMPLETE              JobsTable"]


@pytest.mark.parametrize(("new", "calls"), [(2, 2), (250, 4)])
def test_only_new_events_of_an_old_stack_are_read(new: int, calls: int) -> None:
    """The events come newest first. A stack that was deployed daily has thousands, and is asked every three seconds."""
    done = {"LogicalResourceId": "JobsTable", "ResourceStatus": "UPDATE_COMPLETE"}
    cloudformation = ScriptedCloudFormation("CREATE_COMPLETE", "UPDATE_COMPLETE", [done] * new)
    cloudformation.events = cloudformation.history = [{**done, "LogicalResourceId": "Old"}] * 5_000
    seen: list[stack.Step] = []
    stack.apply(cloudformation, "sluice-dev", URL, {}, declared=[], report=seen.append, poll_seconds=0.001)
    assert [step.resource for step in seen] == ["JobsTable"] * new
    assert cloudformation.pages == calls, "one for the newest before the update, then only pages with new ones"


@pytest.mark.parametrize(
    ("arn", "present", "given", "administrators"),
    [
        ("arn:aws:sts::123456789012:assumed-role/deploy/ci", None, {}, "arn:aws:iam::123456789012:role/deploy"),
        ("arn:aws:iam::123456789012:user/team/ann", None, {}, "arn:aws:iam::123456789012:user/team/ann"),
        ("arn:aws:iam::123456789012:user/ann", None, {"Administrators": "x"}, "x"),
        ("arn:aws:iam::123456789012:user/ann", {"Administrators": "x"}, {}, None),
    ],
    ids=["role", "user", "given", "kept"],
)
def test_who_deploys_first_administers_the_installation(
    packaged: Any,
    monkeypatch: pytest.MonkeyPatch,
    arn: str,
    present: dict[str, str] | None,
    given: dict[str, str],
    administrators: str | None,
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    applied: list[str | None] = []
    monkeypatch.setattr(stack, "parameters", lambda *_: present)
    monkeypatch.setattr(stack, "apply", lambda _, n, u, wanted, **more: applied.append(wanted.get("Administrators")))
    with mock_aws():
        session = boto3.Session("x", "x", region_name="eu-west-1")
        create = session.client

        def client(service: str) -> Any:
            made = create(service)
            if service == "sts":
                monkeypatch.setattr(made, "get_caller_identity", lambda: {"Account": "123456789012", "Arn": arn})
            return made

        monkeypatch.setattr(session, "client", client)
        deploy.deploy(session, "sluice-dev", packaged, given)
    assert applied[-1] == administrators
