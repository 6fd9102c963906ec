"""The consumer of the backups: a repeated message is backed up once, and a message is deleted only after its backup is
done.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from examples.backups.consumer import Consumer

ATTRIBUTES = {"sluice-schedule": "demo.fleet-1.n1", "sluice-due-time": "2026-03-02T12:00:00.000Z"}


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield lambda service: boto3.client(service, region_name="us-east-1")


def send(sqs: Any, queue: str, event: str, source: str) -> None:
    answer = {**ATTRIBUTES, "sluice-event-id": event}
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in answer.items()}
    body = json.dumps({"properties": {"source": source}})
    sqs.send_message(QueueUrl=queue, MessageBody=body, MessageAttributes=attributes)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_e6_a_repeated_message_is_one_backup(clients: Callable[[str], Any]) -> None:
    sqs, s3 = clients("sqs"), clients("s3")
    queue = sqs.create_queue(QueueName="q")["QueueUrl"]
    for bucket in ("source", "target"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="source", Key="a.csv", Body=b"year,month\n2013,1\n")
    for event in ("e1", "e1"):
        send(sqs, queue, event, "a.csv")

    with Consumer(clients, queue, "source", "target") as consumer:
        until(lambda: consumer.repeats == 1)
    assert [(arrival.event_id, arrival.due.hour) for arrival in consumer.arrivals] == [("e1", 12)]
    assert gzip.decompress(s3.get_object(Bucket="target", Key="a.csv.gz")["Body"].read()) == b"year,month\n2013,1\n"


def test_e6_a_log_that_cannot_be_backed_up_stays_in_the_queue(
    clients: Callable[[str], Any],
) -> None:
    sqs, s3 = clients("sqs"), clients("s3")
    queue = sqs.create_queue(QueueName="q")["QueueUrl"]
    s3.create_bucket(Bucket="source")
    send(sqs, queue, "e1", "missing.csv")

    with Consumer(clients, queue, "source", "target") as consumer:
        until(lambda: consumer.failure is not None)
    assert "NoSuchKey" in repr(consumer.failure)
    answer = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessagesNotVisible"])
    assert (answer["Attributes"]["ApproximateNumberOfMessagesNotVisible"], consumer.arrivals) == ("1", [])
