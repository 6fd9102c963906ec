"""A queue as the target of many schedules, and the figures of the messages that arrived.

SQS stamps each message on arrival (`SentTimestamp`, in ms). So the queue can be emptied after all messages have
arrived, and receiving does not disturb the measurement.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.durations import percentile
from chalicelib.core.instants import parse_instant

RECEIVERS = 4
HIDDEN_S = 12 * 3_600  # the longest that SQS allows
POLL_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message at the target: its event, its nominal instant and its arrival, in epoch ms."""

    event_id: str
    nominal_at: int
    sent_at: int

    @property
    def lateness(self) -> int:
        return self.sent_at - self.nominal_at


class TargetQueue:
    """A queue whose name has the prefix that the stack's policy requires of targets."""

    def __init__(self, client: Callable[[], Any], name: str) -> None:
        self._client = client
        self._sqs = client()
        self.url: str = self._sqs.create_queue(QueueName=f"sluice-target-{name}")["QueueUrl"]

    def workflow(self) -> dict[str, Any]:
        return {"target": {"type": "sqs", "queue_url": self.url}}

    def wait_for(self, count: int, patience_s: float, progress: Callable[[int], None]) -> None:
        """Wait until the queue has this number of messages, or none arrives for a while. Polls rarely, because polling
        costs time."""
        arrived, since = 0, time.monotonic()
        while arrived < count and time.monotonic() - since < patience_s:
            time.sleep(POLL_EVERY_S)
            now = self.count()
            if now > arrived:
                arrived, since = now, time.monotonic()
                progress(arrived)

    def count(self) -> int:
        """How many messages the queue has."""
        name = "ApproximateNumberOfMessages"
        return int(self._sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=[name])["Attributes"][name])

    def drain(self) -> list[Arrival]:
        """All messages in the queue, which is empty afterwards. A message that two readers received counts once: only
        an event in two messages was sent twice.

        The local cloud reads the whole queue for each message that is deleted. So the messages stay hidden until all
        are read, and then the queue is purged.
        """
        with ThreadPoolExecutor(RECEIVERS) as pool:
            parts = list(pool.map(lambda _: self._receive_all(), range(RECEIVERS)))
        self._sqs.purge_queue(QueueUrl=self.url)
        return list({message: arrival for part in parts for message, arrival in part.items()}.values())

    def _receive_all(self) -> dict[str, Arrival]:
        client = self._client()
        found: dict[str, Arrival] = {}
        while True:
            answer = client.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=10,
                VisibilityTimeout=HIDDEN_S,
                MessageSystemAttributeNames=["SentTimestamp"],
                MessageAttributeNames=["All"],
            )
            messages = answer.get("Messages", [])
            if not messages:
                return found
            found |= {message["MessageId"]: arrival_of(message) for message in messages}


def arrival_of(message: dict[str, Any]) -> Arrival:
    attributes = message["MessageAttributes"]
    nominal = parse_instant(attributes["sluice-nominal-time"]["StringValue"])
    return Arrival(attributes["sluice-event-id"]["StringValue"], nominal, int(message["Attributes"]["SentTimestamp"]))


def figures(arrivals: Sequence[Arrival], expected: int) -> dict[str, Any]:
    """The result of ``expected`` events: the lateness of each (by its first message), and which were missed or doubled.

    ``seconds`` is from the first nominal instant to the last arrival of an event; a duplicate does not count.
    Raises ValueError for a message before its instant or without an event: then the figures would be meaningless.
    """
    firsts: dict[str, Arrival] = {}
    for arrival in sorted(arrivals, key=lambda one: one.sent_at):
        firsts.setdefault(arrival.event_id, arrival)
    times = Counter(arrival.event_id for arrival in arrivals)
    early = [arrival for arrival in arrivals if arrival.lateness < 0]
    if early:
        raise ValueError(f"expected no message before its instant, got {len(early)}, such as {early[0]}")
    if len(firsts) > expected:
        raise ValueError(f"expected {expected} events, got {len(firsts)}")
    if not firsts:
        raise ValueError(f"expected {expected} events, got none")
    late = [one.lateness for one in firsts.values()]
    span = max(one.sent_at for one in firsts.values()) - min(one.nominal_at for one in firsts.values())
    seconds = max(span, 1) / 1000
    return {
        "jobs": expected,
        "seconds": round(seconds, 3),
        "per_second": round(len(firsts) / seconds, 1),
        "lateness_ms": {"p50": percentile(late, 0.5), "p99": percentile(late, 0.99), "max": max(late)},
        "missed": expected - len(firsts),
        "doubled": sum(1 for count in times.values() if count > 1),
    }
