"""SQS, S3 and EMR Serverless in virtual time, with the boto3 methods that the adapters call."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from benchmarks.aws_model.invocation import CallPath
from benchmarks.target_queue import Arrival
from chalicelib.core.instants import parse_instant

HINTS, BURSTS, OBJECTS = "hints", "bursts", "objects"


@dataclass
class Message:
    """A message in a queue that invokes a function."""

    number: int
    body: str
    received: int = 0
    visible_at: float | None = None  # set by the function, for its next delivery
    deleted: bool = False


@dataclass
class Target:
    """What has arrived at the targets: messages, and starts of job runs by name. ``sends`` has the instant at which the
    call of each message began."""

    arrivals: list[Arrival] = field(default_factory=list)
    sends: list[float] = field(default_factory=list)
    started: list[tuple[float, str]] = field(default_factory=list)


class Sqs:
    """Queues. Messages of a queue in ``comes`` invoke a function when their delay is over; those of any other queue
    have arrived.

    ``comes`` has a function for each queue, called with each message at the instant at which it can be received."""

    def __init__(self, path: CallPath, target: Target) -> None:
        self._path = path
        self._target = target
        self._sent = 0
        self.comes: dict[str, Callable[[Message], None]] = {}
        self.in_flight: dict[str, Message] = {}

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Any:
        begun = self._now
        half = self._path.there("sqs:SendMessageBatch", len(Entries))
        for entry in Entries:
            self._take(QueueUrl, entry, begun)
        self._path.back("sqs:SendMessageBatch", half, len(Entries))
        return {"Successful": [{"Id": entry["Id"], "MessageId": f"m{entry['Id']}"} for entry in Entries], "Failed": []}

    def send_message(self, QueueUrl: str, **entry: Any) -> Any:
        begun = self._now
        half = self._path.there("sqs:SendMessage")
        self._take(QueueUrl, entry, begun)
        self._path.back("sqs:SendMessage", half)
        return {"MessageId": f"{self._sent:08d}-0000-4000-8000-000000000000"}

    def change_message_visibility_batch(self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Any:
        half = self._path.there("sqs:ChangeMessageVisibilityBatch", len(Entries))
        for entry in Entries:
            self.in_flight[entry["ReceiptHandle"]].visible_at = self._now + 1000 * entry["VisibilityTimeout"]
        self._path.back("sqs:ChangeMessageVisibilityBatch", half, len(Entries))
        return {}

    def get_queue_url(self, QueueName: str) -> Any:
        half = self._path.there("sqs:GetQueueUrl")
        self._path.back("sqs:GetQueueUrl", half)
        return {"QueueUrl": QueueName}

    @property
    def _now(self) -> float:
        return self._path.timeline.local

    def _take(self, queue: str, entry: Mapping[str, Any], begun: float) -> None:
        self._sent += 1
        if queue not in self.comes:
            named = {name: value["StringValue"] for name, value in entry["MessageAttributes"].items()}
            nominal = parse_instant(named["sluice-nominal-time"])
            self._target.sends.append(begun)
            self._target.arrivals.append(Arrival(named["sluice-event-id"], nominal, int(self._now)))
            return
        times = 2 if self._path.draws.happens(self._path.assumed.repeat_share) else 1
        for _ in range(times):
            self.enqueue(queue, str(entry["MessageBody"]), 1000.0 * int(entry.get("DelaySeconds", 0)))

    def enqueue(self, queue: str, body: str, delay: float = 0.0) -> None:
        self._sent += 1
        message = Message(self._sent, body)
        at = self._now + delay + self._path.draws.duration(self._path.assumed.visible_ms)
        self._path.timeline.at(at, lambda: self.comes[queue](message))


class S3:
    """Objects of the control bucket and of the lake."""

    class exceptions:  # noqa: N801 - boto3's name
        NoSuchKey = KeyError

    def __init__(self, path: CallPath) -> None:
        self._path = path
        self.objects: dict[str, bytes] = {}

    def put_object(self, Key: str, Body: bytes, **_: Any) -> Any:
        half = self._path.there("s3:PutObject")
        self.objects[Key] = Body
        self._path.back("s3:PutObject", half)
        return {}

    def get_object(self, Key: str, **_: Any) -> Any:
        half = self._path.there("s3:GetObject")
        found = self.objects[Key]
        self._path.back("s3:GetObject", half)
        return {"Body": io.BytesIO(found), "ContentLength": len(found)}


class Emr:
    """Job runs under the quota of StartJobRun. ``reports`` is called for each state change that EventBridge reports."""

    def __init__(self, path: CallPath, target: Target, reports: Callable[[str, str, str], None]) -> None:
        self._path = path
        self._target = target
        self.reports = reports
        self._tokens = path.assumed.emr_start_burst
        self._since = path.timeline.now
        self._by_token: dict[str, str] = {}
        self.refused = 0
        self.starts: Counter[str] = Counter()

    def start_job_run(self, applicationId: str, clientToken: str, name: str, **_: Any) -> Any:
        half = self._path.there("emr-serverless:StartJobRun")
        timeline, assumed = self._path.timeline, self._path.assumed
        now = timeline.local
        self._tokens += assumed.emr_starts_per_s * (now - self._since) / 1000
        self._tokens, self._since = min(self._tokens, assumed.emr_start_burst), now
        if self._tokens < 1:
            self.refused += 1
            self._path.back("emr-serverless:StartJobRun", half, 0)
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "StartJobRun")
        self._tokens -= 1
        self.starts[name] += 1
        if clientToken not in self._by_token:
            run_id = self._by_token[clientToken] = f"00fq{len(self._by_token):012d}"
            self._target.started.append((now, name))
            for after, state in ((assumed.emr_running_after_ms, "RUNNING"), (assumed.emr_ended_after_ms, "SUCCESS")):
                delivery_ms = self._path.draws.duration(assumed.event_bus_ms)
                timeline.at(now + after + delivery_ms, partial(self.reports, applicationId, run_id, state))
        self._path.back("emr-serverless:StartJobRun", half)
        return {"applicationId": applicationId, "jobRunId": self._by_token[clientToken]}

    def get_job_run(self, applicationId: str, jobRunId: str) -> Any:
        half = self._path.there("emr-serverless:GetJobRun")
        self._path.back("emr-serverless:GetJobRun", half)
        billed = {"vCPUHour": 0.067, "memoryGBHour": 0.183, "storageGBHour": 0.0}
        ended = datetime.fromtimestamp(0, UTC)
        return {"jobRun": {"state": "SUCCESS", "updatedAt": ended, "billedResourceUtilization": billed}}
