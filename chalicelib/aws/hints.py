"""Hints over SQS: encode, send and decode. A hint names rows; nothing depends on its delivery (`ports.Hints`).

A message must arrive before its instant, or its rows are handled late. The receiver then waits until the instant, and
waiting costs Lambda time. SQS delays by whole seconds from the moment of sending, so a message arrives up to a second
earlier than its head start. It arrives exactly at the head start if it is sent at the right fraction of a second
(decision 0020).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core.errors import invalid
from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis
from chalicelib.core.rows.ref import Ref, RefKind, events_of, is_of_block
from chalicelib.core.system import bursts
from chalicelib.log import logger
from chalicelib.ports import MAX_DELAY, Clock

MAX_REFS = 50  # per message: as many as one Lambda handles one by one
# The messages of a burst go to a queue of their own, whose messages are never handled together: each invocation
# prepares the rows of one message before the instant, and all invocations send at once. The messages of blocks of
# permits go there, too: other messages of one invocation would delay their starts.
MAX_TRIES = 3  # tries to send a message of a batch
MAX_MESSAGES, MAX_BYTES = 10, 240_000  # per batch; SQS allows 256 KB including its overhead
# How long before its instant a message must arrive, so that its rows can be read. More rows take longer.
HEAD_START: Millis = 200
GROUP_HEAD_START: Millis = SECOND
# A receiver waits for the instant of a message that comes at most this much before its head start.
MAX_WAIT: Millis = 2 * SECOND
# After such a pause the receiver may need a cold start, which takes most of a second.
COLD_AFTER: Millis = 5 * MINUTE
# The additional delay of hints that are sent before their rows are written.
AHEAD: Millis = 2 * SECOND
# From this many messages on, it costs less if the sender waits for the right moment than if each receiver waits for its
# instant. The sender has twice the memory of a receiver, or three times if a large emission is divided.
WORTH_A_WAIT = 3


class SqsHints:
    """Implements `ports.Hints`. ``_sent_for`` is the latest instant for which this process has sent a hint to the queue
    of ordinary messages, and ``_keeps_warm`` whether it has sent one since the last `keep_warm`. The messages of bursts
    start another Lambda.

    Without a queue for bursts, their messages go to the queue of all hints."""

    def __init__(self, client: Any, queue_url: str, clock: Clock, burst_queue_url: str = "") -> None:
        self._client = client
        self._queue_url = queue_url
        self._burst_queue_url = burst_queue_url or queue_url
        self._clock = clock
        self._sent_for: Instant = 0
        self._keeps_warm = False

    def send(self, refs: Sequence[Ref], due: Instant, now: Instant) -> None:
        self.send_all([(due, refs)], now)

    def send_all(
        self,
        hints: Sequence[tuple[Instant, Sequence[Ref]]],
        now: Instant,
        *,
        patient: bool = False,
        ahead: bool = False,
        must: bool = False,
        crowd: int = 0,
    ) -> None:
        if patient:
            self._wait(hints, now, crowd)
        # SQS counts the delay from now, and the caller may have read the clock earlier.
        now = max(now, self._clock.now())
        messages = [
            message
            for due, refs in sorted(hints, key=_due)
            for message in self._messages(refs, due, now, AHEAD if ahead else 0, crowd)
        ]
        try:
            self._send(self._burst_queue_url, [message for message in messages if message.is_burst])
            self._send(self._queue_url, [message for message in messages if not message.is_burst])
        except (BotoCoreError, ClientError):
            if must:
                raise
            # The rows are written, and the sweep finds them. The caller has other work to do.
            logger.exception("hints not sent", extra={"size": len(messages)})

    def _wait(self, hints: Sequence[tuple[Instant, Sequence[Ref]]], now: Instant, crowd: int) -> None:
        """Wait for the moment at which it costs least to send these hints, if that saves more than it costs."""
        # Hints for wall-clock times: each is one message for a whole second.
        alone = sum(len(refs) <= MAX_REFS and due % SECOND == 0 for due, refs in hints)
        # The parts of a burst arrive together, because all of their senders wait for the same part of a second.
        if alone >= WORTH_A_WAIT or (crowd and any(len(refs) > MAX_REFS for _, refs in hints)):
            moment = right_moment(max(now, self._clock.now()))
            if min(map(_due, hints)) > moment + bursts.LONGEST_LEAD:
                self._clock.wait_until(moment)

    def keep_warm(self) -> None:
        if not self._keeps_warm:
            with suppress(BotoCoreError, ClientError):  # the next tick sends another one
                self._client.send_message(QueueUrl=self._queue_url, MessageBody=encode((), 0))
        self._keeps_warm = False

    def _send(self, queue_url: str, messages: Sequence[_Message]) -> None:
        """Send messages in batches. SQS may accept some messages of a batch and fail others; the answer lists the
        failures and is no error. The sweep finds the rows of messages that fail every time."""
        for batch in _batches(messages):
            entries = [
                {"Id": str(index), "MessageBody": message.body, "DelaySeconds": message.delay}
                for index, message in enumerate(batch)
            ]
            for _ in range(MAX_TRIES):
                answer = self._client.send_message_batch(QueueUrl=queue_url, Entries=entries)
                failed = {failure["Id"] for failure in answer.get("Failed", ())}
                entries = [entry for entry in entries if entry["Id"] in failed]
                if not entries:
                    break
            else:
                logger.warning("hints not sent", extra={"size": len(entries)})

    def _messages(
        self, refs: Sequence[Ref], due: Instant, now: Instant, min_delay: Millis, crowd: int
    ) -> Iterator[_Message]:  # fmt: skip
        """The messages of the hints for one instant."""
        for shard in filter(_is_shard, refs):
            # It is work of about a second for hundreds of rows, so it needs an invocation of its own.
            yield _Message(encode([shard], due), _delay(due - now, min_delay), is_burst=True)
        large = list(filter(_is_large, refs))
        of_burst = sum(map(events_of, large)) >= bursts.BURST
        for bundle in large:
            early = bursts.lead_of_bundles(len(large)) if of_burst else GROUP_HEAD_START
            yield _Message(encode([bundle], due), _delay(due - now - early, min_delay), of_burst)
        refs = [ref for ref in refs if not _is_shard(ref) and not _is_large(ref)]
        # A part of a burst that is as small as an ordinary message is one.
        rows = max(len(refs), crowd) if len(refs) > MAX_REFS else len(refs)
        is_burst = rows >= bursts.BURST or any(map(is_of_block, refs))
        size = bursts.rows_of_each(len(refs), rows) if is_burst else MAX_REFS
        early = max(head_start(rows), SECOND if due - self._sent_for > COLD_AFTER else 0)
        if refs and not is_burst:
            self._sent_for, self._keeps_warm = max(self._sent_for, due), True
        for start in range(0, len(refs), size):
            for body in _bodies(refs[start : start + size], due):
                yield _Message(body, _delay(due - now - early, min_delay), is_burst)


@dataclass(frozen=True, slots=True)
class _Message:
    """A message to send: its body, and its delay in seconds."""

    body: str
    delay: int
    is_burst: bool


def _delay(wanted: Millis, least: Millis) -> int:
    """The delay of a message in whole seconds."""
    return max(least, min(wanted, MAX_DELAY)) // SECOND


def head_start(count: int) -> Millis:
    """How long before its instant, in ms, a hint for this number of rows must arrive."""
    if count >= bursts.BURST:
        return bursts.lead(count)
    return GROUP_HEAD_START if count > MAX_REFS else HEAD_START


def is_early(count: int, due: Instant, now: Instant) -> bool:
    """Whether a message with this number of refs arrives too early for its receiver to wait for its instant."""
    return due - now > longest_wait(count)


def longest_wait(count: int) -> Millis:
    """How long before its instant the receiver of a message with this number of refs may begin."""
    return MAX_WAIT + (bursts.LONGEST_LEAD if count > MAX_REFS else HEAD_START)


def right_moment(now: Instant) -> Instant:
    """The next moment from which a whole number of seconds ends exactly one head start before a whole second."""
    return now + (-HEAD_START - now) % SECOND


def _is_shard(ref: Ref) -> bool:
    return ref.kind == "shard"


def _is_large(ref: Ref) -> bool:
    """Whether a ref is that of a bundle with more events than an ordinary message has refs."""
    return events_of(ref) > MAX_REFS


def _due(hint: tuple[Instant, Sequence[Ref]]) -> Instant:
    return hint[0]


def _batches(messages: Sequence[_Message]) -> Iterator[list[_Message]]:
    """The messages in batches that SQS accepts."""
    batch: list[_Message] = []
    for message in messages:
        size = sum(len(each.body) for each in batch) + len(message.body)
        if batch and (len(batch) == MAX_MESSAGES or size > MAX_BYTES):
            yield batch
            batch = []
        batch.append(message)
    if batch:
        yield batch


def _bodies(refs: Sequence[Ref], due: Instant) -> Iterator[str]:
    """The hint in one message, or in more if the names of its rows are too long for one."""
    body = encode(refs, due)
    if len(body) <= MAX_BYTES or len(refs) == 1:
        yield body
        return
    half = len(refs) // 2
    yield from _bodies(refs[:half], due)
    yield from _bodies(refs[half:], due)


def encode(refs: Sequence[Ref], due: Instant) -> str:
    return json.dumps({"due": due, "refs": [[ref.kind, *ref.parts] for ref in refs]}, separators=(",", ":"))


def decode(body: str) -> tuple[tuple[Ref, ...], Instant]:
    """The refs of a hint and the instant for which it was sent. Raises ``invalid`` for any other body, so that SQS
    retries it and finally moves it to the dead letters."""
    try:
        hint = json.loads(body)
        return tuple(_ref(ref) for ref in hint["refs"]), int(hint["due"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise invalid("body", 'a hint such as {"due": 0, "refs": [["job", ...]]}', body) from error


def _ref(ref: object) -> Ref:
    if not isinstance(ref, list) or not ref or ref[0] not in get_args(RefKind):
        raise TypeError(f"expected a list that begins with one of {get_args(RefKind)}, got {ref!r}")
    return Ref(ref[0], tuple(str(part) for part in ref[1:]))
