"""A message that failed comes back soon, then later each time (O3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from chalicelib.aws import failures
from chalicelib.aws.failures import FailedMessages
from infra.yaml_tags import load

ARN = "arn:aws:sqs:us-east-1:123456789012:objects"


def test_the_delays_grow_to_six_minutes() -> None:
    pauses = [failures.delay_s(received) for received in range(1, 8)]
    assert pauses == [5, 15, 45, 135, 360, 360, 360]


def record(number: int, received: int = 1) -> dict[str, Any]:
    return {"receiptHandle": f"r{number}", "attributes": {"ApproximateReceiveCount": str(received)}}


class Queue:
    """A client that records its calls; ``refuses`` is raised for a call."""

    def __init__(self, refuses: Exception | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self.urls = 0
        self.refuses = refuses

    def get_queue_url(self, QueueName: str) -> dict[str, str]:
        self.urls += 1
        return {"QueueUrl": f"https://sqs/{QueueName}"}

    def change_message_visibility_batch(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        if self.refuses:
            raise self.refuses
        return {"Failed": []}


def test_each_message_has_its_own_delay_ten_to_a_call() -> None:
    queue = Queue()
    FailedMessages(queue, ARN).come_again([record(number, received=number + 1) for number in range(12)])
    assert [len(asked["Entries"]) for asked in queue.asked] == [10, 2]
    first = queue.asked[0]
    assert first["QueueUrl"] == "https://sqs/objects"
    assert first["Entries"][1] == {"Id": "1", "ReceiptHandle": "r1", "VisibilityTimeout": 15}
    assert queue.asked[1]["Entries"][0] == {"Id": "0", "ReceiptHandle": "r10", "VisibilityTimeout": 360}
    assert queue.urls == 1


def test_a_refusal_costs_time_and_nothing_else() -> None:
    queue = Queue(ClientError({"Error": {"Code": "RequestThrottled", "Message": "slow down"}}, "any"))
    FailedMessages(queue, ARN).come_again([record(number) for number in range(11)])
    assert len(queue.asked) == 2, "the second call is made although the first was refused"


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1")


def test_a_failed_message_is_hidden_for_its_delay(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="objects", Attributes={"VisibilityTimeout": "360"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps({}))
    [message] = sqs.receive_message(QueueUrl=url, MessageSystemAttributeNames=["ApproximateReceiveCount"])["Messages"]
    answer = {"receiptHandle": message["ReceiptHandle"], "attributes": message["Attributes"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failures, "PAUSES_S", (0,))
        FailedMessages(sqs, ARN).come_again([answer])
    assert len(sqs.receive_message(QueueUrl=url)["Messages"]) == 1, "it is there at once, not in six minutes"


def test_a_message_survives_8_hours_of_outage_and_hint_its_lease() -> None:
    """A message that is received for the last time before a service is back becomes a dead letter, and is not tried
    again.
    """
    queues = load((Path(__file__).parents[2] / "infra/resources/queues.yaml").read_text())["Resources"]

    def tried_for(queue: str) -> int:
        receives = queues[queue]["Properties"]["RedrivePolicy"]["maxReceiveCount"]
        return sum(map(failures.delay_s, range(1, receives))) // 60

    assert tried_for("ObjectsQueue") >= 7 * 60 + 50
    assert tried_for("HintsQueue") > 60
