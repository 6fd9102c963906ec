"""A simulated AWS account in memory, at the level of boto3's clients. Every version of the service uses it.

In the copied trees this module replaces `boto3`. The clients that a version keeps use the account of the present test.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.core.instants import SECOND, Instant
from tests.support.emr_client import EmrClient, JobRun
from tests.support.world import World

APPLICATION = "00app"
ARN = "arn:aws:sqs:us-east-1:123456789012:"
URL = "https://sqs.us-east-1.amazonaws.com/123456789012/"
# As in infra/resources/queues.yaml: seconds until a message that was not deleted comes again, and its number of
# receives.
QUEUES = {"objects": (360, 85), "hints": (720, 16), "custom": (360, 85)}

ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "POWERTOOLS_METRICS_DISABLED": "true",
    "SLUICE_CATALOG_TABLE": "CatalogTable",
    "SLUICE_JOBS_TABLE": "JobsTable",
    "SLUICE_RUNS_TABLE": "RunsTable",
    "SLUICE_HINTS_QUEUE_URL": URL + "hints",
    "SLUICE_LAKE_BUCKET": "lake-bucket",
    "SLUICE_CONTROL_BUCKET": "control",
    "SLUICE_EMR_APPLICATION_ID": APPLICATION,
    "SLUICE_EMR_JOB_ROLE_ARN": "arn:aws:iam::123456789012:role/job",
    "SLUICE_EMR_RUN_LIMITS": f"{APPLICATION}=5",
    "SLUICE_WAKE_SHARDS": "1",
    "SLUICE_HISTORY_SHARDS": "1",
    "SLUICE_START_BURST": "5",
}


@dataclass
class Message:
    id: str
    body: str
    visible_at: Instant
    received: int = 0


@dataclass
class Queue:
    """A standard queue behind an event source mapping, with a dead-letter queue."""

    name: str
    again_s: int
    most: int
    messages: list[Message] = field(default_factory=list)
    dead: list[Message] = field(default_factory=list)
    sent: int = 0

    def send(self, body: str, visible_at: Instant) -> str:
        self.sent += 1
        self.messages.append(Message(f"{self.name}{self.sent}", body, visible_at))
        return self.messages[-1].id

    def next(self) -> Instant | None:
        return min((message.visible_at for message in self.messages), default=None)

    def receive(self, now: Instant, most: int = 10) -> list[Message]:
        """Return the visible messages, and hide them for a while. A message that came too often becomes a
        dead letter.
        """
        found = sorted((each for each in self.messages if each.visible_at <= now), key=lambda each: each.visible_at)
        for message in found[:most]:
            message.received += 1
            message.visible_at = now + self.again_s * SECOND
            if message.received > self.most:
                self.messages.remove(message)
                self.dead.append(message)
        return [message for message in found[:most] if message in self.messages]

    def event(self, messages: list[Message]) -> dict[str, Any]:
        """The event with which Lambda is invoked for messages."""
        return {"Records": [self._record(message) for message in messages]}

    def answered(self, messages: list[Message], failed: set[str]) -> None:
        """Delete the messages that an invocation did not report as failed."""
        for message in messages:
            if message.id not in failed:
                self.messages.remove(message)

    def _record(self, message: Message) -> dict[str, Any]:
        return {
            "messageId": message.id,
            "receiptHandle": message.id,
            "body": message.body,
            "attributes": {"ApproximateReceiveCount": str(message.received), "SentTimestamp": "1545082649183"},
            "messageAttributes": {},
            "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
            "eventSource": "aws:sqs",
            "eventSourceARN": ARN + self.name,
            "awsRegion": "us-east-1",
        }


class Sqs:
    """The service's own queues, and one queue that is a target of runs."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.queues = {name: Queue(name, *limits) for name, limits in QUEUES.items()}
        self.delivered: list[Mapping[str, Any]] = []  # to the queue of users
        self.refuses = 0  # how many of the next messages to it are refused for good

    def get_queue_url(self, QueueName: str) -> dict[str, str]:
        return {"QueueUrl": URL + QueueName}

    def send_message(self, QueueUrl: str, **entry: Any) -> dict[str, str]:
        return {"MessageId": self._send(QueueUrl, entry)}

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        return {"Successful": [{"Id": each["Id"], "MessageId": self._send(QueueUrl, each)} for each in Entries]}

    def change_message_visibility_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        queue = self.queues[QueueUrl.removeprefix(URL)]
        for entry in Entries:
            for message in queue.messages:
                if message.id == entry["ReceiptHandle"]:
                    message.visible_at = self._clock.now() + entry["VisibilityTimeout"] * SECOND
        return {"Successful": [{"Id": each["Id"]} for each in Entries]}

    def _send(self, url: str, entry: Mapping[str, Any]) -> str:
        queue = self.queues.get(url.removeprefix(URL))
        if queue is None and self.refuses:
            self.refuses -= 1
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not now"}}, "SendMessage")
        if queue is None:
            self.delivered.append(entry)
            return f"d{len(self.delivered)}"
        return queue.send(entry["MessageBody"], self._clock.now() + entry.get("DelaySeconds", 0) * SECOND)


