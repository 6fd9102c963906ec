"""An EventBridge bus as a target: one event per run, at least once; the rules of the bus forward it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.aws.targets import envelope, formats
from chalicelib.aws.targets.aws_errors import answer_of
from chalicelib.aws.targets.clients import DELIVERY, Clients
from chalicelib.aws.targets.envelope import MAX_BYTES, Call
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, Started
from chalicelib.settings import Settings

Entry = dict[str, Any]
_SERVICE = "EventBridge"


class EventBusTarget(Untracked):
    def __init__(self, client: Any) -> None:
        self._client = client

    def start_many(self, calls: Sequence[Call]) -> list[Answer]:
        return envelope.in_batches(_SERVICE, calls, lambda run: str(run.request.target["bus"]), _build, self._send)

    def _send(self, bus: str, entries: Sequence[tuple[Run, Entry]]) -> Sequence[Answer]:
        del bus  # each entry names it
        answer = self._client.put_events(Entries=[entry for _, entry in entries])
        return [_answer(entry) for entry in answer["Entries"]]


def _answer(entry: Mapping[str, Any]) -> Answer:
    """https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html"""
    if entry.get("EventId"):
        return Started(str(entry["EventId"]), done=True)
    return answer_of(_SERVICE, str(entry.get("ErrorCode", "")), str(entry.get("ErrorMessage", "")))


def _build(run: Run, context: Mapping[str, Any]) -> tuple[Entry, int] | Never:
    target = run.request.target
    entry = {
        "EventBusName": target["bus"],
        "Source": target["source"],
        "DetailType": target["detail_type"],
        "Detail": json.dumps(formats.document(run, context)),
    }
    # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html
    size = sum(len(str(entry[name]).encode()) for name in ("Source", "DetailType", "Detail"))
    return (entry, size) if size <= MAX_BYTES else envelope.too_large(_SERVICE, size)


def build(clients: Clients, settings: Settings) -> EventBusTarget:
    del settings
    return EventBusTarget(clients.make("events", **DELIVERY))
