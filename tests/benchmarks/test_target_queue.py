"""Figures about the messages at a target: how late, how many missed, how many repeated; and what must never happen."""

from __future__ import annotations

from itertools import count
from typing import Any

import boto3
import pytest
from moto import mock_aws

from benchmarks.target_queue import Arrival, TargetQueue, figures

DUE = 1_795_000_000_000


def _arrivals(*lateness: int) -> list[Arrival]:
    return [Arrival(f"job-{number}", DUE, DUE + late) for number, late in enumerate(lateness)]


def test_e9_figures_count_from_due_instant_to_last_arrival() -> None:
    answer = figures(_arrivals(100, 200, 2_000), expected=3)

    assert (answer["jobs"], answer["seconds"], answer["per_second"]) == (3, 2.0, 1.5)
    assert answer["lateness_ms"] == {"p50": 200, "p99": 2_000, "max": 2_000}
    assert (answer["missed"], answer["doubled"]) == (0, 0)


def test_e9_a_repeated_event_counts_once_and_is_reported() -> None:
    again = Arrival("job-0", DUE, DUE + 9_000)
    answer = figures([*_arrivals(100, 200), again], expected=3)

    assert (answer["missed"], answer["doubled"]) == (1, 1)
    assert answer["lateness_ms"]["max"] == 200  # its first message is the one that counts


def test_e9_a_message_before_its_instant_is_an_error() -> None:
    with pytest.raises(ValueError, match="no message before its instant"):
        figures(_arrivals(100, -1), expected=2)


def test_too_many_events_or_none_at_all_are_errors() -> None:
    with pytest.raises(ValueError, match="expected 1 events, got 2"):
        figures(_arrivals(1, 2), expected=1)
    with pytest.raises(ValueError, match="got none"):
        figures([], expected=1)


def test_a_queue_is_emptied_by_several_readers_with_timestamps() -> None:
    with mock_aws():
        client = boto3.client("sqs", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        queue, numbers = TargetQueue(lambda: client, "test"), count()
        for _ in range(25):
            client.send_message(QueueUrl=queue.url, MessageBody="{}", MessageAttributes=_attributes(next(numbers)))
        seen: list[int] = []
        queue.wait_for(25, 1.0, seen.append)
        arrivals = queue.drain()
        left = queue.count()

    assert (seen[-1], left) == (25, 0)
    assert sorted(arrival.event_id for arrival in arrivals) == sorted(f"job-{number}" for number in range(25))
    assert all(arrival.nominal_at == DUE and arrival.sent_at > DUE / 2 for arrival in arrivals)
    assert queue.url.endswith("sluice-target-test")


class _TwiceEach:
    """A client of a queue whose messages are each received twice, as two readers at the same time may do."""

    def __init__(self, client: Any) -> None:
        self._client, self._received = client, list[dict[str, Any]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def receive_message(self, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.receive_message(**arguments)
        if not answer.get("Messages"):
            return {"Messages": [self._received.pop()]} if self._received else answer
        self._received += answer["Messages"]
        return answer


def test_a_message_that_two_readers_receive_counts_once() -> None:
    with mock_aws():
        client = boto3.client("sqs", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        twice = _TwiceEach(client)
        queue = TargetQueue(lambda: twice, "test")
        for number in (0, 1, 1):
            client.send_message(QueueUrl=queue.url, MessageBody="{}", MessageAttributes=_attributes(number))
        arrivals = queue.drain()

    assert sorted(arrival.event_id for arrival in arrivals) == ["job-0", "job-1", "job-1"]  # two messages of one event


def _attributes(number: int) -> dict[str, Any]:
    answer = {"sluice-event-id": f"job-{number}", "sluice-nominal-time": "2026-11-18T11:06:40.000Z"}
    return {name: {"DataType": "String", "StringValue": text} for name, text in answer.items()}
