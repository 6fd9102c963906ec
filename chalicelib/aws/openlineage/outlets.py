"""Send events of OpenLineage to an HTTP endpoint, to a queue of SQS, or as files to S3 (H6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Flag
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets.aws_errors import code_of
from chalicelib.aws.targets.safe_http import NotReached, SafeHttp, Unsafe
from chalicelib.aws.targets.secrets import Secrets
from chalicelib.core import ids
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.openlineage import outlets
from chalicelib.core.openlineage.outlets import Item, Later, Outcome, Refused, Sent
from chalicelib.core.targets.answers import Never, NotNow

CALL: Millis = 10 * SECOND  # the longest time for one answer of an endpoint
AT_ONCE = 8  # calls of an endpoint; those about one run follow each other
BATCH, MAX_BATCH = 10, 250_000  # messages, and bytes, of one call of SQS
SHORTEST = 8  # characters of a word of the secret that is masked in an answer
NO_TIME = Later("the invocation ends", tried=False)
BEFORE = Later("an earlier event did not arrive", tried=False)
SILENT = Later("the endpoint did not take the events before this one", tried=False)


class HttpOutlet:
    """An endpoint that takes one event in each request, such as that of Marquez or DataHub. ``secret`` is the name of
    the secret that holds the value of the header ``Authorization``; empty for none. ``ends`` is when to stop."""

    def __init__(self, http: SafeHttp, secrets: Secrets, url: str, secret: str, left: Callable[[], Millis]) -> None:
        self._http, self._secrets, self._url, self._secret, self._left = http, secrets, url, secret, left

    def send(self, items: Sequence[Item]) -> list[Outcome]:
        headers = self._headers()
        if isinstance(headers, Later):
            return [headers] * len(items)
        by_run: dict[str, list[int]] = {}
        for number, item in enumerate(items):
            by_run.setdefault(item.run_id, []).append(number)
        outcomes: list[Outcome] = [NO_TIME] * len(items)
        stop = Flag()

        def send_run(numbers: list[int]) -> None:
            for place, number in enumerate(numbers):
                outcomes[number] = self._send(items[number], headers, stop)
                if isinstance(outcomes[number], Later):
                    for after in numbers[place + 1 :]:
                        outcomes[after] = BEFORE
                    return

        with ThreadPoolExecutor(min(AT_ONCE, len(by_run))) as pool:
            list(pool.map(send_run, by_run.values()))
        return outcomes

    def _headers(self) -> dict[str, str] | Later:
        headers = {"Content-Type": "application/json", "User-Agent": "sluice/1"}
        if not self._secret:
            return headers
        value = self._secrets.header(self._secret)
        return Later(value.why) if isinstance(value, Never | NotNow) else headers | {"Authorization": value}

    def _send(self, item: Item, headers: dict[str, str], stop: Flag) -> Outcome:
        """Send one event. If the endpoint does not answer, or asks for a pause, no further call begins."""
        if stop.is_set():
            return SILENT
        if self._left() < CALL + 2 * SECOND:
            return NO_TIME
        try:
            reply = self._http.send("POST", self._url, headers, _text(item), CALL / SECOND)
        except Unsafe as error:
            stop.set()
            return Later(f"the call was not made: {error}")
        except NotReached as error:
            stop.set()
            return Later(str(error), failed=True)
        text = _masked(reply.body.decode(errors="replace"), headers.get("Authorization", ""))
        found = outlets.judge(reply.status, " ".join(text.split()))
        if isinstance(found, Later) and not found.failed:
            stop.set()
        return found


class QueueOutlet:
    """A queue of SQS, by its ARN. Each message is one event; a FIFO queue keeps the order of each run."""

    def __init__(self, client: Any, arn: str) -> None:
        self._client, self._arn = client, arn
        self._url = ""

    def send(self, items: Sequence[Item]) -> list[Outcome]:
        """Send until an event is not taken: those behind it wait, so that none passes an earlier one of its run."""
        outcomes: list[Outcome] = [BEFORE] * len(items)
        for batch in _batches(_rounds(items) if self._arn.endswith(".fifo") else [list(range(len(items)))], items):
            found = self._send([items[number] for number in batch])
            for number, outcome in zip(batch, found, strict=True):
                outcomes[number] = outcome
            if any(isinstance(outcome, Later) for outcome in found):
                break
        return outcomes

    def _send(self, batch: Sequence[Item]) -> list[Outcome]:
        try:
            answer = self._client.send_message_batch(QueueUrl=self._queue(), Entries=self._entries(batch))
        except (BotoCoreError, ClientError) as error:
            return [Later(_said("the queue", error))] * len(batch)
        failed = {int(each["Id"]): each for each in answer.get("Failed", ())}
        return [_of_entry(failed.get(number)) for number in range(len(batch))]

    def _entries(self, batch: Sequence[Item]) -> list[dict[str, Any]]:
        is_fifo = self._arn.endswith(".fifo")
        return [
            {"Id": str(number), "MessageBody": _text(item).decode()}
            | ({"MessageGroupId": item.run_id, "MessageDeduplicationId": item.id} if is_fifo else {})
            for number, item in enumerate(batch)
        ]

    def _queue(self) -> str:
        if not self._url:
            *_, account, name = self._arn.split(":")
            found = self._client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
            self._url = str(found["QueueUrl"])
        return self._url


class FolderOutlet:
    """A folder of S3, ``bucket/prefix/``: one object of JSON lines for each batch. Its name follows from its content,
    so a repeated batch overwrites it."""

    def __init__(self, client: Any, folder: str) -> None:
        self._client = client
        self._bucket, _, self._prefix = folder.partition("/")

    def send(self, items: Sequence[Item]) -> list[Outcome]:
        body = b"".join(_text(item) + b"\n" for item in items)
        day = str(items[0].event["eventTime"])[:10]
        key = f"{self._prefix}day={day}/{ids.digest(body.decode(), length=32)}.ndjson"
        try:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/x-ndjson")
        except (BotoCoreError, ClientError) as error:
            return [Later(_said("the bucket", error))] * len(items)
        return [Sent()] * len(items)


class DeadLetters:
    """The queue of events that were not taken: the event, why, and its receiver's name in no part of it."""

    def __init__(self, client: Any, url: str, now: Callable[[], Instant]) -> None:
        self._client, self._url, self._now = client, url, now

    def keep(self, item: Item, why: str) -> None:
        self._send({"why": why, "at": self._now(), "id": item.id, "event": item.event})

    def keep_change(self, sequence: str, keys: Mapping[str, Any], why: str) -> None:
        """Keep a change that cannot be read: the keys of its row instead of the event."""
        self._send({"why": why, "at": self._now(), "id": sequence, "keys": keys})

    def _send(self, body: Mapping[str, Any]) -> None:
        self._client.send_message(QueueUrl=self._url, MessageBody=json.dumps(body, separators=(",", ":")))


