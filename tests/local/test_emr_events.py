"""State-change events, as the Lambda of an EventBridge rule gets them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.local.conftest import Emulators, eventually
from tests.support.http_server import QuietHandler, QuietServer, served


class Functions:
    """Replaces Lambda: keeps the payloads of its invocations."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.hangs = threading.Event()
        self.hangs.set()
        calls, hangs = self.calls, self.hangs

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                hangs.wait(20)
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                calls.append((self.path, self.headers["X-Amz-Invocation-Type"], body))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = QuietServer(Handler)
        self.url = self.server.url

    def changes(self) -> list[tuple[str, str]]:
        return [(event["detail"]["previousState"], event["detail"]["state"]) for _, _, event in self.calls]


@pytest.fixture
def functions() -> Iterator[Functions]:
    stub = Functions()
    with served(stub.server):
        yield stub
        stub.hangs.set()


def test_states_are_announced_in_order_as_eventbridge_events(emulators: Emulators, functions: Functions) -> None:
    emr = emulators.start(endpoint_url=functions.url, run_state_function="run_state")
    run = emr.reaches(emr.start(name="hourly"), "SUCCESS")
    eventually(lambda: len(functions.calls) == 4)
    assert functions.changes() == [
        ("SUBMITTED", "PENDING"),
        ("PENDING", "SCHEDULED"),
        ("SCHEDULED", "RUNNING"),
        ("RUNNING", "SUCCESS"),
    ]
    path, invocation_type, event = functions.calls[-1]
    assert path == "/2015-03-31/functions/run_state/invocations"
    assert invocation_type == "Event"
    assert set(event) == {
        "version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail"
    }  # fmt: skip
    assert event["detail-type"] == "EMR Serverless Job Run State Change"
    assert (event["source"], event["account"], event["region"]) == ("aws.emr-serverless", "000000000000", "us-east-1")
    assert event["resources"] == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", event["time"])
    detail = event["detail"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", detail["updatedAt"])
    assert detail == {
        "jobRunId": run["jobRunId"],
        "jobRunName": "hourly",
        "applicationId": emr.application,
        "arn": run["arn"],
        "releaseLabel": "emr-7.1.0",
        "state": "SUCCESS",
        "previousState": "RUNNING",
        "createdBy": run["createdBy"],
        "updatedAt": detail["updatedAt"],
        "createdAt": detail["createdAt"],
    }


def test_failing_and_cancelling_are_announced_too(emulators: Emulators, functions: Functions) -> None:
    emr = emulators.start(endpoint_url=functions.url, run_state_function="f", instant_ms=0)
    emr.start("s3://code/fail.py")
    eventually(lambda: ("RUNNING", "FAILED") in functions.changes())
    emulators.stop(emr)
    emr = emulators.start(endpoint_url=functions.url, run_state_function="f", instant_ms=60_000)
    run = emr.start()
    emr.reaches(run, "RUNNING")
    emr.cancel(run)
    eventually(lambda: functions.changes()[-2:] == [("RUNNING", "CANCELLING"), ("CANCELLING", "CANCELLED")])


def test_dropped_events_are_not_delivered(emulators: Emulators, functions: Functions) -> None:
    emr = emulators.start(endpoint_url=functions.url, run_state_function="f", drop_events=1.0)
    emr.reaches(emr.start(), "SUCCESS")
    emulators.stop(emr)
    assert functions.calls == []


def test_a_missing_or_hanging_function_blocks_no_run(emulators: Emulators, functions: Functions) -> None:
    functions.hangs.clear()
    emr = emulators.start(endpoint_url=functions.url, run_state_function="f", instant_ms=0)
    for run in [emr.start() for _ in range(5)]:
        emr.reaches(run, "SUCCESS", seconds=3)
    functions.hangs.set()
    emulators.stop(emr)

    emr = emulators.start(endpoint_url="http://127.0.0.1:1", run_state_function="f", instant_ms=0)
    emr.reaches(emr.start(), "SUCCESS", seconds=3)