class Emr(EmrClient):
    """EMR Serverless whose job runs use the account's clock."""

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self._clock = clock
        self._created: dict[str, datetime] = {}

    def start_job_run(self, **asked: Any) -> dict[str, str]:
        answer = super().start_job_run(**asked)
        self._created.setdefault(answer["jobRunId"], self._now())
        return answer

    def living(self) -> list[JobRun]:
        return [run for run in self.runs if run.state in ("SUBMITTED", "RUNNING")]

    def cancel_job_run(self, **asked: str) -> None:
        run = self._run(**asked)
        if run.state in ("SUBMITTED", "RUNNING"):  # otherwise EMR refuses, because the run has ended
            run.state = "CANCELLED"

    def _answer(self, run: JobRun) -> dict[str, Any]:
        instants = {"createdAt": self._created[run.id], "updatedAt": self._now()}
        return {**super()._answer(run), **instants, "startedAt": self._created[run.id], "endedAt": self._now()}

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now() / 1000, UTC)


class NoSuchKey(Exception):
    pass


class _S3Exceptions:
    NoSuchKey = NoSuchKey


class S3:
    exceptions = _S3Exceptions

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}

    def put_object(self, Bucket: str, Key: str, Body: bytes, **_: Any) -> None:
        self.objects[Bucket, Key] = Body

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        if (Bucket, Key) not in self.objects:
            raise NoSuchKey
        content = self.objects[Bucket, Key]
        return {"Body": io.BytesIO(content), "ContentLength": len(content)}


class Account:
    """Tables, queues, EMR and buckets of one installation. ``books`` reads the tables with the present code."""

    def __init__(self) -> None:
        self.books = World(wake_shards=1, history_shards=1)
        self.clock, self.tables = self.books.clock, self.books.tables
        self.sqs, self.emr, self.s3 = Sqs(self.clock), Emr(self.clock), S3()
        self.services = {"dynamodb": self.tables, "sqs": self.sqs, "emr-serverless": self.emr, "s3": self.s3}

    def queue(self, name: str) -> Queue:
        return self.sqs.queues[name]


class _Client:
    """A client that outlives the account of its test, as a warm Lambda's modules outlive an invocation."""

    def __init__(self, service: str) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        return getattr(current().services[self._service], name)


def client(service: str, **_: Any) -> Any:
    """Replaces `boto3.client` in the copied trees."""
    return _Client(service)


_played: list[Account] = []


def current() -> Account:
    return _played[-1]


@contextmanager
def played(account: Account) -> Iterator[Account]:
    """Use an account: clients and clocks of the copied trees belong to it."""
    _played.append(account)
    try:
        yield account
    finally:
        _played.pop()
