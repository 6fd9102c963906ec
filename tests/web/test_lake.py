"""The Lambda `lake` writes changes from the stream of the runs table as objects into the lake (H3)."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from chalice.test import Client

from app import app
from chalicelib import wiring
from chalicelib.aws.tables import items
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.rows.run import Pointer, Record, Run
from chalicelib.flow.history import period_ends
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says
from tests.web.conftest import Api, settle_in

STREAM = "arn:aws:dynamodb:us-east-1:123456789012:table/runs/stream/2026-03-02T00:00:00.000"
BUCKET = "lake-bucket"


@pytest.fixture
def lake(empty: Api) -> Iterator[Any]:
    wiring.history_lake.cache_clear()
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    yield s3
    wiring.history_lake.cache_clear()


def ended(run_id: str, **fields: Any) -> Run:
    return rows.run(run_id, **{"state": "SUCCEEDED", "ended_at": NOON, "wake_at": None, **fields})


def _as_json(content: dict[str, Any]) -> dict[str, Any]:
    """An event is JSON: bytes come as base64."""
    return {"B": base64.b64encode(content["B"]).decode()} if "B" in content else content


def change(number: int, row: Any, event: str = "MODIFY") -> dict[str, Any]:
    """A record of a DynamoDB stream.
    https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html#events-sample-dynamodb
    """
    image = {name: _as_json(content) for name, content in items.to_item(row, 4, 4).items()}
    answer: dict[str, Any] = {
        "ApproximateCreationDateTime": 1_772_452_800,
        "Keys": {"pk": image["pk"], "sk": image["sk"]},
        "SequenceNumber": f"{number:030}",
        "SizeBytes": 26,
        "StreamViewType": "NEW_IMAGE",
    }
    if event != "REMOVE":
        answer["NewImage"] = image
    return {
        "eventID": f"e{number}", "eventName": event, "eventVersion": "1.1", "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1", "dynamodb": answer, "eventSourceARN": STREAM,
    }  # fmt: skip


def invoke(*records: dict[str, Any]) -> list[str]:
    answer = Client(app).lambda_.invoke("lake", {"Records": list(records)}).payload
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def objects(s3: Any) -> dict[str, bytes]:
    found = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return {each["Key"]: s3.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read() for each in found}


def lines(s3: Any) -> list[Any]:
    answer = [gzip.decompress(body).decode() for key, body in objects(s3).items() if key.startswith("history/")]
    return [json.loads(line) for text in answer for line in text.splitlines()]


def test_h3_ended_runs_and_records_are_written_to_the_lake(lake: Any) -> None:
    record = Record("j1", "EXPIRED", "demo.flights.clean", 1, says("too late"), NOON)
    assert invoke(change(1, ended("r1")), change(2, record, "INSERT"), change(3, ended("r2"))) == []
    assert [(line["kind"], line["id"], line["state"]) for line in lines(lake)] == [
        ("run", "r1", "SUCCEEDED"),
        ("record", "j1", "EXPIRED"),
        ("run", "r2", "SUCCEEDED"),
    ]


def test_l23_the_periods_of_a_schedule_that_ran_are_counted(lake: Any, empty: Api) -> None:
    settle_in(empty)
    empty.schedule("nightly", workflow="clean", trigger={"type": "time", "expression": "0 2 * * *"})
    period_ends._looked.clear()
    assert invoke(change(1, ended("r1", schedule="demo.flights.nightly")), change(2, ended("r2"))) == []
    row = wiring.ports().rows.get(PeriodEnds, "demo.flights.nightly")
    assert row is not None
    assert (row.by, row.rev) == ((), 1)
    assert len(lines(lake)) == 2


def test_l23_a_failure_to_count_holds_up_no_history(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> int:
        raise RuntimeError("the table is busy")

    monkeypatch.setattr(period_ends, "keep", fails)
    assert invoke(change(1, ended("r1"))) == []
    assert len(lines(lake)) == 1


def test_h3_active_and_removed_rows_are_not_in_the_lake(lake: Any) -> None:
    pointer = Pointer("app/run", "r1", 1, NOON)
    answer = (
        change(1, rows.run()),
        change(2, ended("r2"), "REMOVE"),
        change(3, pointer),
        change(4, ended("r4", wake_at=NOON, announce=("COMPLETED",))),
    )
    assert invoke(*answer) == []
    assert objects(lake) == {}


def test_h3_late_costs_are_a_later_line_in_the_same_hour(lake: Any) -> None:
    first = ended("r1", target_id="a/1", wake_at=NOON + 120_000)
    invoke(change(1, first))
    invoke(change(2, replace(first, rev=first.rev + 1, leases=1)))
    invoke(change(3, replace(first, rev=first.rev + 2, billed=(25, 100, 0), wake_at=None)))
    assert [(line["rev"], line.get("vcpu_hours")) for line in lines(lake)] == [(1, None), (3, 0.025)]
    assert {key.rpartition("/")[0] for key in objects(lake) if key.startswith("history/")} == {
        "history/day=2026-03-02/hour=12"
    }


def test_h3_a_repeated_batch_overwrites_its_objects(lake: Any) -> None:
    batch = [change(1, ended("r1")), change(2, ended("r2"))]
    invoke(*batch)
    before = objects(lake)
    invoke(*batch)
    assert objects(lake) == before
    assert len(lines(lake)) == 2


def test_h3_an_unreadable_row_is_named_and_blocks_no_other(lake: Any) -> None:
    broken = change(2, ended("r2"))
    del broken["dynamodb"]["NewImage"]["schedule"]
    assert invoke(change(1, ended("r1")), broken, change(3, ended("r3"))) == [f"{2:030}"]
    assert [line["id"] for line in lines(lake)] == ["r1", "r3"]


def test_h3_a_missing_bucket_returns_stream_to_its_first_record(lake: Any) -> None:
    lake.delete_bucket(Bucket=BUCKET)
    assert invoke(change(7, rows.run()), change(8, ended("r8")), change(9, ended("r9"))) == [f"{8:030}"]


def test_h3_a_late_change_is_announced_after_it_was_written(lake: Any) -> None:
    # NOON is in the past of the Lambda's clock, so this day was compacted long ago.
    invoke(change(1, ended("r1")))
    (late,) = [key for key in objects(lake) if key.startswith("history_late/")]
    assert late.startswith("history_late/day=2026-03-02/arrived=") and late.endswith("/late")


ENTRY = AuditRow(
    "demo", "2026-03-02T12:00:00.000Z#a1", NOON, "put_schedule", "changed", "schedule", "demo.flights.s",
    arn="arn:aws:iam::123456789012:user/ada", document={"after": {"version": 1}}, expires_at=NOON + 1,
)  # fmt: skip


@pytest.fixture
def audit_bucket(lake: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    lake.create_bucket(Bucket="kept", ObjectLockEnabledForBucket=True)
    monkeypatch.setenv("SLUICE_AUDIT_BUCKET", "kept")
    wiring.audit_log.cache_clear()
    yield lake
    wiring.audit_log.cache_clear()


def exported(s3: Any) -> dict[str, list[Any]]:
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket="kept").get("Contents", [])]
    texts = {key: gzip.decompress(s3.get_object(Bucket="kept", Key=key)["Body"].read()).decode() for key in keys}
    return {key: [json.loads(line) for line in text.splitlines()] for key, text in texts.items()}


def test_audit_records_are_exported_once_by_hour(audit_bucket: Any) -> None:
    second = replace(ENTRY, id="2026-03-02T12:00:00.001Z#a2", operation="delete_schedule", document={})
    changes = [change(1, ENTRY, "INSERT"), change(2, second, "INSERT"), change(3, ended("r1"))]
    assert invoke(*changes) == []
    assert invoke(*changes) == []
    [(key, found)] = exported(audit_bucket).items()
    assert key.startswith("audit/day=2026-03-02/hour=12/")
    assert [(line["operation"], line["by"]) for line in found] == [
        ("put_schedule", ENTRY.arn), ("delete_schedule", ENTRY.arn),
    ]  # fmt: skip
    assert (found[0]["after"], found[0]["namespace"], found[0]["schema"]) == ({"version": 1}, "demo", 1)
    assert len(lines(audit_bucket)) == 1, "history goes on beside it"


def test_an_expired_audit_record_is_not_exported_again(audit_bucket: Any) -> None:
    assert invoke(change(1, ENTRY, "REMOVE")) == []
    assert exported(audit_bucket) == {}


def test_a_failed_export_is_delivered_again(audit_bucket: Any) -> None:
    audit_bucket.delete_bucket(Bucket="kept")
    failed = invoke(change(7, ENTRY, "INSERT"), change(8, ended("r1")))
    assert failed == [f"{7:030}"]


def test_without_a_bucket_no_audit_record_is_exported(lake: Any) -> None:
    wiring.audit_log.cache_clear()
    assert invoke(change(1, ENTRY, "INSERT")) == []
    assert objects(lake) == {}
