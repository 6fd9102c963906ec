"""A deployment that changes or deletes the EMR application, played against the emulator.

The stack is a model of CloudFormation: it updates the application with all properties of the template, as
CloudFormation does also when only a tag changes, and rolls back what EMR refuses.
https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2370
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from infra import emr_checks, stack
from infra.local.emr_serverless import Emulator, Settings
from tests.infra.resolve import Resolver

NAME = "sluice-dev"
TYPE = "AWS::EMRServerless::Application"


class Stack:
    """CloudFormation with one stack, whose only resource is the application. A change set is a list of changes and the
    parameters after it."""

    def __init__(self, template: dict[str, Any], emr: Any, **parameters: str) -> None:
        self.template, self.emr, self.parameters = template, emr, parameters
        self.status = "CREATE_COMPLETE"
        self.changes: list[dict[str, Any]] = []
        self.events: list[dict[str, str]] = []
        self.change_sets: list[str] = []
        created = emr.create_application(clientToken="stack", **self.properties(parameters))
        self.application = str(created["applicationId"])

    def properties(self, parameters: dict[str, str]) -> dict[str, Any]:
        """The application's properties as the API names them."""
        properties = Resolver(self.template, {}, **parameters)(self.template["Resources"]["EmrApplication"])
        return _lower(properties["Properties"])

    def deploy(self, name: str, attribute: str = "Properties", action: str = "Modify", **parameters: str) -> str:
        """Deploy with these parameters, as `make deploy` does."""
        target = {"Attribute": attribute, **({"Name": name} if attribute == "Properties" else {})}
        change = {"Action": action, "ResourceType": TYPE, "PhysicalResourceId": self.application}
        self.changes = [{"ResourceChange": {**change, "Details": [{"Target": target}] if action == "Modify" else []}}]
        self.wanted, self.action = {**self.parameters, **parameters}, action
        session = Session(self.emr)
        inspect = partial(emr_checks.check_changes, session, NAME, parameters)
        outcome = stack.apply(
            self, NAME, "https://x", parameters, declared=parameters, inspect=inspect, poll_seconds=0.001
        )
        return outcome.action

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        return {"Stacks": [{"StackStatus": self.status, "Parameters": []}]}

    def create_change_set(self, **request: Any) -> None:
        self.change_sets.append(request["ChangeSetName"])

    def delete_change_set(self, **request: Any) -> None:
        self.change_sets.remove(request["ChangeSetName"])

    def get_waiter(self, name: str) -> Any:
        return self

    def wait(self, **request: Any) -> None:
        pass

    def get_paginator(self, name: str) -> Any:
        pages = {
            "describe_change_set": {"Changes": self.changes},
            "describe_stack_events": {"StackEvents": self.events},
        }
        return Pages(pages[name])

    def execute_change_set(self, **request: Any) -> None:
        try:
            if self.action == "Remove":
                self.emr.delete_application(applicationId=self.application)
            else:
                wanted = {name: value for name, value in self.properties(self.wanted).items() if name not in _FIXED}
                self.emr.update_application(applicationId=self.application, clientToken="update", **wanted)
        except ClientError as refusal:
            self.status = "UPDATE_ROLLBACK_COMPLETE"
            failed = {"ResourceStatus": "UPDATE_FAILED", "ResourceStatusReason": str(refusal)}
            self.events = [{"EventId": "1", "LogicalResourceId": "EmrApplication", **failed}]
            return
        self.status, self.parameters = "UPDATE_COMPLETE", self.wanted


_FIXED = ("name", "type")  # UpdateApplication has no such members


class Pages:
    def __init__(self, page: dict[str, Any]) -> None:
        self.page = page

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        yield self.page


class Session:
    region_name = "us-east-1"

    def __init__(self, emr: Any) -> None:
        self.emr = emr

    def client(self, service: str) -> Any:
        assert service == "emr-serverless"
        return self.emr


def _lower(value: Any) -> Any:
    """Names of properties as the API writes them, and values with their types."""
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: _lower(each) for name, each in value.items()}
    return int(value) if isinstance(value, str) and value.isdecimal() else value


@pytest.fixture
def emr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with Emulator(Settings(port=0, driver="instant", instant_ms=1, state_dir=tmp_path)) as emulator:
        yield boto3.client("emr-serverless", "us-east-1", endpoint_url=emulator.url)


