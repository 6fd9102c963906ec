"""Hints over SQS, and back. A hint names rows; it promises nothing (`ports.Hints`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

from chalicelib.core.calendar import SECOND, Instant
from chalicelib.core.errors import invalid
from chalicelib.core.sweep import Ref, RefKind
from chalicelib.ports import LONGEST_DELAY

MOST_REFS = 50  # per message: well below SQS's 256 KB, and as many as one Lambda gets through in time
MOST_MESSAGES = 10  # SQS's batch
# A message must come before its instant, for nothing can be done in time after it: SQS counts whole seconds, and an
# idle queue is looked at once a second. The receiver waits out the rest.
HEAD_START = SECOND


class SqsHints:
    def __init__(self, client: Any, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, refs: Sequence[Ref], due: Instant, now: Instant) -> None:
        delay = max(0, min(due - now - HEAD_START, LONGEST_DELAY)) // SECOND
        parts = [refs[start : start + MOST_REFS] for start in range(0, len(refs), MOST_REFS)]
        for start in range(0, len(parts), MOST_MESSAGES):
            entries = [
                {"Id": str(index), "MessageBody": encode(part, due), "DelaySeconds": delay}
                for index, part in enumerate(parts[start : start + MOST_MESSAGES])
            ]
            self._client.send_message_batch(QueueUrl=self._queue_url, Entries=entries)


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
