"""What every delivery carries, whatever the target: who it is, when it was due, and the content (E5, E6)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from chalicelib.core import ids
from chalicelib.core.instants import iso
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never

T = TypeVar("T")
Call = tuple[Run, Mapping[str, Any]]

JSON = "application/json"
MAX_BYTES = 262_144  # of a message with its attributes, and of a batch of them, in SQS, SNS, EventBridge and Lambda
MAX_ENTRIES = 10
MAX_ID = 128  # characters of a group or a deduplication id


@dataclass(frozen=True, slots=True)
class Content:
    """The body of a delivery. ``text`` is None where ``data`` is no text."""

    data: bytes
    content_type: str
    text: str | None

    @property
    def as_text(self) -> str:
        """For targets that take text alone: what is none goes as base64, and `attributes` say so."""
        return self.text if self.text is not None else base64.b64encode(self.data).decode()


def content_of(run: Run, context: Mapping[str, Any]) -> Content:
    """The data of the run, if it has some, else its context. Data that is too large to travel goes by reference."""
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
    """By these a consumer drops repeats (``event-id``) and measures lateness, without reading the body."""
    nominal = run.nominal_at or run.accepted_at or run.created_at
    return {
        "event-id": run.run_id,
        "schedule": run.schedule,
        "nominal-time": iso(nominal),
        "due-time": iso(run.due_at if run.due_at is not None else nominal),
        "attempt": str(run.attempt),
    }


def typed_attributes(run: Run, content: Content) -> dict[str, dict[str, str]]:
    """The same as message attributes of SQS and SNS."""
    told = attributes(run) | {"content-type": content.content_type}
    if content.text is None:
        told["content-encoding"] = "base64"
    return {f"sluice-{name}": {"DataType": "String", "StringValue": value} for name, value in told.items()}


def envelope(run: Run, context: Mapping[str, Any]) -> dict[str, Any]:
    """The same as one JSON document, for targets that take nothing else: under ``sluice`` who it is, under ``context``
    or ``data`` the content. Data that is JSON stays what it is."""
    told: dict[str, Any] = {"sluice": {name.replace("-", "_"): value for name, value in attributes(run).items()}}
    told["sluice"]["attempt"] = run.attempt
    if run.request.data is None:
        return told | {"context": dict(context)}
    content = content_of(run, context)
    told["sluice"]["content_type"] = content.content_type
    if content.text is None:
        return told | {"data_base64": content.as_text}
    if content.content_type.partition(";")[0].strip() == JSON:
        try:
            return told | {"data": json.loads(content.text)}
        except ValueError:
            return told | {"data": content.text}  # it calls itself JSON; the consumer may know better
    return told | {"data": content.text}


def fifo(run: Run) -> dict[str, str]:
    """Where a run stands in a FIFO queue or topic: in its group, once. A full name may be longer than SQS allows."""
    group = str(run.request.target.get("group") or run.schedule)
    return {"MessageGroupId": _fitting(group), "MessageDeduplicationId": _fitting(run.run_id)}


def size_of(text: str, typed: Mapping[str, Mapping[str, str]]) -> int:
    """Bytes as SQS and SNS count them: the body, and the name, type and value of each attribute."""
    inside = sum(len(f"{name}{value['DataType']}{value['StringValue']}".encode()) for name, value in typed.items())
    return len(text.encode()) + inside


def too_large(service: str, size: int) -> Never:
    return Never(f"expected a message of at most {MAX_BYTES} bytes for {service}, got {size}; pass it by reference")


def in_batches(
    calls: Sequence[Call],
    address: Callable[[Run], str],
    build: Callable[[Run, Mapping[str, Any]], tuple[T, int] | Never],
    send: Callable[[str, Sequence[tuple[Run, T]]], Sequence[Answer]],
) -> list[Answer]:
    """Send calls in as few batches as an AWS service takes: of one address, of ten entries and 256 KB at most.

    ``build`` makes an entry and tells its bytes, or says why it can never be sent. The answers come in the order of the
    calls; within an address so do the sends.
    """
    answers: dict[int, Answer] = {}
    batches: dict[str, tuple[list[int], list[tuple[Run, T]], int]] = {}

    def flush(name: str) -> None:
        indexes, entries, _ = batches.pop(name)
        answers.update(zip(indexes, send(name, entries), strict=True))

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