@pytest.fixture
def busy(template: dict[str, Any], emr: Any) -> Stack:
    """A stack whose application a run has started."""
    made = Stack(template, emr, EmrReleaseLabel="emr-7.9.0")
    spark = {"sparkSubmit": {"entryPoint": "s3://code/job.py"}}
    role = "arn:aws:iam::000000000000:role/job"
    run = emr.start_job_run(applicationId=made.application, executionRoleArn=role, jobDriver=spark)
    while emr.get_job_run(applicationId=made.application, jobRunId=run["jobRunId"])["jobRun"]["state"] != "SUCCESS":
        time.sleep(0.01)
    return made


def label(made: Stack) -> str:
    return str(made.emr.get_application(applicationId=made.application)["application"]["releaseLabel"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "ReleaseLabel", "EmrReleaseLabel": "emr-7.14.0"}, "changes its ReleaseLabel"),
        ({"name": "", "attribute": "Tags"}, "changes its Tags"),
        ({"name": "MaximumCapacity", "EmrMaximumVcpu": "32 vCPU"}, "changes its MaximumCapacity"),
        ({"name": "", "action": "Remove"}, "deletes it"),
    ],
    ids=["label", "tags", "capacity", "deletion"],
)
def test_o7_a_change_of_a_started_application_is_refused_first(busy: Stack, change: dict[str, str], words: str) -> None:
    with pytest.raises(stack.DeployError) as refused:
        busy.deploy(**change)
    sentence = (
        f"expected EMR application {busy.application} in CREATED or STOPPED, got STARTED, while the deployment {words}"
    )
    assert str(refused.value).startswith(sentence)
    assert f"aws emr-serverless stop-application --application-id {busy.application}" in str(refused.value)
    assert (busy.status, busy.change_sets, label(busy)) == ("CREATE_COMPLETE", [], "emr-7.9.0"), "nothing is half made"


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ({"name": "ReleaseLabel", "EmrReleaseLabel": "emr-7.14.0"}, "emr-7.14.0"),
        ({"name": "", "attribute": "Tags"}, "emr-7.9.0"),
    ],
    ids=["label", "tags"],
)
def test_o7_a_stopped_application_is_changed(busy: Stack, change: dict[str, str], after: str) -> None:
    busy.emr.stop_application(applicationId=busy.application)
    assert busy.deploy(**change) == "updated"
    assert label(busy) == after


@pytest.mark.parametrize("change", [{"name": "ReleaseLabel", "EmrReleaseLabel": "emr-7.14.0"}, {"name": "Tags"}])
def test_without_the_check_the_deployment_is_rolled_back(
    busy: Stack, monkeypatch: pytest.MonkeyPatch, change: dict[str, str]
) -> None:
    monkeypatch.setattr(emr_checks, "check_changes", lambda *_: None)
    with pytest.raises(stack.DeployError, match="UPDATE_ROLLBACK_COMPLETE.*Only the following configurations can be"):
        busy.deploy(**change)
    assert label(busy) == "emr-7.9.0"


def test_other_changes_do_not_ask_for_the_application(template: dict[str, Any]) -> None:
    others = [
        {"Type": "Hook"},
        {"ResourceChange": {"Action": "Modify", "ResourceType": "AWS::SQS::Queue", "PhysicalResourceId": "q"}},
        {"ResourceChange": {"Action": "Add", "ResourceType": TYPE}},
    ]
    emr_checks.check_changes(Session(None), NAME, {}, others)


def test_the_applications_of_an_emulator_are_left_alone() -> None:
    change = {"Action": "Modify", "ResourceType": TYPE, "PhysicalResourceId": "00a"}
    emr_checks.check_changes(Session(None), NAME, {"ApiBaseUrl": "http://x"}, [{"ResourceChange": change}])


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_an_application_that_cannot_be_read_stops_no_deployment(code: str) -> None:
    class Denied:
        def get_application(self, applicationId: str) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetApplication")

    change = {"Action": "Modify", "ResourceType": TYPE, "PhysicalResourceId": "00a"}
    emr_checks.check_changes(Session(Denied()), NAME, {}, [{"ResourceChange": change}])
