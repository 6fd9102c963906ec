"""A Lambda function as a target, and as a probe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets import envelope
from chalicelib.aws.targets.aws_errors import refusal
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.envelope import MAX_BYTES
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, Started
from chalicelib.settings import Settings

MAX_REASON = 1_000


class LambdaTarget(Untracked):
    def __init__(self, client: Any) -> None:
        self._client = client

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        payload = json.dumps(envelope.envelope(run, context)).encode()
        if len(payload) > MAX_BYTES:
            return envelope.too_large("Lambda", len(payload))
        wait = bool(run.request.target["wait"])
        told = self._invoke(str(run.request.target["function"]), payload, "RequestResponse" if wait else "Event")
        if not isinstance(told, Mapping):
            return told
        if told.get("FunctionError"):
            return NoAnswer(f"the function failed: {_text(told)}")
        return Started(str(told["ResponseMetadata"].get("RequestId", "invoked")), done=True)

    def probe(self, target: Mapping[str, Any], question: Mapping[str, Any]) -> bytes | Never | NoAnswer:
        """Ask a function and wait for what it says: its answer, or why there is none."""
        told = self._invoke(str(target["function"]), json.dumps(question).encode(), "RequestResponse")
        if not isinstance(told, Mapping):
            return told if isinstance(told, Never) else NoAnswer(getattr(told, "why", "no answer"))
        if told.get("FunctionError"):
            return NoAnswer(f"the function failed: {_text(told)}")
        return bytes(told["Payload"].read(MAX_BYTES))

    def _invoke(self, function: str, payload: bytes, kind: str) -> Mapping[str, Any] | Answer:
        try:
            told: Mapping[str, Any] = self._client.invoke(FunctionName=function, InvocationType=kind, Payload=payload)
        except ClientError as error:
            return refusal("Lambda", error)
        except BotoCoreError as error:
            return NoAnswer(f"Lambda gave no answer: {error}")
        return told


def _text(told: Mapping[str, Any]) -> str:
    """What a function that failed says of it: ``{"errorMessage": ...}``."""
    text = told["Payload"].read(MAX_BYTES).decode(errors="replace")
    try:
        said = json.loads(text)
    except ValueError:
        said = text
    return str(said.get("errorMessage") or text if isinstance(said, dict) else said)[:MAX_REASON]


def build(clients: Clients, settings: Settings) -> LambdaTarget:
    del settings
    # Whether a function is called again is decided by the schedule's policy: here one attempt is one answer.
    return LambdaTarget(clients.make("lambda", retries={"total_max_attempts": 1}, read_timeout=30))
