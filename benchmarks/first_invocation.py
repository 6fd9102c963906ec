"""Call one handler once, in this process, and print the modules that it imported, as a JSON list in their order.

    python -m benchmarks.first_invocation api | tick | objects | check | run_state

AWS's clients return empty answers, so a handler gets as far as it can without rows. If that is before its first real
work, the next import is made explicitly: the target adapter for `check`."""

from __future__ import annotations

import sys

_BEFORE = set(sys.modules)

import json  # noqa: E402 - what comes in from here on is counted only if a handler brings it in
import os  # noqa: E402 - as above
from types import SimpleNamespace  # noqa: E402 - as above
from typing import Any  # noqa: E402 - as above

_EVENT_TIME = "2026-03-02T12:00:00Z"
_OBJECT = {"bucket": {"name": "lake"}, "object": {"key": "raw/day=1/part-0.csv"}}
SCHEDULE = "/v1/namespaces/{ns}/apps/{app}/schedules/{name}"
REACHED = "chalicelib.aws.tables.dynamo"


class Nothing:
    """A client of any service: every call succeeds with an empty answer."""

    meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_: None))

    def __getattr__(self, name: str) -> Any:
        return lambda **_: {"Items": [], "Responses": {}, "jobRun": {}}


def environment_of(handler: str) -> dict[str, str]:
    """The variables of this Lambda that change what it imports: Lambda sets the first, the template the other."""
    return {"_HANDLER": "app.app" if handler == "api" else f"app.{handler}", "PYDANTIC_DISABLE_PLUGINS": "__all__"}


def main(handler: str) -> list[str]:
    """The names of the imported modules."""
    # Variables that the template sets; their values are not used.
    for name in ("CATALOG_TABLE", "JOBS_TABLE", "RUNS_TABLE", "HINTS_QUEUE_URL", "LAKE_BUCKET", "CONTROL_BUCKET"):
        os.environ[f"SLUICE_{name}"] = "none"
    os.environ.update(environment_of(handler))
    import boto3

    boto3.client = lambda *_, **__: Nothing()
    import app
    from chalicelib import handlers, wiring

    if handler == "api":
        app.app(_request(SCHEDULE, {"ns": "demo", "app": "flights", "name": "clean"}), None)
    elif handler == "tick":
        handlers.tick()
    elif handler == "objects":
        record = {"eventName": "ObjectCreated:Put", "eventTime": _EVENT_TIME, "s3": _OBJECT}
        handlers.objects(_message({"Records": [record]}))
    elif handler == "check":
        handlers.hints(_message({"due": 0, "refs": [["job", "demo.flights.clean", "1", "GATHERING"]]}))
        wiring.ports().targets.of("emr_serverless")
    elif handler == "run_state":
        detail = {"applicationId": "00app", "jobRunId": "00run", "state": "SUCCESS"}
        handlers.run_state({"source": "aws.emr-serverless", "time": _EVENT_TIME, "detail": detail})
    else:
        raise ValueError(f"expected api, tick, objects, check or run_state, got {handler!r}")
    if REACHED not in sys.modules:
        raise RuntimeError(f"expected {handler} to reach the tables, but it did not import {REACHED}")
    return [name for name in sys.modules if name not in _BEFORE and not name.startswith("benchmarks")]


def _message(body: dict[str, Any]) -> dict[str, Any]:
    return {"Records": [{"messageId": "m", "body": json.dumps(body)}]}


def _request(path: str, parameters: dict[str, str]) -> dict[str, Any]:
    """A GET as API Gateway passes it to a Lambda."""
    return {
        "requestContext": {"httpMethod": "GET", "resourcePath": path, "identity": {}},
        "headers": {},
        "multiValueQueryStringParameters": None,
        "pathParameters": parameters,
        "stageVariables": None,
        "body": None,
        "isBase64Encoded": False,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
