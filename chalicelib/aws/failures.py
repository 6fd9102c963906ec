"""Retries of failed queue messages: a short delay at first, a longer one after each failure.

Without this module a message is visible again after the visibility timeout of its queue. That is six times the timeout
of its Lambda: six minutes for an object, twelve for a hint. Lambda keeps the visibility that the function sets for a
failed message. https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.log import logger

PAUSES_S = (5, 15, 45, 135, 360)  # the last delay repeats
MAX_MESSAGES = 10  # messages per call


def delay_s(received: int) -> int:
    """Seconds until the next delivery of a message that was received this many times (1 for the first time)."""
    return PAUSES_S[min(received, len(PAUSES_S)) - 1]


DEAD_LETTERS = ""  # no queue has this name


class FailedMessages:
    """The failed messages of a queue, which is given by the ARN in its events."""

    def __init__(self, client: Any, queue_arn: str) -> None:
        self._client = client
        self._name = queue_arn.rpartition(":")[2]
        self._urls: dict[str, str] = {}  # no cached_property: its lock would be held during a call

    @property
    def _dead_letters(self) -> str:
        """The URL of the dead-letter queue of this queue."""
        if DEAD_LETTERS not in self._urls:
            own = self._url_of(self._name)
            answer = self._client.get_queue_attributes(QueueUrl=own, AttributeNames=["RedrivePolicy"])
            arn = str(json.loads(answer["Attributes"]["RedrivePolicy"])["deadLetterTargetArn"])
            self._urls[DEAD_LETTERS] = self._url_of(arn.rpartition(":")[2])
        return self._urls[DEAD_LETTERS]

    def _url_of(self, name: str) -> str:
        if name not in self._urls:
            self._urls[name] = str(self._client.get_queue_url(QueueName=name)["QueueUrl"])
        return self._urls[name]

    def set_aside(self, body: str) -> None:
        """Move a message that can never be handled to the dead letters now, without its remaining tries."""
        self._client.send_message(QueueUrl=self._dead_letters, MessageBody=body)

    def send_again(self, body: str) -> None:
        """Send a part of a message as a message of its own. It is tried, and ends in the dead letters, by itself."""
        self._client.send_message(QueueUrl=self._url_of(self._name), MessageBody=body)

    def come_again(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Set the next delivery of each message. Never raises: SQS redelivers a message without it, only later."""
        for start in range(0, len(records), MAX_MESSAGES):
            part = records[start : start + MAX_MESSAGES]
            entries = [
                {
                    "Id": str(number),
                    "ReceiptHandle": record["receiptHandle"],
                    "VisibilityTimeout": delay_s(int(record["attributes"]["ApproximateReceiveCount"])),
                }
                for number, record in enumerate(part)
            ]
            try:
                answer = self._client.change_message_visibility_batch(
                    QueueUrl=self._url_of(self._name), Entries=entries
                )
                refused = answer.get("Failed", ())
            except Exception:  # an error, no answer or no such queue: SQS redelivers the messages later
                logger.exception("messages are retried late", extra={"queue": self._name, "size": len(part)})
                continue
            if refused:
                logger.warning("messages are retried late", extra={"queue": self._name, "size": len(refused)})
