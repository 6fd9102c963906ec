"""H6: the Lambda `lineage` sends the events of OpenLineage about changes of the runs table."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from chalice.test import Client

from app import app
from chalicelib import wiring
from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.run import Run
from tests.support import rows
from tests.support.openlineage import parsed
from tests.web import test_lake
from tests.web.conftest import Api, settle_in

BUCKET = "lake-bucket"
AT = int(time.time()) * 1000  # the instant of the changes


@pytest.fixture
def s3(empty: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    settle_in(empty)
    monkeypatch.setenv("SLUICE_LINEAGE", "sluice")
    monkeypatch.setenv("SLUICE_LINEAGE_FOLDER", f"{BUCKET}/lineage/")
    monkeypatch.setenv("SLUICE_LINEAGE_LETTERS_URL", boto3.client("sqs").create_queue(QueueName="letters")["QueueUrl"])
    wiring.ports.cache_clear()
    wiring.lineage_reporter.cache_clear()
    yield boto3.client("s3")
    wiring.lineage_reporter.cache_clear()


def run(state: str, **fields: Any) -> Run:
    times = {"claimed_at": AT, "state_at": AT, "started_at": AT, "ended_at": AT if state != "RUNNING" else None}
    found = {**times, "state": state, "schedule": "demo.flights.nightly", "workflow": "demo.flights.clean"}
    return rows.run("demo.flights.nightly.1.e1", **found, **fields)


def change(number: int, row: Run, event: str = "MODIFY") -> dict[str, Any]:
    found = test_lake.change(number, row, event)
    found["dynamodb"]["ApproximateCreationDateTime"] = AT // 1000
    return found


def invoke(*records: dict[str, Any]) -> list[str]:
    answer = Client(app).lambda_.invoke("lineage", {"Records": list(records)}).payload
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def written(s3: Any) -> list[dict[str, Any]]:
    found = s3.list_objects_v2(Bucket=BUCKET, Prefix="lineage/").get("Contents", [])
    bodies = [s3.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read() for each in found]
    return [json.loads(line) for body in bodies for line in body.splitlines()]


def test_h6_changes_of_a_run_become_events_in_a_folder(s3: Any) -> None:
    s3.create_bucket(Bucket=BUCKET)
    changes = (change(1, run("STARTING"), "INSERT"), change(2, run("RUNNING")), change(3, run("SUCCEEDED")))
    assert invoke(*changes) == []
    found = written(s3)
    assert [event["eventType"] for event in found] == ["START", "RUNNING", "COMPLETE"]
    assert {event["job"]["name"] for event in found} == {"flights.nightly"}
    for event in found:
        parsed(event)


def test_h6_a_batch_that_is_not_written_comes_again(s3: Any) -> None:
    batch = (change(1, run("STARTING"), "INSERT"), change(2, run("SUCCEEDED")))
    assert invoke(*batch) == [f"{1:030}"]  # there is no bucket yet
    s3.create_bucket(Bucket=BUCKET)
    assert invoke(*batch) == invoke(*batch) == []
    assert [event["eventType"] for event in written(s3)] == ["START", "COMPLETE"]


def test_h6_a_row_that_cannot_be_read_is_delivered_again(s3: Any) -> None:
    s3.create_bucket(Bucket=BUCKET)
    broken = change(2, run("SUCCEEDED"))
    del broken["dynamodb"]["NewImage"]["state"]
    assert invoke(change(1, run("STARTING"), "INSERT"), broken) == [f"{2:030}"]
    assert [event["eventType"] for event in written(s3)] == ["START"]


def test_h6_a_row_that_cannot_be_read_is_kept_by_its_keys(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.create_bucket(Bucket=BUCKET)
    broken = change(2, run("SUCCEEDED"))
    del broken["dynamodb"]["NewImage"]["state"]
    batch = (broken, change(3, run("RUNNING")))
    assert invoke(*batch) == [f"{2:030}"]
    now = wiring.SystemClock().now() + 15 * MINUTE
    monkeypatch.setattr(wiring.SystemClock, "now", lambda self: now)
    assert invoke(*batch) == []
    [message] = boto3.client("sqs").receive_message(QueueUrl=os.environ["SLUICE_LINEAGE_LETTERS_URL"])["Messages"]
    letter = json.loads(message["Body"])
    assert letter["keys"] == broken["dynamodb"]["Keys"]
    assert "state" in letter["why"]


def test_h6_a_queue_is_called_in_its_own_region(s3: Any) -> None:
    arn = "arn:aws:sqs:eu-central-1:123456789012:lineage"
    outlet = wiring._outlet(replace(wiring.ports().settings, lineage_queue_arn=arn), wiring.Until())
    assert outlet._client.meta.region_name == "eu-central-1"  # type: ignore[attr-defined]
