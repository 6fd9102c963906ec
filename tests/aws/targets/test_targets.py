"""Deliveries to SQS, on moto's: what arrives, in which batches, and the meaning of each refusal (E5)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from chalicelib.aws.targets.envelope import MAX_BYTES
from chalicelib.aws.targets.sqs import SqsTarget
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Never, NoAnswer, NotNow, Started
from tests.support.deliveries import CONTEXT, Queue, attributes, run


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with mock_aws():
        yield


# -- SQS -----------------------------------------------------------------------------------------------------------


def test_e5_an_sqs_message_has_the_context_and_its_identity() -> None:
    queue = Queue()
    answer = SqsTarget(queue.client).start(run(type="sqs", queue_url=queue.url), CONTEXT)
    [message] = queue.messages()
    assert answer == Started(message["MessageId"], done=True)
    assert json.loads(message["Body"]) == CONTEXT
    assert attributes(message) == {
        "sluice-event-id": "demo.flights.notify.1.e1",
        "sluice-schedule": "demo.flights.clean",
        "sluice-nominal-time": "2026-03-02T12:00:00.000Z",
        "sluice-due-time": "2026-03-02T12:00:00.250Z",
        "sluice-attempt": "1",
        "sluice-content-type": "application/json",
    }


@pytest.mark.parametrize(
    ("data", "body", "kind", "encoding"),
    [
        ({"content_type": "text/plain", "text": "grün"}, "grün", "text/plain", None),
        ({"content_type": "image/png", "base64": "iVBORw=="}, "iVBORw==", "image/png", "base64"),
        (
            {"content_type": "text/csv", "uri": "s3://b/k"},
            '{"data_uri": "s3://b/k", "content_type": "text/csv"}',
            "application/json",
            None,
        ),
    ],
)
def test_e5_data_of_the_schedule_is_sent_instead_of_the_context(
    data: dict[str, str], body: str, kind: str, encoding: str | None
) -> None:
    queue = Queue()
    SqsTarget(queue.client).start(run(data=data, type="sqs", queue_url=queue.url), CONTEXT)
    [message] = queue.messages()
    answer = attributes(message)
    assert (message["Body"], answer["sluice-content-type"], answer.get("sluice-content-encoding")) == (
        body,
        kind,
        encoding,
    )


@pytest.mark.parametrize("count", [1, 2])
def test_e5_a_queue_whose_key_is_denied_says_what_to_grant(count: int) -> None:
    caller, key = "arn:aws:sts::123456789012:assumed-role/check/x", "arn:aws:kms:us-east-1:123456789012:key/1a"
    message = (
        f"User: {caller} is not authorized to perform: kms:GenerateDataKey on resource: {key} with an explicit deny."
    )

    class Encrypted:
        def send_message(self, **call: Any) -> Any:
            raise ClientError({"Error": {"Code": "KMS.AccessDeniedException", "Message": message}}, "SendMessage")

        def send_message_batch(self, **call: Any) -> Any:
            failed = {
                "Code": "KmsAccessDenied",
                "Message": message.replace(" with an explicit deny", ""),
                "SenderFault": True,
            }
            return {"Failed": [{"Id": str(number), **failed} for number in range(count)]}

    calls = [(run(number, type="sqs", queue_url="https://sqs/1/q"), CONTEXT) for number in range(count)]
    for answer in SqsTarget(Encrypted()).start_many(calls):
        assert isinstance(answer, Never)
        assert f"kms:GenerateDataKey and kms:Decrypt on {key}" in answer.why


def test_e5_a_fifo_queue_keeps_group_order_and_drops_duplicates() -> None:
    queue = Queue(FifoQueue="true")
    target = SqsTarget(queue.client)
    calls = [(run(number, type="sqs", queue_url=queue.url), CONTEXT) for number in range(12)]
    answers = target.start_many(calls)
    again = target.start(*calls[3])
    messages = queue.messages()
    assert all(isinstance(answer, Started) for answer in [*answers, again])
    assert [attributes(each)["sluice-event-id"] for each in messages] == [each.run_id for each, _ in calls]
    assert {each["Attributes"]["MessageGroupId"] for each in messages} == {"demo.flights.clean"}
    assert messages[0]["Attributes"]["MessageDeduplicationId"] == "demo.flights.notify.1.e0"


def test_e5_a_group_may_be_named_and_long_names_fit() -> None:
    queue = Queue(FifoQueue="true")
    long = replace(run(type="sqs", queue_url=queue.url, group=None), run_id="r" * 200, schedule=f"a.b.{'s' * 150}")
    named = run(2, type="sqs", queue_url=queue.url, group="all")
    answers = SqsTarget(queue.client).start_many([(long, CONTEXT), (named, CONTEXT)])
    assert all(isinstance(answer, Started) for answer in answers)
    groups = {attributes(each)["sluice-attempt"] + each["Attributes"]["MessageGroupId"] for each in queue.messages()}
    assert len(groups) == 2
    assert "1all" in groups


class Batches:
    """A client that records its batches, and fails the entries that the test names."""

    def __init__(self, failing: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.failing = failing or {}

    def send_message(self, QueueUrl: str, **entry: Any) -> Any:
        self.batches.append([entry])
        return {"MessageId": "m"}

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[dict[str, Any]]) -> Any:
        self.batches.append(list(Entries))
        ids = [str(entry["Id"]) for entry in Entries]
        taken = [{"Id": each, "MessageId": f"m{each}"} for each in ids if each not in self.failing]
        return {"Successful": taken, "Failed": [{"Id": i, **why} for i, why in self.failing.items() if i in ids]}


def sqs_runs(*sizes: int, url: str = "https://q/a") -> list[tuple[Run, Mapping[str, Any]]]:
    return [(run(place, type="sqs", queue_url=url), {"x": "x" * size}) for place, size in enumerate(sizes)]


def test_e5_batches_hold_ten_messages_and_256_kb_of_one_queue() -> None:
    client = Batches()
    assert len(SqsTarget(client).start_many(sqs_runs(*[1] * 23))) == 23
    assert [len(batch) for batch in client.batches] == [10, 10, 3]

    client = Batches()
    SqsTarget(client).start_many(sqs_runs(*[100_000] * 5))
    assert [len(batch) for batch in client.batches] == [2, 2, 1]
    assert all(sum(len(each["MessageBody"]) for each in batch) <= MAX_BYTES for batch in client.batches)

    client = Batches()
    mixed = [pair for two in zip(sqs_runs(1, 1), sqs_runs(1, 1, url="https://q/b"), strict=True) for pair in two]
    SqsTarget(client).start_many(mixed)
    assert [len(batch) for batch in client.batches] == [2, 2]


def test_e5_a_partly_accepted_batch_answers_each_call_in_order() -> None:
    failing = {
        "1": {"Code": "InternalError", "SenderFault": False, "Message": "?"},
        "2": {"Code": "RequestThrottled", "SenderFault": False, "Message": "slow down"},
        "3": {"Code": "InvalidMessageContents", "SenderFault": True, "Message": "bad character"},
    }
    answers = SqsTarget(Batches(failing)).start_many(sqs_runs(1, 1, 1, 1, 1))
    assert [type(answer) for answer in answers] == [Started, NoAnswer, NotNow, Never, Started]
    assert answers[4] == Started("m4", done=True)


def test_e5_a_message_that_is_too_large_is_refused_alone() -> None:
    client = Batches()
    answers = SqsTarget(client).start_many(sqs_runs(1, 300_000, 1))
    assert [type(answer) for answer in answers] == [Started, Never, Started]
    assert [len(batch) for batch in client.batches] == [2]
    assert "at most 262144 bytes for SQS" in getattr(answers[1], "why", "")


def test_e5_a_missing_queue_is_a_final_refusal() -> None:
    client = boto3.client("sqs")
    missing = "https://sqs.us-east-1.amazonaws.com/123456789012/none"
    for answer in SqsTarget(client).start_many(sqs_runs(1, 1, url=missing)):
        assert isinstance(answer, Never), answer
