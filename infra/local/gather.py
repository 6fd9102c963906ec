"""Full batches for a queue whose event source mapping has a maximum of concurrent invocations.

ministack takes what a queue has as soon as a message can be read. The messages of a burst come within some hundredths
of a second. So the first invocations get few of them. The rest waits until one of these has ended, which is after the
instant of the burst. Here such a mapping waits until its batch is full, or for `GATHER_S` after the first message.
Lambda has no such maximum of a few invocations, so it has no need to wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

GATHER_S = 0.3
Message = dict[str, Any]


def install(lambda_svc: Any, sqs: Any, clock: Callable[[], float] = time.time) -> None:
    """Make ministack gather the batches of such mappings. A queue has one mapping."""
    receive = sqs._receive_messages_for_esm
    first_seen: dict[str, float] = {}

    def receive_gathered(queue_url: str, most: int) -> list[Message]:
        if _has_maximum(lambda_svc, queue_url):
            now = clock()
            messages = list(sqs._get_q(queue_url)["messages"])
            visible = sum(message.get("visible_at", now) <= now for message in messages)
            waited = now - first_seen.setdefault(queue_url, now)
            if 0 < visible < most and waited < GATHER_S:
                return []
            del first_seen[queue_url]
        found: list[Message] = receive(queue_url, most)
        return found

    sqs._receive_messages_for_esm = receive_gathered


def _has_maximum(lambda_svc: Any, queue_url: str) -> bool:
    name = queue_url.rpartition("/")[2]
    mappings = list(lambda_svc._esms._data.values())
    of_queue = [esm for esm in mappings if esm.get("EventSourceArn", "").rpartition(":")[2] == name]
    return any((esm.get("ScalingConfig") or {}).get("MaximumConcurrency") for esm in of_queue)
