"""An SQS queue as a target: one message a run, at least once, with the run's id for the consumer to drop repeats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core.calendar import iso
from chalicelib.core.complete import News
from chalicelib.core.launch import Answer, Never, NoAnswer, NotNow, Started
from chalicelib.core.rows import Run

_NEVER = {
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "AccessDenied",
    "AccessDeniedException",
    "InvalidParameterValue",
    "InvalidMessageContents",
    "InvalidAddress",
}


class SqsTarget:
    def __init__(self, client: Any) -> None:
        self._client = client

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        attributes = {
            "sluice-event-id": run.run_id,
            "sluice-schedule": run.schedule,
            "sluice-nominal-time": iso(run.nominal_at or run.accepted_at or run.created_at),
            "sluice-attempt": str(run.attempt),
        }
        try:
            answer = self._client.send_message(
                QueueUrl=run.request.target["queue_url"],
                MessageBody=json.dumps(context),
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
                },
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in _NEVER:
                return Never(f"SQS refused the message: {code}: {error.response['Error']['Message']}")
            return NotNow(f"SQS refused for now: {code}")
        except BotoCoreError as error:
            return NoAnswer(f"SQS gave no answer: {error}")
        return Started(str(answer["MessageId"]), done=True)

    def ask(self, run: Run) -> News | None:
        del run  # a queue knows nothing of what became of a message
        return None

    def find(self, run: Run) -> str | None:
        del run
        return None

    def cancel(self, run: Run) -> None:
        del run
