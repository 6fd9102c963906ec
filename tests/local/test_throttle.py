"""Throttled calls of the local cloud: which calls, how many, and the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from infra.local import throttle
from infra.local.throttle import Rule, Switch, calls_of, refusal


def dynamodb(operation: str, **request: Any) -> list[str]:
    target = {"x-amz-target": f"DynamoDB_20120810.{operation}"}
    return calls_of("dynamodb", "POST", "/", target, json.dumps(request).encode())


@pytest.mark.parametrize(
    ("service", "request_", "calls"),
    [
        ("s3", ("PUT", "/lake/raw/a b.csv", {}, b""), ["s3:PUT:lake"]),
        ("lambda", ("POST", "/2015-03-31/functions/tick/invocations", {}, b"{}"), ["lambda:POST:tick"]),
        (
            "sqs",
            ("POST", "/", {"x-amz-target": "AmazonSQS.SendMessage"}, b'{"QueueUrl": "http://h/0/hints"}'),
            ["sqs:SendMessage:hints"],
        ),
        (
            "sns",
            ("POST", "/", {}, b"Action=Publish&TopicArn=arn%3Aaws%3Asns%3Aus-east-1%3A0%3Aalarms"),
            ["sns:Publish:alarms"],
        ),
        ("events", ("POST", "/", {"x-amz-target": "AWSEvents.PutEvents"}, b"{}"), ["events:PutEvents:"]),
    ],
)
def test_a_call_is_named_by_service_operation_and_resource(service: str, request_: Any, calls: list[str]) -> None:
    assert calls_of(service, *request_) == calls


def test_a_call_to_several_tables_counts_once_for_each() -> None:
    assert dynamodb("GetItem", TableName="jobs") == ["dynamodb:GetItem:jobs"]
    batch = dynamodb("BatchGetItem", RequestItems={"jobs": {}, "runs": {}})
    assert batch == ["dynamodb:BatchGetItem:jobs", "dynamodb:BatchGetItem:runs"]
    both = [{"Put": {"TableName": "jobs"}}, {"Delete": {"TableName": "runs"}}, {"Update": {"TableName": "jobs"}}]
    assert dynamodb("TransactWriteItems", TransactItems=both) == [
        "dynamodb:TransactWriteItems:jobs",
        "dynamodb:TransactWriteItems:runs",
    ]


def test_a_share_of_the_calls_named_by_a_rule_is_refused(tmp_path: Path) -> None:
    chances = cycle([0.04, 0.05, 0.9])
    switch = Switch(tmp_path / "throttle.json", lambda: next(chances))
    assert not switch.refuses(["dynamodb:GetItem:jobs"]), "without a file nothing is refused"
    throttle.write(tmp_path / "throttle.json", [Rule("dynamodb:*:jobs", share=0.05)])
    assert not switch.refuses(["dynamodb:GetItem:runs"])
    answer = [switch.refuses(["dynamodb:Query:runs", "dynamodb:Query:jobs"]) for _ in range(6)]
    assert answer == [True, False, False, True, False, False]
    (tmp_path / "throttle.json").unlink()
    assert not any(switch.refuses(["dynamodb:GetItem:jobs"]) for _ in range(6))


def test_calls_beyond_a_rate_are_refused_and_other_calls_pass(tmp_path: Path) -> None:
    switch = Switch(tmp_path / "throttle.json")
    throttle.write(tmp_path / "throttle.json", [Rule("sqs:SendMessage*:hints", per_second=0.001, burst=2)])
    assert [switch.refuses(["sqs:SendMessageBatch:hints"]) for _ in range(4)] == [False, False, True, True]
    assert not switch.refuses(["sqs:ReceiveMessage:hints"])


@pytest.mark.parametrize(
    ("service", "operation", "arguments", "code"),
    [
        ("dynamodb", "get_item", {"TableName": "jobs", "Key": {"a": {"S": "1"}}}, "ProvisionedThroughputExceeded"),
        (
            "sqs",
            "send_message",
            {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/1/q", "MessageBody": "a"},
            "RequestT",
        ),
        ("s3", "get_object", {"Bucket": "lake", "Key": "a"}, "SlowDown"),
        ("sns", "publish", {"TopicArn": "arn:aws:sns:us-east-1:123456789012:t", "Message": "a"}, "Throttling"),
        ("lambda", "invoke", {"FunctionName": "tick"}, "TooManyRequests"),
        ("events", "put_events", {"Entries": [{"Source": "a", "DetailType": "b", "Detail": "{}"}]}, "Throttling"),
    ],
)
def test_boto3_takes_the_refusal_for_throttling_and_retries(
    service: str, operation: str, arguments: dict[str, Any], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    as_ours = Config(retries={"mode": "standard"})
    client = boto3.client(service, "us-east-1", aws_access_key_id="x", aws_secret_access_key="x", config=as_ours)
    tried: list[str] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        tried.append(request.url)
        status, headers, body = refusal(service)
        return AWSResponse(request.url, status, headers, _Raw(body))

    client.meta.events.register(f"before-send.{service}.*", answer)
    with pytest.raises(ClientError) as view:
        getattr(client, operation)(**arguments)
    assert view.value.response["Error"]["Code"].startswith(code)
    assert len(tried) > 1


class _Raw:
    """A body as urllib3 returns it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._body

    def read(self) -> bytes:
        return self._body


def test_a_service_answers_calls_that_are_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "throttle.json"

    async def handle_request(
        method: str, path: str, headers: Mapping[str, str], body: bytes, query: Any, signed_path: str = ""
    ) -> tuple[str, str]:
        return method, signed_path

    service = SimpleNamespace(handle_request=handle_request)
    throttle.install({"s3": service}, Switch(path, lambda: 0.5))
    call = ("GET", "/lake/a", {}, b"", {})
    assert asyncio.run(service.handle_request(*call, signed_path="/x")) == ("GET", "/x")
    throttle.write(path, [Rule("s3:GET:*", share=0.6)])
    assert asyncio.run(service.handle_request(*call))[0] == 503


@pytest.mark.parametrize("arguments", [["*"], ["*", "--share", "2"], ["*", "--share", "-1"]])
def test_an_invalid_rule_is_refused_with_what_it_expects(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as answer:
        throttle.main(arguments)
    assert answer.value.code == 2
    assert "expected --share from 0 to 1, or --per-second" in capsys.readouterr().err


def test_the_command_adds_shows_and_removes_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(throttle, "Layout", lambda: SimpleNamespace(throttle=tmp_path / "x" / "throttle.json"))
    assert throttle.main([]) == 0
    assert capsys.readouterr().out == "nothing is throttled\n"
    throttle.main(["sqs:*", "--share", "0.05"])
    throttle.main(["dynamodb:*:jobs", "--per-second", "50", "--burst", "10"])
    capsys.readouterr()
    throttle.main(["sqs:*", "--share", "0.5"])
    assert capsys.readouterr().out == "dynamodb:*:jobs: 50 a second, burst 10\nsqs:*: 50% refused\n"
    throttle.main(["off"])
    assert capsys.readouterr().out == "nothing is throttled\n"