def _text(item: Item) -> bytes:
    return json.dumps(item.event, separators=(",", ":")).encode()


def _masked(text: str, secret: str) -> str:
    """An answer without the header that the call carried, and without its words: a server may repeat them."""
    parts = [secret, *(word for word in secret.split() if len(word) >= SHORTEST)]
    for part in filter(None, parts):
        text = text.replace(part, "***")
    return text


def _rounds(items: Sequence[Item]) -> list[list[int]]:
    """The numbers of the items: first those of the first event of each run, then those of the second, and so on."""
    count: dict[str, int] = {}
    found: list[list[int]] = []
    for number, item in enumerate(items):
        place = count[item.run_id] = count.get(item.run_id, -1) + 1
        if place == len(found):
            found.append([])
        found[place].append(number)
    return found


def _batches(rounds: Sequence[Sequence[int]], items: Sequence[Item]) -> Iterator[list[int]]:
    """The numbers of the items in the order of the rounds, as many of one round in each batch as one call takes."""
    for numbers in rounds:
        batch: list[int] = []
        size = 0
        for number in numbers:
            length = len(_text(items[number]))
            if batch and (len(batch) == BATCH or size + length > MAX_BATCH):
                yield batch
                batch, size = [], 0
            batch.append(number)
            size += length
        if batch:
            yield batch


def _of_entry(failed: dict[str, Any] | None) -> Outcome:
    if failed is None:
        return Sent()
    why = f"the queue answered {failed['Code']}: {failed.get('Message', '')}"
    return Refused(why) if failed.get("SenderFault") else Later(why, failed=True)


def _said(what: str, error: Exception) -> str:
    code = code_of(error) if isinstance(error, ClientError) else type(error).__name__
    return f"{what} did not take it: {code}: {error}"
