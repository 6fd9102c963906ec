"""boto3's own clients without a network: what a client sends is answered in this process.

The clients are configured as those of the Lambdas. They build, sign and read as these do; only the connection is
replaced. The CPU time of the answers is counted apart, so that a measurement can leave it out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest.mock import patch

from botocore.awsrequest import AWSResponse
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from chalicelib.wiring import client_as

# The name of an operation and the members of its request; returns the members of the answer.
Answer = Callable[[str, Mapping[str, Any]], Mapping[str, Any] | None]


class Wire:
    """Answers the requests of clients. ``used_s`` is the CPU time that this took so far, ``calls`` their number."""

    def __init__(self) -> None:
        self.used_s = 0.0
        self.calls = 0

    def client(self, service: str, answer: Answer, **options: Any) -> Any:
        """A client as `chalicelib/wiring.py` makes it, whose requests ``answer`` answers. The service speaks JSON."""

        def answered(request: Any, **_: Any) -> AWSResponse:
            begun = time.process_time()
            response = _answered(request, answer)
            self.calls += 1
            self.used_s += time.process_time() - begun
            return response

        with patch.dict(os.environ, {"AWS_DEFAULT_REGION": "us-east-1"}):
            made = client_as(Credentials("bench", "bench"), service, **options)
        # botocore sends nothing if a handler of this event has a response.
        made.meta.events.register(f"before-send.{service}", answered)
        return made


class _Body:
    """The body of a response, as botocore reads it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Iterator[bytes]:
        yield self._body


def _answered(request: Any, answer: Answer) -> AWSResponse:
    operation = request.headers["X-Amz-Target"].decode().rpartition(".")[2]
    try:
        status, members = 200, answer(operation, json.loads(request.body)) or {}
    except ClientError as error:
        status, members = 400, _refusal(error)
    body = json.dumps(members, separators=(",", ":")).encode()
    headers = {"content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "bench"}
    return AWSResponse(request.url, status, headers, _Body(body))


def _refusal(error: ClientError) -> dict[str, Any]:
    members: dict[str, Any] = dict(error.response)
    about = members.pop("Error")
    members.pop("ResponseMetadata", None)
    return {"__type": about["Code"], "message": about["Message"], **members}
