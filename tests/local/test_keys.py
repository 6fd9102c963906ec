# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""On the local cloud, what a KMS key encrypts needs the permission to use the key, as in AWS."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from ministack.core import iam_evaluator

from infra import deploy, key_policy, stack, undeploy
from infra.key_policy import Place
from infra.local import keys, rollout
from infra.local.endpoints import Endpoints, Key, LocalSession
from infra.local.layout import Layout
from infra.stack import DeployError
from tests.local.conftest import eventually
from tests.support.cloud import cloud  # noqa: F401 - a fixture

KEY = "arn:aws:kms:us-east-1:000000000000:key/0000"
TABLE = "arn:aws:dynamodb:us-east-1:000000000000:table/Jobs"
QUEUE, OPEN = (f"arn:aws:sqs:us-east-1:000000000000:{name}" for name in ("hints", "open"))
PLACE = Place("sluice-keyed", "000000000000", "us-east-1")
NO = iam_evaluator.EvalResult("ImplicitDeny", principal_arn="me")


class Evaluator:
    """ministack's module, with a decision on each action that the test sets."""

    EvalContext, EvalResult = iam_evaluator.EvalContext, iam_evaluator.EvalResult
    evaluate_resource_policy = staticmethod(iam_evaluator.evaluate_resource_policy)

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.asked: list[tuple[str, str, Any]] = []

    def enforce(self, who: str, action: str, service: str, region: str, **named: Any) -> Any:
        self.asked.append((action, named.get("resource_arn", "*"), named.get("service_context")))
        return NO if action in self.refused else None


def encrypted(evaluator: Evaluator, statements: list[Any] | None = None, state: str = "Enabled") -> Any:
    """The services of ministack with a table, a queue and a bucket under a key, and one queue without."""
    of_queue = {QUEUE: {"attributes": {"KmsMasterKeyId": KEY}}, OPEN: {"attributes": {}}}
    sent: list[str] = []
    sqs = SimpleNamespace(_queue_by_arn=of_queue.get, queue_policy_allows=lambda *asked: True)
    eventbridge = SimpleNamespace(_dispatch_to_sqs=lambda spec, *more: sent.append(str(spec)), sent=sent)
    s3 = SimpleNamespace(
        _bucket_default_sse_headers=lambda name: (
            {"x-amz-server-side-encryption-aws-kms-key-id": KEY} if name == "lake" else {}
        )
    )
    dynamodb = SimpleNamespace(_tables={"Jobs": {"SSEDescription": {"KMSMasterKeyArn": KEY}}, "Open": {}})
    policy = json.dumps({"Statement": key_policy.statements(PLACE) if statements is None else statements})
    kms = SimpleNamespace(
        _resolve_key=lambda arn: {"KeyState": state}, key_policy_for_arn=lambda arn: (policy, "000000000000")
    )
    keys.install(evaluator, eventbridge, sqs, keys.Keys(evaluator, kms, dynamodb, sqs, s3))
    return SimpleNamespace(eventbridge=eventbridge, sqs=sqs)


@pytest.mark.parametrize(
    ("service", "action", "resource", "uses"),
    [
        ("dynamodb", "dynamodb:PutItem", TABLE, ["kms:Decrypt"]),
        ("dynamodb", "dynamodb:Query", f"{TABLE}/index/wake", ["kms:Decrypt"]),
        ("dynamodb", "dynamodb:DescribeTable", TABLE, []),
        ("sqs", "sqs:SendMessage", QUEUE, ["kms:GenerateDataKey", "kms:Decrypt"]),
        ("sqs", "sqs:GetQueueUrl", QUEUE, []),
        ("sqs", "sqs:SendMessage", OPEN, []),
        ("s3", "s3:GetObject", "arn:aws:s3:::lake/raw/month=09/a%3Ab", ["kms:Decrypt"]),
        ("s3", "s3:PutObject", "arn:aws:s3:::lake/a", ["kms:GenerateDataKey"]),
        ("s3", "s3:ListBucket", "arn:aws:s3:::lake", []),
        ("s3", "s3:GetObject", "arn:aws:s3:::other/a", []),
        ("dynamodb", "dynamodb:GetItem", TABLE.replace("Jobs", "Open"), []),
    ],
)
def test_a_call_asks_the_key_of_what_it_is_about(service: str, action: str, resource: str, uses: list[str]) -> None:
    evaluator = Evaluator()
    encrypted(evaluator)
    assert evaluator.enforce("AK", action, service, "us-east-1", resource_arn=resource) is None
    via = {"kms:ViaService": f"{service}.us-east-1.amazonaws.com"}
    assert evaluator.asked[1:] == [(use, KEY, via) for use in uses]


def test_a_caller_without_the_key_is_refused() -> None:
    evaluator = Evaluator("kms:Decrypt")
    encrypted(evaluator)
    assert evaluator.enforce("AK", "dynamodb:GetItem", "dynamodb", "us-east-1", resource_arn=TABLE) is NO
    assert evaluator.enforce("AK", "s3:PutObject", "s3", "us-east-1", resource_arn="arn:aws:s3:::lake/a") is None


