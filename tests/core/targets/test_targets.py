"""Targets as documents: what is accepted, and what is refused with the expected value (E5, O6)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from chalicelib.core.errors import from_validation
from chalicelib.core.targets.registry import AnyTarget, of_type

ADAPTER: TypeAdapter[Any] = TypeAdapter(AnyTarget)
QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
TOPIC = "arn:aws:sns:us-east-1:123456789012:orders"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:check"
HOOK = "https://example.com/hook"


def refusal(**target: Any) -> tuple[str | None, str]:
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python(target)
    error = from_validation(caught.value)
    return error.field, error.message


@pytest.mark.parametrize(
    "target",
    [
        {"type": "emr_serverless", "entry_point": "s3://code/job.py"},
        {"type": "sqs", "queue_url": QUEUE},
        {"type": "sqs", "queue_url": f"{QUEUE}.fifo", "group": "all"},
        {"type": "sns", "topic_arn": TOPIC, "subject": "Orders are in"},
        {"type": "sns", "topic_arn": f"{TOPIC}.fifo", "group": "all"},
        {"type": "http", "url": HOOK},
        {"type": "http", "url": "https://[2606:4700::1111]:8443/x?y=1", "method": "PUT", "timeout": "30s"},
        {"type": "http", "url": HOOK, "headers": {"X-Team": "a"}, "secret": "/sluice-target/hook"},
        {"type": "http", "url": HOOK, "secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:sluice-target-a"},
        {"type": "lambda", "function": f"{FUNCTION}:live", "wait": True},
        {"type": "event_bus", "bus": "orders"},
        {"type": "event_bus", "bus": "arn:aws:events:us-east-1:123456789012:event-bus/orders", "source": "team.a"},
    ],
)
def test_e5_each_kind_of_target_is_taken(target: dict[str, Any]) -> None:
    made = ADAPTER.validate_python(target)
    assert made.type == target["type"]
    assert isinstance(made, of_type(made.type))
    assert made.has_lifecycle is (made.type == "emr_serverless")


@pytest.mark.parametrize(
    ("target", "field", "message"),
    [
        ({"type": "kafka"}, None, "expected an object whose type is one of emr_serverless, sqs, sns, http, lambda,"),
        ({"type": "sqs", "queue_url": "orders"}, "queue_url", "expected text that matches ^https?://"),
        ({"type": "sqs", "queue_url": QUEUE, "group": "a"}, "group", "expected a group only for a FIFO queue"),
        ({"type": "sns", "topic_arn": "orders"}, "topic_arn", "expected text that matches"),
        ({"type": "sns", "topic_arn": TOPIC, "group": "a"}, "group", "expected a group only for a FIFO topic"),
        ({"type": "sns", "topic_arn": TOPIC, "subject": "two\nlines"}, "subject", "expected text that matches"),
        ({"type": "lambda", "function": "check"}, "function", "expected text that matches"),
        ({"type": "event_bus", "bus": "a b"}, "bus", "expected text that matches"),
        ({"type": "event_bus", "bus": "a", "source": "aws.s3"}, "source", "neither aws. nor sluice/"),
        ({"type": "event_bus", "bus": "a", "source": "sluice/other"}, "source", "neither aws. nor sluice/"),
        ({"type": "http", "url": HOOK, "method": "TRACE"}, "method", "expected 'POST', 'PUT'"),
        ({"type": "http", "url": HOOK, "timeout": "31s"}, "timeout", "expected a timeout of at most 30s, got '31s'"),
        ({"type": "http", "url": HOOK, "secret": "hook"}, "secret", "expected text that matches"),
    ],
)
def test_e5_an_unreachable_target_is_refused(target: dict[str, Any], field: str, message: str) -> None:
    where, answer = refusal(**target)
    assert (where, message in answer) == (field, True), answer


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ftp://example.com/", "a URL such as https://example.com/hook"),
        ("//example.com/", "a URL such as https://example.com/hook"),
        ("https://", "a URL such as https://example.com/hook"),
        ("https://user:pw@example.com/", "a URL without a user and a password"),
        ("https://example.com@evil.example/", "a URL without a user and a password"),
        ("https://example.com/a b", "printable ASCII characters without spaces"),
        ("https://example.com\\@evil.example/", "printable ASCII characters without spaces"),
        ("https://ex\u00e4mple.com/", "printable ASCII characters without spaces"),
        ("https://example.com/\r\nHost: evil", "printable ASCII characters without spaces"),
        ("https://example.com/#part", "a URL without a fragment"),
        ("https://example.com:22/", "port 443, 80, or one from 1024 on, got 22"),
        ("https://example.com:99999/", "a URL such as https://example.com/hook"),
        ("https://[::1", "a URL such as https://example.com/hook"),
    ],
)
def test_o6_a_forbidden_address_is_refused_by_its_form(url: str, expected: str) -> None:
    where, answer = refusal(type="http", url=url)
    assert (where, expected in answer) == ("url", True), answer
    assert "pw" not in answer, "no text has the password"


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"Host": "inside"}, "headers.Host"),
        ({"content-LENGTH": "1"}, "headers.content-LENGTH"),
        ({"Sluice-Signature": "forged"}, "headers.Sluice-Signature"),
        ({"X-A": "one\r\nX-B: two"}, "headers.X-A"),
        ({"X A": "x"}, "headers"),
        ({"X-A": "1", "x-a": "2"}, "headers"),
    ],
)
def test_o6_headers_cannot_replace_those_of_sluice_or_connection(headers: dict[str, str], field: str) -> None:
    where, _ = refusal(type="http", url=HOOK, headers=headers)
    assert where == field


def test_e5_a_stored_queue_of_an_older_release_still_loads() -> None:
    assert ADAPTER.validate_python({"type": "sqs", "queue_url": QUEUE}).model_dump() == {
        "type": "sqs",
        "queue_url": QUEUE,
        "group": None,
    }
