# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""A chain of a Lambda and its queue ends on the local cloud where it ends in AWS, unless the function allows it."""

from __future__ import annotations

import io
import json
import time
import uuid
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from infra.local.endpoints import Endpoints
from infra.local.rollout import STACK
from tests.support.cloud import cloud  # noqa: F401 - a fixture

pytestmark = pytest.mark.cloud

FIRST_DROPPED = 17
PATIENCE = 60.0
# Sends each message to the second queue, and to its own queue until the last hop.
CODE = """
import json, os
import boto3

sqs = boto3.client("sqs", region_name="us-east-1")

def handler(event, context):
    for record in event["Records"]:
        number = int(record["body"])
        sqs.send_message(QueueUrl=os.environ["REPORTED"], MessageBody=str(number))
        if number < int(os.environ["LAST"]):
            batch = [{"Id": "1", "MessageBody": str(number + 1)}]
            sqs.send_message_batch(QueueUrl=os.environ["OWN"], Entries=batch)
"""


class Chain:
    """A function that sends to the queue that invokes it, until the hop ``last``."""

    def __init__(self, cloud: Endpoints, last: int) -> None:
        self._lambda, self._sqs, iam = (cloud.client(each) for each in ("lambda", "sqs", "iam"))
        self.name = f"hops-{uuid.uuid4().hex[:8]}"
        self.own, self.reported = (
            self._sqs.create_queue(QueueName=f"{self.name}-{each}")["QueueUrl"] for each in ("own", "reported")
        )
        trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
        role = iam.create_role(RoleName=self.name, AssumeRolePolicyDocument=_policy(trust))["Role"]["Arn"]
        rights = _policy({"Effect": "Allow", "Action": "sqs:*", "Resource": "*"})
        iam.put_role_policy(RoleName=self.name, PolicyName="sqs", PolicyDocument=rights)
        self._lambda.create_function(
            FunctionName=self.name,
            Runtime="python3.11",
            Role=role,
            Handler="chain.handler",
            Code={"ZipFile": _zip("chain.py", CODE)},
            Timeout=30,
            Environment={"Variables": {"OWN": self.own, "REPORTED": self.reported, "LAST": str(last)}},
        )
        arn = self._sqs.get_queue_attributes(QueueUrl=self.own, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        self.mapping = self._lambda.create_event_source_mapping(
            FunctionName=self.name, EventSourceArn=arn, BatchSize=1
        )["UUID"]

    def allow(self) -> None:
        self._lambda.put_function_recursion_config(FunctionName=self.name, RecursiveLoop="Allow")

    def runs(self, until: int) -> list[int]:
        """The messages of the function's invocations, up to a message or until none came for a few seconds."""
        self._sqs.send_message(QueueUrl=self.own, MessageBody="1")
        came: list[int] = []
        end = last_at = time.monotonic()
        end += PATIENCE
        while time.monotonic() < end and time.monotonic() < last_at + 8 and until not in came:
            answer = self._sqs.receive_message(QueueUrl=self.reported, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            new = [int(message["Body"]) for message in answer.get("Messages", ())]
            last_at = time.monotonic() if new else last_at
            came += new
        return sorted(set(came))

    def remove(self) -> None:
        self._lambda.delete_event_source_mapping(UUID=self.mapping)
        self._lambda.delete_function(FunctionName=self.name)
        for url in (self.own, self.reported):
            self._sqs.delete_queue(QueueUrl=url)


@pytest.fixture
def chain(cloud: Endpoints) -> Iterator[Chain]:
    made = Chain(cloud, last=FIRST_DROPPED + 3)
    yield made
    made.remove()


def test_a_loop_of_a_lambda_and_its_queue_ends_after_16_rounds(chain: Chain) -> None:
    assert chain.runs(until=FIRST_DROPPED) == list(range(1, FIRST_DROPPED))


def test_a_loop_that_its_function_allows_goes_on(chain: Chain) -> None:
    chain.allow()
    assert chain.runs(until=FIRST_DROPPED + 3) == list(range(1, FIRST_DROPPED + 4))


def test_queue_lambdas_are_deployed_as_the_template_says(cloud: Endpoints) -> None:
    """Without that, the local cloud would stop the chain that serves a long queue."""
    lambdas = cloud.client("lambda")
    functions = lambdas.list_functions()["Functions"]
    expected = {f"{STACK}-check", f"{STACK}-burst", f"{STACK}-objects"}
    ours = expected & {each["FunctionName"] for each in functions}
    assert ours == expected
    assert {lambdas.get_function_recursion_config(FunctionName=name)["RecursiveLoop"] for name in ours} == {"Allow"}


def _policy(statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _zip(name: str, code: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, code)
    return packed.getvalue()
