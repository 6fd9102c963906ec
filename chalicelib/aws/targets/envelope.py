"""The content of every delivery, the same for all targets: the identity of the run, its due time, and the data (E5,
E6)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets.aws_errors import refusal
from chalicelib.core import ids
from chalicelib.core.instants import iso
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer

T = TypeVar("T")
Call = tuple[Run, Mapping[str, Any]]

JSON = "application/json"
MAX_BYTES = 262_144  # of a message with its attributes, and of a batch, in SQS, SNS, EventBridge and Lambda
MAX_ENTRIES = 10
MAX_ID = 128  # characters of a group or a deduplication id


@dataclass(frozen=True, slots=True)
class Content:
    """The body of a delivery. ``text`` is None if ``data`` is not text."""

    data: bytes
    content_type: str
    text: str | None

    @property
    def as_text(self) -> str:
        """The body for targets that accept only text. Binary data becomes base64, which `typed_attributes` declare."""
        return self.text if self.text is not None else as_base64(self.data)


def as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def content_of(run: Run, context: Mapping[str, Any]) -> Content:
    """The data of the run, or its context if it has no data. Large data is passed by reference."""
    given = run.request.data
    if given is None:
        text = json.dumps(context)
        return Content(text.encode(), JSON, text)
    content_type = str(given.get("content_type") or JSON)
    if "uri" in given:
        text = json.dumps({"data_uri": given["uri"], "content_type": content_type})
        return Content(text.encode(), JSON, text)
    if "base64" in given:
        return Content(base64.b64decode(given["base64"]), content_type, None)
    return Content(str(given["text"]).encode(), content_type, str(given["text"]))


def attributes(run: Run) -> dict[str, str]:
    """The identity and times of a run. A consumer detects repeats by ``event-id`` without reading the body."""
    nominal = run.nominal_at or run.accepted_at or run.created_at
    return {
        "event-id": run.run_id,
        "schedule": run.schedule,
        "nominal-time": iso(nominal),
        "due-time": iso(run.due_at if run.due_at is not None else nominal),
        "attempt": str(run.attempt),
    }


def typed_attributes(run: Run, content: Content) -> dict[str, dict[str, str]]:
    """The `attributes` and the content type, as message attributes of SQS and SNS."""
    headers = attributes(run) | {"content-type": content.content_type}
    if content.text is None:
        headers["content-encoding"] = "base64"
    return {f"sluice-{name}": {"DataType": "String", "StringValue": value} for name, value in headers.items()}


def envelope(run: Run, context: Mapping[str, Any]) -> dict[str, Any]:
    """The delivery as one JSON document, for targets without attributes: under ``sluice`` the identity of the run,
    under ``context`` or ``data`` the content. JSON data is included as JSON."""
    document: dict[str, Any] = {"sluice": {name.replace("-", "_"): value for name, value in attributes(run).items()}}
    document["sluice"]["attempt"] = run.attempt
    if run.request.data is None:
        return document | {"context": dict(context)}
    content = content_of(run, context)
    document["sluice"]["content_type"] = content.content_type
    if content.text is None:
        return document | {"data_base64": content.as_text}
    if content.content_type.partition(";")[0].strip() == JSON:
        try:
            return document | {"data": json.loads(content.text)}
        except ValueError:
            return document | {"data": content.text}  # declared as JSON, but not valid; the consumer gets the text
    return document | {"data": content.text}


def fifo(run: Run) -> dict[str, str]:
    """The group and the deduplication id of a run in a FIFO queue or topic. A full name may exceed the limit of SQS."""
    group = str(run.request.target.get("group") or run.schedule)
    return {"MessageGroupId": _fitting(group), "MessageDeduplicationId": _fitting(run.run_id)}


def size_of(text: str, typed: Mapping[str, Mapping[str, str]]) -> int:
    """Bytes as SQS and SNS count them: the body, and the name, type and value of each attribute."""
    inside = sum(len(f"{name}{value['DataType']}{value['StringValue']}".encode()) for name, value in typed.items())
    return len(text.encode()) + inside


def too_large(service: str, size: int) -> Never:
    return Never(
        f"expected a message of at most {MAX_BYTES} bytes for {service}, got {size}; pass the data by reference"
    )


def in_batches(
    service: str,
    calls: Sequence[Call],
    address: Callable[[Run], str],
    build: Callable[[Run, Mapping[str, Any]], tuple[T, int] | Never],
    send: Callable[[str, Sequence[tuple[Run, T]]], Sequence[Answer]],
) -> list[Answer]:
    """Send calls in as few batches as the AWS service accepts: one address, at most ten entries and 256 KB per batch.

    ``build`` returns an entry and its bytes, or why it can never be sent. An error of ``send`` is the answer to all of
    its batch. The answers have the order of the calls; the sends of one address too.
    """
    answers: dict[int, Answer] = {}
    batches: dict[str, tuple[list[int], list[tuple[Run, T]], int]] = {}

    def flush(name: str) -> None:
        indexes, entries, _ = batches.pop(name)
        try:
            given = send(name, entries)
        except ClientError as error:
            given = [refusal(service, error)] * len(entries)
        except BotoCoreError as error:
            given = [NoAnswer(f"{service} gave no answer: {error}")] * len(entries)
        answers.update(zip(indexes, given, strict=True))

    for index, (run, context) in enumerate(calls):
        built = build(run, context)
        if isinstance(built, Never):
            answers[index] = built
            continue
        entry, size = built
        name = address(run)
        if name in batches and (len(batches[name][0]) == MAX_ENTRIES or batches[name][2] + size > MAX_BYTES):
            flush(name)
        indexes, entries, total = batches.get(name, ([], [], 0))
        batches[name] = ([*indexes, index], [*entries, (run, entry)], total + size)
    for name in list(batches):
        flush(name)
    return [answers[index] for index in range(len(calls))]


def _fitting(text: str) -> str:
    return text if len(text) <= MAX_ID else ids.digest(text, length=40)
