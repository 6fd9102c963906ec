"""A batch of a burst on the local cloud is full, or has waited for the other messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from infra.local import gather

QUEUE = "http://127.0.0.1:4566/000000000000/bursts"


class Queue:
    """ministack's modules with one queue, of which each call takes what is visible."""

    def __init__(self, maximum: int | None) -> None:
        self.now = 100.0
        self.messages: list[dict[str, Any]] = []
        mapping = {"EventSourceArn": "arn:aws:sqs:us-east-1:000000000000:bursts"}
        scaling = {"ScalingConfig": {"MaximumConcurrency": maximum}} if maximum else {}
        lambda_svc = SimpleNamespace(_esms=SimpleNamespace(_data={"one": mapping | scaling}))
        self.sqs = SimpleNamespace(_receive_messages_for_esm=self._take, _get_q=lambda url: {"messages": self.messages})
        gather.install(lambda_svc, self.sqs, lambda: self.now)

    def _take(self, url: str, most: int) -> list[dict[str, Any]]:
        taken = [message for message in self.messages if message["visible_at"] <= self.now][:most]
        self.messages = [message for message in self.messages if message not in taken]
        return taken

    def send(self, count: int, delay: float = 0.0) -> None:
        self.messages += [{"visible_at": self.now + delay, "number": number} for number in range(count)]

    def received(self, passed: float = 0.0) -> int:
        self.now += passed
        return len(self.sqs._receive_messages_for_esm(QUEUE, 10))


def test_messages_that_come_together_are_taken_together() -> None:
    queue = Queue(5)
    queue.send(2)
    assert queue.received() == 0
    queue.send(3)
    assert queue.received(gather.GATHER_S / 2) == 0
    assert queue.received(gather.GATHER_S + 0.1) == 5


def test_a_full_batch_is_taken_at_once() -> None:
    queue = Queue(5)
    queue.send(12)
    assert queue.received() == 10
    assert queue.received() == 0, "the other two wait for more"
    assert queue.received(gather.GATHER_S + 0.1) == 2


def test_a_delayed_message_begins_no_wait() -> None:
    queue = Queue(5)
    queue.send(1, delay=2.0)
    assert queue.received(1.9) == 0
    assert queue.received(0.2) == 0
    assert queue.received(gather.GATHER_S + 0.1) == 1


@pytest.mark.parametrize("passed", [0.0, 5.0])
def test_a_mapping_without_a_maximum_takes_what_there_is(passed: float) -> None:
    queue = Queue(None)
    queue.send(1)
    assert queue.received(passed) == 1