def test_a_disabled_key_lets_nobody_in() -> None:
    evaluator = Evaluator()
    world = encrypted(evaluator, state="Disabled")
    refused = evaluator.enforce("AK", "dynamodb:GetItem", "dynamodb", "us-east-1", resource_arn=TABLE)
    assert refused.decision == "Deny"
    assert not world.sqs.queue_policy_allows(QUEUE, "s3.amazonaws.com", "arn", "000000000000")


def test_services_send_to_a_queue_if_its_key_names_them() -> None:
    world, without = encrypted(Evaluator()), encrypted(Evaluator(), key_policy.statements(PLACE)[:2])
    for each, expected in ((world, True), (without, False)):
        assert each.sqs.queue_policy_allows(QUEUE, "s3.amazonaws.com", "arn", "000000000000") is expected
        assert each.sqs.queue_policy_allows(OPEN, "s3.amazonaws.com", "arn", "000000000000") is True
        each.eventbridge._dispatch_to_sqs(QUEUE, "an event")
        each.eventbridge._dispatch_to_sqs(OPEN, "an event")
        assert each.eventbridge.sent == ([QUEUE, OPEN] if expected else [OPEN])


# -- a stack on the local cloud ------------------------------------------------------------------------------------

STACK = "sluice-keyed"


@pytest.fixture(scope="module")
def session(cloud: Endpoints) -> Iterator[LocalSession]:
    made = LocalSession(cloud.aws_url, Key(cloud.access_key, cloud.secret_key))
    undeploy.Undeploy(made, STACK, poll_seconds=0.1).run(True)  # what an interrupted test has left
    yield made
    undeploy.Undeploy(made, STACK, poll_seconds=0.1).run(True)


def deployed(cloud: Endpoints, session: LocalSession, key: str) -> dict[str, str]:
    given = rollout.parameters(cloud.aws_url, cloud.emr_url, cloud.outputs["EmrApplicationId"])
    given |= {"Stage": "keyed", "KmsKeyArn": key}
    return deploy.deploy(session, STACK, Layout().package, given, poll_seconds=0.1).outputs


def encrypt(session: LocalSession, outputs: dict[str, str], key: str) -> None:
    """Encrypt tables and buckets as the template says: ministack's CloudFormation encrypts queues and logs alone."""
    sse = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}
    for table in ("CatalogTable", "JobsTable", "RunsTable"):
        session.client("dynamodb").update_table(TableName=outputs[table], SSESpecification=sse)
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    for bucket in ("LakeBucket", "ControlBucket"):
        session.client("s3").put_bucket_encryption(
            Bucket=outputs[bucket], ServerSideEncryptionConfiguration={"Rules": [rule]}
        )


def tick(session: LocalSession) -> str:
    """The error of a tick; empty if it has none."""
    event: dict[str, Any] = {"version": "0", "id": "1", "source": "aws.events", "account": "000000000000"}
    event |= {"region": "us-east-1", "resources": [], "time": "2026-03-02T12:00:00Z", "detail": {}}
    event["detail-type"] = "Scheduled Event"
    answer = session.client("lambda").invoke(FunctionName=f"{STACK}-tick", Payload=json.dumps(event).encode())
    return str(answer["Payload"].read().decode()) if "FunctionError" in answer else ""


@pytest.mark.cloud
@pytest.mark.own_resources
def test_a_stack_under_a_key_works_and_stops_with_the_key(cloud: Endpoints, session: LocalSession) -> None:
    kms, s3, sqs = (session.client(name) for name in ("kms", "s3", "sqs"))
    full, default = ({"Version": "2012-10-17", "Statement": key_policy.statements(PLACE)[:end]} for end in (3, 1))
    key = kms.create_key(Policy=json.dumps(default))["KeyMetadata"]["Arn"]
    with pytest.raises(DeployError, match="python -m infra.key_policy keyed"):
        deployed(cloud, session, key)
    assert stack.parameters(session.client("cloudformation"), STACK) is None

    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(full))
    outputs = deployed(cloud, session, key)
    encrypt(session, outputs, key)
    assert tick(session) == ""

    def waiting() -> int:
        url = outputs["ObjectsQueueUrl"]
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert found["KmsMasterKeyId"] == key
        return int(found["ApproximateNumberOfMessages"]) + int(found["ApproximateNumberOfMessagesNotVisible"])

    # The Lambda `objects` receives and deletes the notification: the queue is empty again.
    s3.put_object(Bucket=outputs["LakeBucket"], Key=f"raw/month=09/{uuid.uuid4().hex}", Body=b"a")
    eventually(lambda: waiting() == 0, 30)

    kms.disable_key(KeyId=key)
    assert "failed" in tick(session)
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.get_object(Bucket=outputs["ControlBucket"], Key="context/a")
    kms.enable_key(KeyId=key)
    assert tick(session) == ""
    with pytest.raises(DeployError, match="the present key"):
        deployed(cloud, session, "")
