"""Shared by the tests of targets: a run to deliver, and a queue of moto's that receives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import boto3

from chalicelib.core.rows.run import Run
from tests.support import rows
from tests.support.clock import NOON

CONTEXT = {"run_id": "r1", "events": []}


def run(number: int = 1, data: Mapping[str, Any] | None = None, **target: Any) -> Run:
    made = rows.run(f"demo.flights.notify.1.e{number}", nominal_at=NOON, due_at=NOON + 250)
    return replace(made, request=replace(made.request, target=target, data=data))


class Queue:
    """A queue of moto's, and its messages."""

    def __init__(self, **attributes: str) -> None:
        self.client: Any = boto3.client("sqs")
        name = "orders.fifo" if attributes else "orders"
        self.url: str = self.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        self.arn = f"arn:aws:sqs:us-east-1:123456789012:{name}"

    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        arguments = {"MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"], "AttributeNames": ["All"]}
        while taken := self.client.receive_message(QueueUrl=self.url, **arguments).get("Messages"):
            found += taken
            for each in taken:
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=each["ReceiptHandle"])
        return found


def attributes(message: Mapping[str, Any]) -> dict[str, str]:
    return {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
