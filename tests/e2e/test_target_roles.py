"""On the local cloud, targets are called with the credentials of the role of their namespace (O10).

The Lambdas' own roles may send to every queue here. So a refused message shows that it was sent with the narrower role.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest

from infra import target_role
from infra.local.endpoints import Endpoints
from infra.local.layout import Layout
from sluice.client import Client
from sluice.refusals import NotFound
from tests.infra.resolve import Resolver

pytestmark = pytest.mark.cloud

PATIENCE = 90.0  # seconds of real time: an unanswered start is tried again after some time
ACCOUNT = "us-east-1:000000000000"
NEVER = {"type": "time", "expression": "0 0 1 1 *"}  # schedules are started by hand
# A role begins to exist for the emulator of EMR within five seconds.
CACHED = 6.0


class Team:
    """A namespace with a queue, whose targets are called with a role of its own."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.name = f"team-{uuid.uuid4().hex[:8]}"
        self.outputs = endpoints.outputs
        self.sqs, self.iam = endpoints.client("sqs"), endpoints.client("iam")
        self.client = Client.from_environment()
        self.base = f"/v1/namespaces/{self.name}"
        self.queue = self.sqs.create_queue(QueueName=f"sluice-target-{self.name}")["QueueUrl"]
        self.arn = f"arn:aws:sqs:{ACCOUNT}:sluice-target-{self.name}"
        self.role = ""
        self.client.put(self.base, {})

    @classmethod
    @contextlib.contextmanager
    def living(cls, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Self]:
        """A team of this class on the local cloud, whose clients use it. It is removed at the end."""
        for name, value in endpoints.environment().items():
            monkeypatch.setenv(name, value)
        made = cls(endpoints)
        yield made
        made.remove()
        Layout().refusals.unlink(missing_ok=True)

    def assumes(self, namespace: str = "", **targets: list[str]) -> None:
        """Make the role as `infra.target_role` does, and name it in the allow-list. ``namespace``: another one than the
        own one, whose external id the role then expects."""
        made = target_role.template(namespace or self.name, "local", targets or {"queue": [self.arn]})
        given = {name: self.outputs[name] for name in ("CheckRoleArn", "RunStateRoleArn")}
        role = Resolver(made, {}, **given)(made["Resources"]["TargetRole"]["Properties"])
        self.role = f"sluice-target-{self.name}"
        trust = json.dumps(role["AssumeRolePolicyDocument"])
        arn = self.iam.create_role(RoleName=self.role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        [policy] = role["Policies"]
        document = json.dumps(policy["PolicyDocument"])
        self.iam.put_role_policy(RoleName=self.role, PolicyName="targets", PolicyDocument=document)
        self.client.put(f"{self.base}/allowed", {"target_role": arn})

    def runs(self, target: dict[str, Any], **workflow: Any) -> None:
        workflows = {"w": {"target": target, **workflow}}
        schedules = {"s": {"workflow": "w", "enabled": True, "trigger": NEVER}}
        self.client.put(f"{self.base}/apps/shop", {"workflows": workflows, "schedules": schedules})
        self.client.post(f"{self.base}/apps/shop/schedules/s/run", {})

    def run(self, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The run of the schedule, once it is as expected."""
        end = time.monotonic() + PATIENCE
        while True:
            found = self.client.get(f"{self.base}/apps/shop/schedules/s/runs", {"limit": 1})["items"]
            if found and enough(found[0]):
                return dict(found[0])
            assert time.monotonic() < end, f"expected another run within {PATIENCE:g} s than {found}"
            time.sleep(0.3)

    def messages(self) -> list[str]:
        answer = self.sqs.receive_message(QueueUrl=self.queue, WaitTimeSeconds=1, MaxNumberOfMessages=10)
        return [json.loads(each["Body"])["schedule"] for each in answer.get("Messages", ())]

    def remove(self) -> None:
        with contextlib.suppress(NotFound):
            self.client.request("DELETE", f"{self.base}/apps/shop")
        self.sqs.delete_queue(QueueUrl=self.queue)
        if self.role:
            self.iam.delete_role_policy(RoleName=self.role, PolicyName="targets")
            self.iam.delete_role(RoleName=self.role)


@pytest.fixture
def teams(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Team, Team]]:
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    made = Team(cloud), Team(cloud)
    yield made
    for team in made:
        team.remove()
    Layout().refusals.unlink(missing_ok=True)  # those of the roles were wanted


def test_o10_a_message_is_sent_with_the_role_of_its_namespace(teams: tuple[Team, Team]) -> None:
    one, two = teams
    for team in teams:
        team.assumes()
    one.runs({"type": "sqs", "queue_url": one.queue})
    assert one.run(lambda run: run["state"] == "SUCCEEDED")["reason"] == ""
    assert one.messages() == [f"{one.name}.shop.s"]

    two.runs({"type": "sqs", "queue_url": one.queue})
    failed = two.run(lambda run: run["state"] == "FAILED")
    assert "SQS refused the message: AccessDenied" in failed["reason"]
    assert f"assumed-role/{two.role}/sluice-{two.name} is not authorized" in failed["reason"]
    assert one.messages() == []


def test_e5_a_message_to_an_encrypted_queue_needs_its_key(teams: tuple[Team, Team], cloud: Endpoints) -> None:
    one, two = teams
    key = cloud.client("kms").create_key()["KeyMetadata"]["Arn"]
    for team in teams:
        team.sqs.set_queue_attributes(QueueUrl=team.queue, Attributes={"KmsMasterKeyId": key})
    one.assumes(queue=[one.arn], key=[key])
    two.assumes(queue=[two.arn])
    for team in teams:
        team.runs({"type": "sqs", "queue_url": team.queue})
    one.run(lambda run: run["state"] == "SUCCEEDED")
    assert one.messages() == [f"{one.name}.shop.s"]

    failed = two.run(lambda run: run["state"] == "FAILED")
    assert f"is not authorized to perform: kms:GenerateDataKey on resource: {key}" in failed["reason"]
    assert f"kms:GenerateDataKey and kms:Decrypt on {key} in the policies of the role {two.role}" in failed["reason"]
    assert two.messages() == []


def test_w22_a_call_of_the_api_is_made_with_the_role(teams: tuple[Team, Team], cloud: Endpoints) -> None:
    one, two = teams
    sns, ssm = cloud.client("sns"), cloud.client("ssm")
    topic = sns.create_topic(Name=f"days-{one.name}")["TopicArn"]
    name = f"/{one.name}/newest"
    may_put = f"ssm:PutParameter=arn:aws:ssm:{ACCOUNT}:parameter{name}"
    one.assumes(action=[f"sns:Publish={topic}", f"sqs:SendMessage={one.arn}", may_put])
    two.assumes(action=[may_put])
    said = '{"schedule": "{{schedule}}", "at": "{{nominal_time}}"}'
    publish = {"service": "sns", "action": "publish", "input": {"TopicArn": topic, "Message": said}}
    send = {"service": "sqs", "action": "send_message", "input": {"QueueUrl": one.queue, "MessageBody": said}}
    given = {"Name": name, "Value": "{{run_id}}", "Type": "String"}

    one.runs({"type": "aws_api", **publish})
    assert one.run(lambda run: run["state"] == "SUCCEEDED")["target_id"]
    one.runs({"type": "aws_api", "service": "ssm", "action": "put_parameter", "input": given, "result": True})
    made = one.run(lambda run: run["state"] == "SUCCEEDED" and bool(run.get("result")))
    assert made["result"]["Version"] == 1
    assert ssm.get_parameter(Name=name)["Parameter"]["Value"] == made["run_id"]
    one.runs({"type": "aws_api", **send})
    one.run(lambda run: run["state"] == "SUCCEEDED" and not run.get("result"))
    assert one.messages() == [f"{one.name}.shop.s"]

    two.runs({"type": "aws_api", **publish})
    failed = two.run(lambda run: run["state"] == "FAILED")
    assert "sns:Publish refused" in failed["reason"]
    assert f"assumed-role/{two.role}/sluice-{two.name} is not authorized" in failed["reason"]
    sns.delete_topic(TopicArn=topic)
    ssm.delete_parameter(Name=name)


def test_o10_a_role_is_assumed_for_its_own_namespace_alone(teams: tuple[Team, Team]) -> None:
    one, two = teams
    two.assumes(namespace=one.name)  # its trust policy expects the external id of the other
    two.runs({"type": "sqs", "queue_url": two.queue})
    run = two.run(lambda run: "may not assume" in run["reason"])
    assert f"Sluice may not assume the target role of namespace {two.name} (AccessDenied)" in run["reason"]
    assert f"external id sluice/local/{two.name}" in run["reason"]
    assert two.messages() == []


def test_o10_a_job_run_is_started_and_followed_with_the_role(teams: tuple[Team, Team], cloud: Endpoints) -> None:
    one, two = teams
    application = f"arn:aws:emr-serverless:{ACCOUNT}:/applications/{cloud.outputs['EmrApplicationId']}"
    one.assumes(application=[application], execution_role=["arn:aws:iam::000000000000:role/*"])
    two.assumes()  # it may send messages alone
    time.sleep(CACHED)
    target = {"type": "emr_serverless", "entry_point": f"s3://{cloud.outputs['ControlBucket']}/code/none.py"}
    one.runs(target)
    ended = one.run(lambda run: run["state"] == "FAILED")  # there is no such file
    assert ended["target_id"]
    assert "not authorized" not in ended["reason"]

    two.runs(target)
    refused = two.run(lambda run: "AccessDenied" in run["reason"])
    assert "is not authorized to perform: emr-serverless:StartJobRun" in refused["reason"]
    assert refused["target_id"] is None
