"""When a message that failed comes back: soon at first, later each time.

Without it a message comes back when its visibility ends, which is six times the timeout of its Lambda: six minutes for
an object, twelve for a hint. Lambda leaves the visibility of a failed message as the function has set it.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from chalicelib.log import logger

PAUSES_S = (5, 15, 45, 135, 360)  # the last one again and again
MOST = 10  # to a call


def delay_s(received: int) -> int:
    """Seconds until a message comes again that was received so often, 1 for the first time."""
    return PAUSES_S[min(received, len(PAUSES_S)) - 1]


class FailedMessages:
    """The failed messages of a queue, which is known by the ARN in its events."""

    def __init__(self, client: Any, queue_arn: str) -> None:
        self._client = client
        self._name = queue_arn.rpartition(":")[2]

    @cached_property
    def _url(self) -> str:
        return str(self._client.get_queue_url(QueueName=self._name)["QueueUrl"])

    @cached_property
    def _dead_letters(self) -> str:
        """The URL of the queue to which this one hands what it gives up."""
        told = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=["RedrivePolicy"])
        arn = str(json.loads(told["Attributes"]["RedrivePolicy"])["deadLetterTargetArn"])
        return str(self._client.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"])

    def set_aside(self, body: str) -> None:
        """Put a message that can never be handled among the dead letters now, without waiting for its last try."""
        self._client.send_message(QueueUrl=self._dead_letters, MessageBody=body)

    def come_again(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Set when each of them comes again. It never raises: what is not set comes when its visibility ends."""
        for start in range(0, len(records), MOST):
            part = records[start : start + MOST]
            entries = [
                {
                    "Id": str(number),
                    "ReceiptHandle": record["receiptHandle"],
                    "VisibilityTimeout": delay_s(int(record["attributes"]["ApproximateReceiveCount"])),
                }
                for number, record in enumerate(part)
            ]
            try:
                told = self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
                refused = told.get("Failed", ())
            except Exception:  # a refusal, no answer, no such queue: the queue brings the messages back all the same
                logger.exception("messages come back late", extra={"queue": self._name, "size": len(part)})
                continue
            if refused:
                logger.warning("messages come back late", extra={"queue": self._name, "size": len(refused)})
