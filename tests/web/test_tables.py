"""Datasets that are Iceberg tables, over HTTP and as notifications of S3 (T21)."""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

import boto3
import pytest

from chalicelib import handlers
from chalicelib.log import logger
from tests.support.iceberg_files import PREFIX, file, metadata, snapshot
from tests.web.conftest import APP, NS, Api
from tests.web.test_handlers import failed, reported, sqs

ORDERS = f"{NS}/datasets/orders"
TABLE: dict[str, Any] = {"format": "iceberg", "bucket": "lake", "prefix": PREFIX}


def after(commits: int) -> bytes:
    """Metadata of a table whose snapshots are committed a minute from now, so that none is older than the dataset."""
    soon = round(time.time() * 1000) + 60_000
    made = [snapshot(number, number - 1 or None, soon + number) for number in range(1, commits + 1)]
    return json.dumps(metadata(*made, former=commits - 1)).encode()


def put_object(key: str, content: bytes) -> None:
    boto3.client("s3").put_object(Bucket="lake-bucket", Key=key, Body=content)


def test_t21_a_table_needs_only_a_location_and_lists_snapshots(api: Api) -> None:
    boto3.client("s3").create_bucket(Bucket="lake-bucket")
    api.put(ORDERS, TABLE)
    assert {"keys": ["snapshot"], "operations": ["append", "overwrite"]}.items() <= api.get(ORDERS).items()
    assert api.put(ORDERS, TABLE)["did"] == "unchanged"

    put_object(file(1), after(1))
    put_object(file(2), gzip.compress(after(2)))
    assert failed(handlers.objects(sqs(reported(file(1)), reported(file(2))))) == []
    [listed] = api.get(f"{ORDERS}/partitions")["items"]
    assert listed["partition"] == {"snapshot": "1"}
    assert listed["path"] == f"s3://lake-bucket/{PREFIX}"
    assert {"id": "1", "parent_id": None, "operation": "append", "added_records": 10}.items() <= listed[
        "snapshot"
    ].items()


def test_t21_bad_metadata_file_fails_alone_is_retried_and_logged(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    boto3.client("s3").create_bucket(Bucket="lake-bucket")
    api.put(ORDERS, TABLE | {"single_writer": True})
    put_object(file(1), b"{")
    put_object(file(2), after(2))
    logged: list[str] = []

    def keep(message: str, **more: Any) -> None:
        import sys

        logged.append(f"{message}: {sys.exc_info()[1]}")

    monkeypatch.setattr(logger, "exception", keep)
    assert failed(handlers.objects(sqs(reported(file(1)), reported(file(2))))) == ["m0"]
    assert any(f"s3://lake-bucket/{file(1)}: expected the metadata of an Iceberg table" in line for line in logged)
    assert len(api.get(f"{ORDERS}/partitions")["items"]) == 2, "nothing is lost"


def test_t21_a_table_is_confirmed_by_glue(api: Api) -> None:
    boto3.client("s3").create_bucket(Bucket="lake-bucket")
    glue = boto3.client("glue")
    glue.create_database(DatabaseInput={"Name": "sales"})
    location = {"metadata_location": f"s3://lake-bucket/{file(1)}"}
    glue.create_table(DatabaseName="sales", TableInput={"Name": "orders", "Parameters": location})
    api.put(ORDERS, TABLE | {"glue_table": "sales.orders"})
    put_object(file(1), after(1))
    assert failed(handlers.objects(sqs(reported(file(1))))) == []
    assert len(api.get(f"{ORDERS}/partitions")["items"]) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"keys": ["day"]}, "keys"),
        ({"operations": ["insert"]}, "operations.0"),
        ({"ready": {"done_flag": "_SUCCESS"}}, "ready"),
        ({"glue_table": "sales.orders", "single_writer": True}, "single_writer"),
        ({"format": "files", "single_writer": True, "keys": ["day"]}, "single_writer"),
    ],
)
def test_t21_an_invalid_table_document_is_refused(api: Api, change: dict[str, Any], field: str) -> None:
    assert api.refused(400, "PUT", ORDERS, TABLE | change)["field"] == field


def test_t21_a_dataset_keeps_its_format(api: Api) -> None:
    api.put(ORDERS, TABLE)
    error = api.refused(400, "PUT", ORDERS, {"bucket": "lake", "prefix": PREFIX, "keys": ["day"]})
    assert (error["field"], error["code"]) == ("format", "invalid")
    assert "has, iceberg, got 'files'" in error["message"]


def test_t21_no_snapshot_can_be_registered_by_hand(api: Api) -> None:
    api.put(ORDERS, TABLE)
    error = api.refused(400, "POST", f"{ORDERS}/partitions", {"partition": {"snapshot": "1"}})
    assert "the table demo.orders, whose partitions are its snapshots" in error["message"]


def test_t21_a_snapshot_leaf_needs_a_table_and_correlates_by_it(api: Api) -> None:
    api.put(ORDERS, TABLE)
    files = {"workflow": "clean", "trigger": {"type": "snapshot", "dataset": "flights"}}
    assert api.refused(400, "PUT", f"{APP}/schedules/each", files)["field"] == "trigger.dataset"
    by_day = {"workflow": "clean", "trigger": {"type": "snapshot", "dataset": "orders"}, "by": ["day"]}
    assert api.refused(400, "PUT", f"{APP}/schedules/each", by_day)["field"] == "by"
    each = {"workflow": "clean", "trigger": {"type": "snapshot", "dataset": "orders"}, "by": ["snapshot"]}
    assert api.put(f"{APP}/schedules/each", each)["by"] == ["snapshot"]


def test_t21_a_dry_run_plays_snapshots(api: Api) -> None:
    api.put(ORDERS, TABLE)
    api.put(
        f"{APP}/schedules/two", {"workflow": "clean", "trigger": {"type": "snapshot", "dataset": "orders", "count": 2}}
    )
    played = api.post(f"{APP}/schedules/two/dry-run", {"events": [{"type": "snapshot", "dataset": "orders"}]})
    assert played["steps"][0]["event"] == "snapshot of orders"
    assert played["steps"][0]["missing"] == ["1 snapshot of demo.orders"]
