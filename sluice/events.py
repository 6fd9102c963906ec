"""Events in files, for a dry run (L11) or to be posted (T11). They are checked before they are sent."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sluice import checks, documents
from sluice.client import Document
from sluice.errors import WrongUsage

KEY = "events"
STATUSES = ("STARTED", "COMPLETED", "FAILED", "KILLED")

# The required fields of a dry-run event, by its type.
NEEDED = {
    "partition": ("dataset", "partition"),
    "snapshot": ("dataset",),
    "time": ("at",),
    "program_status": ("workflow", "status"),
    "size": ("dataset", "bytes"),
    "event": ("event",),
    "cloudwatch_alarm": ("alarm",),
    "elapsed": (),
    "absent": (),
}


def to_play(path: str) -> list[Document]:
    """The events of a file for a dry run. Raises ``WrongUsage`` for an unknown type or a missing field."""
    listed = documents.load_list(path, KEY)
    return [_playable(event, f"{path}: {KEY}.{number}") for number, event in enumerate(listed)]


def to_raise(path: str) -> list[Document]:
    """The events of a file to post. Each has a type and an id, which is generated if it is missing. CloudEvents are
    posted as they are."""
    listed = documents.load_list(path, KEY)
    if are_cloudevents(listed):
        return listed
    return [_raisable(event, partial("{}: {}.{}.{}".format, path, KEY, number)) for number, event in enumerate(listed)]


def are_cloudevents(listed: Sequence[Document]) -> bool:
    """Whether events are CloudEvents, which the API takes as a batch (E11). Raises ``WrongUsage`` if only some are."""
    kinds = {"specversion" in event for event in listed}
    if len(kinds) > 1:
        number = next(number for number, event in enumerate(listed) if "specversion" not in event)
        hint = 'CloudEvents have specversion: "1.0"; put events of the other form into another file'
        raise WrongUsage("expected only CloudEvents, or none, got both", f"{KEY}.{number}", hint)
    return kinds == {True}


def one_to_raise(kind: str, payload: str | None, event_id: str | None) -> Document:
    """An event from the command line. ``payload`` is the text of a JSON object."""
    event: Document = {"type": kind}
    if payload is not None:
        event["payload"] = _object(payload)
    if event_id is not None:
        event["id"] = event_id
    return _raisable(event, {"type": "TYPE", "id": "--id"}.__getitem__)


def _playable(event: Document, where: str) -> Document:
    kind = checks.one_of(_text(event, "type", f"{where}.type"), tuple(NEEDED), f"{where}.type")
    for field in NEEDED[kind]:
        if event.get(field) is None:
            hint = f"add {field}: an event of type {kind} needs {' and '.join(NEEDED[kind])}"
            raise WrongUsage("expected a value, got nothing", f"{where}.{field}", hint)
    played = {**event, "type": kind}
    if event.get("at") is not None:
        played["at"] = checks.instant(event["at"], f"{where}.at")
    if kind == "partition" or (kind == "snapshot" and event.get("partition") is not None):
        played["partition"] = _values(event["partition"], f"{where}.partition")
    if kind == "program_status":
        played["status"] = checks.one_of(str(event["status"]), STATUSES, f"{where}.status")
    return played


def _values(partition: Any, where: str) -> dict[str, str]:
    """The values as texts: YAML reads ``year: 2013`` as a number, but a folder's name is text."""
    if not isinstance(partition, dict):
        raise WrongUsage(f"expected partition keys and values, got {partition!r}", where, "such as {year: 2013}")
    for key, value in partition.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise WrongUsage(f"expected text or a whole number, got {value!r}", f"{where}.{key}", "put it in quotes")
    return {key: str(value) for key, value in partition.items()}


def _raisable(event: Document, where: Callable[[str], str]) -> Document:
    """The event with an id, so that a repeat after a lost answer is the same event. ``where`` returns the position of a
    field for error messages."""
    raised = {"id": uuid.uuid4().hex, **event}
    for field in ("type", "id"):
        _text(raised, field, where(field))
    if not isinstance(event.get("payload", {}), dict):
        hint = "write names with their values, such as {order: 7}"
        raise WrongUsage(f"expected an object, got {event['payload']!r}", where("payload"), hint)
    if "timestamp" in event:
        raised["timestamp"] = checks.instant(event["timestamp"], where("timestamp"))
    return raised


def _text(event: Document, field: str, where: str) -> str:
    value = event.get(field)
    if not isinstance(value, str) or not value:
        got = "nothing" if value is None else repr(value)
        raise WrongUsage(f"expected the {field} of the event, got {got}", where, f"add {field}: a text")
    return value


def _object(text: str) -> Document:
    hint = """quote it for the shell, such as --payload '{"order": 7}'"""
    try:
        payload = json.loads(text)
    except json.JSONDecodeError as error:
        raise WrongUsage(
            f"expected JSON, got an error: {error.msg.lower()}", f"--payload, column {error.colno}", hint
        ) from None
    if not isinstance(payload, dict):
        raise WrongUsage(f"expected a JSON object, got {text}", "--payload", hint)
    return payload
