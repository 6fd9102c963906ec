"""SQS, S3 and EMR Serverless as far as the flows call them: boto3's method names, counted, under the hand-turned clock.

The adapters of `chalicelib/aws` talk to these as they talk to the real ones, so what they batch is batched here too.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from benchmarks.cost.tally import Tally

Later = Callable[[int, Callable[[], None]], None]
APPLICATION = "00fqk2v8t9abcd09"  # as long as a real one: ids are in keys, and keys are billed
# When EMR tells of a run: a usual start, and an end before anybody has to ask how it is.
RUNNING_AFTER_MS, ENDED_AFTER_MS = 30_000, 90_000


class Clock:
    """Turned by hand. A Lambda that waits is billed for it."""

    def __init__(self, now: int, tally: Callable[[], Tally]) -> None:
        self.instant = now
        self._tally = tally

    def now(self) -> int:
        return self.instant

    def wait_until(self, instant: int) -> None:
        self._tally().wait(max(0, instant - self.instant))
        self.instant = max(self.instant, instant)


class Sqs:
    """`deliver(body)` is called when a message of the hints queue becomes visible. Messages to others are targets'."""

    def __init__(self, tally: Callable[[], Tally], later: Later, deliver: Callable[[str], None]) -> None:
        self._tally = tally
        self._later = later
        self._deliver = deliver
        self.delivered_to_targets = 0

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Any:  # noqa: N803
        self._tally().call("sqs", "SendMessageBatch")
        if "DelaySeconds" not in Entries[0]:
            self.delivered_to_targets += len(Entries)
            return {"Successful": [{"Id": entry["Id"], "MessageId": f"m{entry['Id']}"} for entry in Entries]}
        for entry in Entries:
            body = str(entry["MessageBody"])
            self._later(1000 * int(entry["DelaySeconds"]), lambda body=body: self._deliver(body))  # type: ignore[misc]
        return {"Successful": [], "Failed": []}

    def send_message(self, **_: Any) -> Any:
        self._tally().call("sqs", "SendMessage")
        self.delivered_to_targets += 1
        return {"MessageId": f"{self.delivered_to_targets:08d}-0000-4000-8000-000000000000"}


class S3:
    """Keeps what is put, so that a context can be read by the run downstream."""

    class exceptions:  # noqa: N801 - boto3's name
        NoSuchKey = KeyError

    def __init__(self, tally: Callable[[], Tally]) -> None:
        self._tally = tally
        self._objects: dict[str, bytes] = {}

    def put_object(self, Key: str, Body: bytes, **_: Any) -> Any:  # noqa: N803
        self._tally().call("s3", "PutObject")
        self._objects[Key] = Body
        return {}

    def get_object(self, Key: str, **_: Any) -> Any:  # noqa: N803
        self._tally().call("s3", "GetObject")
        return {"Body": io.BytesIO(self._objects[Key])}


class Emr:
    """Takes every run, and tells of its states in time."""

    def __init__(self, tally: Callable[[], Tally], later: Later, tell: Callable[[str, str], None]) -> None:
        self._tally = tally
        self._later = later
        self._tell = tell
        self.names: list[str] = []

    def start_job_run(self, applicationId: str, name: str, **_: Any) -> Any:  # noqa: N803
        self._tally().call("emr-serverless", "StartJobRun")
        self.names.append(name)
        run_id = f"00fq{len(self.names):012d}"
        self._later(RUNNING_AFTER_MS, lambda: self._tell(run_id, "RUNNING"))
        self._later(ENDED_AFTER_MS, lambda: self._tell(run_id, "SUCCESS"))
        return {"applicationId": applicationId, "jobRunId": run_id}

    def get_job_run(self, applicationId: str, jobRunId: str) -> Any:  # noqa: N803
        """Asked for the bill of a run that has ended (H1)."""
        self._tally().call("emr-serverless", "GetJobRun")
        billed = {"vCPUHour": 0.067, "memoryGBHour": 0.183, "storageGBHour": 0.0}
        ended = datetime.fromtimestamp(0, UTC)
        return {"jobRun": {"state": "SUCCESS", "updatedAt": ended, "billedResourceUtilization": billed}}
