"""Hints over SQS, and back. A hint names rows; it promises nothing (`ports.Hints`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from chalicelib.core.calendar import SECOND, Instant
from chalicelib.core.errors import invalid
from chalicelib.core.sweep import Ref, RefKind
from chalicelib.ports import LONGEST_DELAY

MOST_REFS = 50  # per message: as many as one Lambda gets through one by one
# So many for one instant are a crowd: prepared together before it comes, a thousand and more to an invocation.
CROWD, CROWD_REFS = 500, 500
MOST_MESSAGES, MOST_BYTES = 10, 240_000  # SQS's batch, all of its messages together (256 KB with what else is in it)
# A message must come before its instant, for nothing can be done in time after it: SQS counts whole seconds, and an
# idle queue is looked at once a second. The receiver waits out the rest.
HEAD_START = SECOND
CROWD_HEAD_START = 10 * SECOND


class SqsHints:
    def __init__(self, client: Any, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, refs: Sequence[Ref], due: Instant, now: Instant) -> None:
        size = CROWD_REFS if len(refs) >= CROWD else MOST_REFS
        delay = max(0, min(due - now - head_start(len(refs)), LONGEST_DELAY)) // SECOND
        bodies = [encode(refs[start : start + size], due) for start in range(0, len(refs), size)]
        for batch in _batches(bodies):
            entries = [
                {"Id": str(index), "MessageBody": body, "DelaySeconds": delay} for index, body in enumerate(batch)
            ]
            self._client.send_message_batch(QueueUrl=self._queue_url, Entries=entries)


def head_start(count: int) -> int:
    """How long before its instant a hint about so many is to arrive, in ms: a crowd takes a while to prepare."""
    return HEAD_START if count < CROWD else CROWD_HEAD_START


def _batches(bodies: Sequence[str]) -> Iterator[list[str]]:
    """As many messages to a call as SQS takes."""
    batch: list[str] = []
    for body in bodies:
        if batch and (len(batch) == MOST_MESSAGES or sum(map(len, batch)) + len(body) > MOST_BYTES):
            yield batch
            batch = []
        batch.append(body)
    if batch:
        yield batch


def encode(refs: Sequence[Ref], due: Instant) -> str:
    return json.dumps({"due": due, "refs": [[ref.kind, *ref.parts] for ref in refs]}, separators=(",", ":"))


def decode(body: str) -> tuple[tuple[Ref, ...], Instant]:
    """The refs of a hint and the instant that it is about. Raises for a body that is none, so that it is redriven."""
    try:
        hint = json.loads(body)
        return tuple(_ref(ref) for ref in hint["refs"]), int(hint["due"])
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise invalid("body", 'a hint such as {"due": 0, "refs": [["job", ...]]}', body) from error


def _ref(ref: object) -> Ref:
    if not isinstance(ref, list) or not ref or ref[0] not in get_args(RefKind):
        raise TypeError(f"expected a list that begins with one of {get_args(RefKind)}, got {ref!r}")
    return Ref(ref[0], tuple(str(part) for part in ref[1:]))
