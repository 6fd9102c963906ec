"""A Lambda function as a target and as a probe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets import envelope, formats
from chalicelib.aws.targets.aws_errors import refusal
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.envelope import MAX_BYTES
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.core import results
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, Started
from chalicelib.settings import Settings

MAX_REASON = 1_000


class LambdaTarget(Untracked):
    def __init__(self, client: Any) -> None:
        self._client = client

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        payload = json.dumps(formats.document(run, context)).encode()
        if len(payload) > MAX_BYTES:
            return envelope.too_large("Lambda", len(payload))
        wait = bool(run.request.target["wait"])
        answer = self._invoke(str(run.request.target["function"]), payload, "RequestResponse" if wait else "Event")
        if not isinstance(answer, Mapping):
            return answer
        if answer.get("FunctionError"):
            return NoAnswer(f"the function failed: {_text(answer)}")
        try:
            result = results.of_text(answer["Payload"].read(results.MAX_READ + 1)) if wait else results.NONE
        except BotoCoreError as error:
            return NoAnswer(f"the answer of the function broke off: {error}")
        return Started(str(answer["ResponseMetadata"].get("RequestId", "invoked")), done=True, result=result)

    def probe(self, target: Mapping[str, Any], question: Mapping[str, Any]) -> bytes | Never | NoAnswer:
        """Call a function with a question and return its answer, or why there is none."""
        answer = self._invoke(str(target["function"]), json.dumps(question).encode(), "RequestResponse")
        if not isinstance(answer, Mapping):
            return answer if isinstance(answer, Never) else NoAnswer(getattr(answer, "why", "no answer"))
        if answer.get("FunctionError"):
            return NoAnswer(f"the function failed: {_text(answer)}")
        return bytes(answer["Payload"].read(MAX_BYTES))

    def _invoke(self, function: str, payload: bytes, kind: str) -> Mapping[str, Any] | Answer:
        try:
            answer: Mapping[str, Any] = self._client.invoke(FunctionName=function, InvocationType=kind, Payload=payload)
        except ClientError as error:
            return refusal("Lambda", error)
        except BotoCoreError as error:
            return NoAnswer(f"Lambda gave no answer: {error}")
        return answer


def _text(answer: Mapping[str, Any]) -> str:
    """The error message of a failed function: the ``errorMessage`` of its JSON, or the plain text."""
    text = answer["Payload"].read(MAX_BYTES).decode(errors="replace")
    try:
        error = json.loads(text)
    except ValueError:
        error = text
    return str(error.get("errorMessage") or text if isinstance(error, dict) else error)[:MAX_REASON]


def build(clients: Clients, settings: Settings) -> LambdaTarget:
    del settings
    # No retries here: one attempt is one call, and the schedule's delivery policy decides about the next.
    return LambdaTarget(clients.make("lambda", retries={"total_max_attempts": 1}, read_timeout=30))
