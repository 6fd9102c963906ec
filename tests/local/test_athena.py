"""Athena on the local cloud: tokens, states, events, parameters and rows of queries (`infra/local/athena.py`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from infra.local import athena as local_athena

OUTPUT = "s3://results/daily/"
REPLACED = ("_start_query_execution", "_execute_query", "_list_query_executions", "_stop_query_execution")


class Cloud:
    """ministack's Athena in this process, with its events and its objects in the place of EventBridge and S3."""

    def __init__(self, service: Any) -> None:
        self.service, self.events, self.objects = service, list[str](), dict[str, bytes]()
        bus = SimpleNamespace(_put_events=lambda sent, allow_aws_source: self.events.extend(
            json.loads(each["Detail"])["currentState"] for each in sent["Entries"]))  # fmt: skip
        self.iam = SimpleNamespace(extract_resource_arn=lambda *asked: "*")
        local_athena.install(service, SimpleNamespace(_put_object=self._put), bus, self.iam, pause=0.01)

    def _put(self, bucket: str, key: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if bucket != "results":
            return 404, {}, b""
        self.objects[f"s3://{bucket}/{key}"] = body
        return 200, {}, b""

    def call(self, function: str, **asked: Any) -> Any:
        status, _, body = getattr(self.service, function)(asked)
        return json.loads(body) | ({} if status == 200 else {"refused": True})

    def start(self, query: str, token: str = "t" * 32, *parameters: str, **more: Any) -> Any:
        asked = {"QueryString": query, "ClientRequestToken": token, "ResultConfiguration": {"OutputLocation": OUTPUT}}
        return self.call("_start_query_execution", **asked, **more,
                         **({"ExecutionParameters": list(parameters)} if parameters else {}))  # fmt: skip

    def described(self, started: Any) -> Any:
        return self.call("_get_query_execution", **started)["QueryExecution"]

    def plays(self, act: Callable[[], Any], seconds: float = 0.5) -> Any:
        """Start a query, and wait until it has ended."""

        async def played() -> Any:
            started = act()
            for _ in range(round(seconds / 0.01)):
                await asyncio.sleep(0.01)
                if self.described(started)["Status"]["State"] not in local_athena.OPEN:
                    break
            return started

        return asyncio.run(played())


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    from ministack.services import athena

    for name in REPLACED:
        monkeypatch.setattr(athena, name, getattr(athena, name))
    athena._ensure_default_workgroup()
    yield Cloud(athena)
    athena.reset()


def test_w22_a_local_query_passes_through_its_states(cloud: Cloud) -> None:
    query = "SELECT v FROM (VALUES ('O''Hare'), ('?')) t(v) WHERE v = ? -- why?"
    started = cloud.plays(lambda: cloud.start(query, "t" * 32, "'O''Hare'"))
    found = cloud.described(started)
    assert cloud.events == ["QUEUED", "RUNNING", "SUCCEEDED"]
    assert found["Query"] == query
    assert cloud.objects == {found["ResultConfiguration"]["OutputLocation"]: b"v\r\nO'Hare\r\n"}
    assert found["Statistics"]["DataScannedInBytes"] > 0


def test_w22_a_local_token_belongs_to_one_query(cloud: Cloud) -> None:
    def twice() -> Any:
        first = cloud.start("SELECT 1")
        assert cloud.start("SELECT 1") == first
        assert "Idempotent parameters do not match" in str(cloud.start("SELECT 2"))
        return first

    started = cloud.plays(twice)
    assert cloud.call("_list_query_executions")["QueryExecutionIds"] == [started["QueryExecutionId"]]


@pytest.mark.parametrize(
    ("query", "parameters", "why"),
    [
        ("SELECT * FROM nothing", (), "nothing"),
        ("SELECT 1 WHERE 1 = ?", (), "Incorrect number of parameters"),
        ("SELECT 1", ("1",), "Incorrect number of parameters"),
    ],
)
def test_w22_a_wrong_local_query_fails_with_a_reason(
    cloud: Cloud, query: str, parameters: tuple[str, ...], why: str
) -> None:
    status = cloud.described(cloud.plays(lambda: cloud.start(query, "t" * 32, *parameters)))["Status"]
    assert (status["State"], cloud.events[-1]) == ("FAILED", "FAILED")
    assert why in status["StateChangeReason"]


def test_w22_a_stopped_local_query_stays_stopped(cloud: Cloud) -> None:
    def stopped() -> Any:
        started = cloud.start("SELECT 1")
        cloud.call("_stop_query_execution", **started)
        return started

    started = cloud.plays(stopped)
    asyncio.run(asyncio.sleep(0.05))
    assert cloud.described(started)["Status"]["State"] == "CANCELLED"
    assert "SUCCEEDED" not in cloud.events


def test_w22_what_aws_would_refuse_is_refused(cloud: Cloud) -> None:
    assert "expected a length of 32" in str(cloud.start("SELECT 1", "short"))
    assert "WorkGroup other is not found" in str(cloud.start("SELECT 1", WorkGroup="other"))
    assert "not found" in str(cloud.call("_stop_query_execution", QueryExecutionId="unknown"))
    assert "No output location" in str(cloud.call("_start_query_execution", QueryString="SELECT 1"))
    assert cloud.events == []


def test_w22_a_call_by_id_needs_the_workgroup_of_the_query(cloud: Cloud) -> None:
    started = cloud.plays(lambda: cloud.start("SELECT 1"))
    resource = cloud.iam.extract_resource_arn("athena", "POST", "/", {}, json.dumps(started).encode(), {}, "r", "a")
    assert resource.endswith(":workgroup/primary")
    assert cloud.iam.extract_resource_arn("athena", "POST", "/", {}, b"{}", {}, "r", "a") == "*"
    assert cloud.iam.extract_resource_arn("sqs", "POST", "/", {}, b"x", {}, "r", "a") == "*"
