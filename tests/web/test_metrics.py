"""Each Lambda writes what it measured at the end of its invocation (O2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chalice.local import LambdaContext

from app import app
from chalicelib import wiring
from chalicelib.core.runs import metrics
from tests.web.conftest import APP, Api

TICK = {
    "version": "0",
    "account": "123456789012",
    "region": "us-east-1",
    "detail": {},
    "detail-type": "Scheduled Event",
    "source": "aws.events",
    "time": "1970-01-01T00:00:00Z",
    "id": "event-id",
    "resources": [],
}


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if "_aws" in line]


def test_o2_a_tick_measures_how_long_the_oldest_row_is_overdue(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    app.handler_map["tick"](TICK, LambdaContext("tick", 1024))
    [line] = written(capsys)
    assert (line["stage"], line["OverdueAge"]) == ("dev", [0])


def test_o2_a_wait_is_measured_by_the_lambda_that_decides(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.schedule("nightly", enabled=True, constraints=[{"type": "delay", "after": "1h"}])
    api.post(f"{APP}/schedules/nightly/run", {}, idempotency_key="r1")
    capsys.readouterr()

    api.work()

    [line] = written(capsys)
    assert (line["reason"], line["WaitsBegun"]) == ("time", [1])


def test_o2_only_a_request_that_measured_something_writes_record(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.get("/v1/health")
    assert written(capsys) == []
    wiring.metrics().add(metrics.WRITE_CONFLICTS, 1)
    api.refused(404, "GET", f"{APP}/schedules/unknown")
    assert [line["WriteConflicts"] for line in written(capsys)] == [[1]]
