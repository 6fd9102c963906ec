"""Replacements for SQS, S3 and EMR Serverless. They have the boto3 methods that the flows call, count the calls, and
use the benchmark's clock.

The adapters of `chalicelib/aws` use them like the real services, so their batches are the same here.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from benchmarks.cost.tally import Tally

Later = Callable[[int, Callable[[], None]], None]
APPLICATION = "00fqk2v8t9abcd09"  # as long as a real id: ids are in keys, which are billed
# When EMR reports states: a usual start, and an end before Sluice would poll.
RUNNING_AFTER_MS, ENDED_AFTER_MS = 30_000, 90_000


class Clock:
    """A clock that the benchmark sets. The waiting time of a Lambda is billed."""

    def __init__(self, now: int, tally: Callable[[], Tally]) -> None:
        self.instant = now
        self._tally = tally

    def now(self) -> int:
        return self.instant

    def wait_until(self, instant: int) -> None:
        self._tally().wait(max(0, instant - self.instant))
        self.instant = max(self.instant, instant)


class Sqs:
    """`deliver(queue, body)` is called when a message of a queue of hints becomes visible. Other queues are targets."""

    def __init__(self, tally: Callable[[], Tally], later: Later, deliver: Callable[[str, str], None]) -> None:
        self._tally = tally
        self._later = later
        self._deliver = deliver
        self.delivered_to_targets = 0

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Any:
        self._tally().call("sqs", "SendMessageBatch")
        if "DelaySeconds" not in Entries[0]:
            self.delivered_to_targets += len(Entries)
            return {"Successful": [{"Id": entry["Id"], "MessageId": f"m{entry['Id']}"} for entry in Entries]}
        for entry in Entries:
            body = str(entry["MessageBody"])
            self._later(1000 * int(entry["DelaySeconds"]), partial(self._deliver, QueueUrl, body))
        return {"Successful": [], "Failed": []}

    def send_message(self, **_: Any) -> Any:
        self._tally().call("sqs", "SendMessage")
        self.delivered_to_targets += 1
        return {"MessageId": f"{self.delivered_to_targets:08d}-0000-4000-8000-000000000000"}


class S3:
    """Stores objects, so that the downstream run can read its context."""

    class exceptions:  # noqa: N801 - boto3's name
        NoSuchKey = KeyError

    def __init__(self, tally: Callable[[], Tally]) -> None:
        self._tally = tally
        self._objects: dict[str, bytes] = {}

    def put_object(self, Key: str, Body: bytes, **_: Any) -> Any:
        self._tally().call("s3", "PutObject")
        self._tally().stored_bytes += len(Body)
        self._objects[Key] = Body
        return {}

    def get_object(self, Key: str, **_: Any) -> Any:
        self._tally().call("s3", "GetObject")
        return {"Body": io.BytesIO(self._objects[Key])}


class Emr:
    """Accepts every run, and reports its states in time."""

    def __init__(self, tally: Callable[[], Tally], later: Later, tell: Callable[[str, str], None]) -> None:
        self._tally = tally
        self._later = later
        self._tell = tell
        self.names: list[str] = []

    def start_job_run(self, applicationId: str, name: str, **_: Any) -> Any:
        self._tally().call("emr-serverless", "StartJobRun")
        self.names.append(name)
        run_id = f"00fq{len(self.names):012d}"
        self._later(RUNNING_AFTER_MS, lambda: self._tell(run_id, "RUNNING"))
        self._later(ENDED_AFTER_MS, lambda: self._tell(run_id, "SUCCESS"))
        return {"applicationId": applicationId, "jobRunId": run_id}

    def get_job_run(self, applicationId: str, jobRunId: str) -> Any:
        """The answer to the poll for the bill of a run that has ended (H1)."""
        self._tally().call("emr-serverless", "GetJobRun")
        billed = {"vCPUHour": 0.067, "memoryGBHour": 0.183, "storageGBHour": 0.0}
        ended = datetime.fromtimestamp(0, UTC)
        return {"jobRun": {"state": "SUCCESS", "updatedAt": ended, "billedResourceUtilization": billed}}
