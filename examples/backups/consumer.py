"""The consumer of the queue: it receives messages at its own rate, and backs up the log that each message names.

Deliveries are at least once, so the consumer drops a message with the id of an event that it has handled before.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

BATCH_SIZE = 10  # messages; the maximum of SQS per call
WAIT = 1  # seconds that a call waits for a message in an empty queue
POLL_EVERY = 0.25  # seconds between two reads of the depth of the queue
DEPTH = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")


@dataclass(frozen=True)
class Arrival:
    """A received message; ``sent_at`` is the timestamp of the queue, in ms since 1970."""

    event_id: str
    schedule: str
    due: datetime
    sent_at: int


class Consumer:
    """Backs up from one bucket into another until the context ends; ``clients(service)`` returns a boto3 client."""

    def __init__(self, clients: Callable[[str], Any], queue: str, source: str, target: str) -> None:
        self._clients, self._queue, self._source, self._target = clients, queue, source, target
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._work, self._look)]
        self.arrivals: list[Arrival] = []  # without repeats, in the order of receipt
        self.repeats = 0
        self.deepest = 0
        self.failure: Exception | None = None

    def __enter__(self) -> Consumer:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _work(self) -> None:
        sqs, s3 = self._clients("sqs"), self._clients("s3")
        seen: set[str] = set()
        try:
            while not self._stop.is_set():
                answer = sqs.receive_message(
                    QueueUrl=self._queue,
                    MaxNumberOfMessages=BATCH_SIZE,
                    WaitTimeSeconds=WAIT,
                    MessageSystemAttributeNames=["SentTimestamp"],
                    MessageAttributeNames=["All"],
                )
                for message in answer.get("Messages", ()):
                    arrival = arrival_of(message)
                    if arrival.event_id in seen:
                        self.repeats += 1
                    else:
                        self._back_up(s3, json.loads(message["Body"])["properties"]["source"])
                        seen.add(arrival.event_id)
                        self.arrivals.append(arrival)
                    # Last: after a crash before this call, SQS delivers the message again, and the backup is repeated.
                    sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])
        except Exception as error:  # the waiting example reports it
            self.failure = error

    def _back_up(self, s3: Any, key: str) -> None:
        """Read, compress and write a log. The write overwrites an earlier backup, so a repeat is idempotent."""
        content = s3.get_object(Bucket=self._source, Key=key)["Body"].read()
        s3.put_object(Bucket=self._target, Key=f"{key}.gz", Body=gzip.compress(content, mtime=0))

    def _look(self) -> None:
        sqs = self._clients("sqs")
        while not self._stop.wait(POLL_EVERY):
            attributes = sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=list(DEPTH))["Attributes"]
            self.deepest = max(self.deepest, sum(int(attributes[name]) for name in DEPTH))


def arrival_of(message: dict[str, Any]) -> Arrival:
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    sent_at = int(message["Attributes"]["SentTimestamp"])
    due = datetime.fromisoformat(attributes["sluice-due-time"])
    return Arrival(attributes["sluice-event-id"], attributes["sluice-schedule"], due, sent_at)
