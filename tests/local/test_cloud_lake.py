# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""On the local cloud the table's stream brings an ended row into the lake, also after a restart (H3)."""

from __future__ import annotations

import gzip
import json
import time
import uuid
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.aws.tables import items
from infra.local.aws import _read_streams_from_their_beginning
from infra.local.endpoints import Endpoints
from tests.support import rows
from tests.support.cloud import cloud  # noqa: F401 - a fixture

PATIENCE = 30.0  # seconds; it takes one


def put(cloud: Endpoints, run_id: str, **fields: Any) -> int:
    """A run that ended now, as a row; returns the instant."""
    now = int(time.time() * 1000)
    run = rows.run(run_id, **{"state": "SUCCEEDED", "wake_at": None, "ended_at": now, "claimed_at": now, **fields})
    cloud.client("dynamodb").put_item(TableName=cloud.outputs["RunsTable"], Item=items.to_item(run, 4, 4))
    return now


def lines(cloud: Endpoints, run_id: str) -> list[Any]:
    s3, bucket = cloud.client("s3"), cloud.outputs["LakeBucket"]
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="history/day=")
    keys = [each["Key"] for page in pages for each in page.get("Contents", ())]
    texts = (gzip.decompress(s3.get_object(Bucket=bucket, Key=key)["Body"].read()).decode() for key in keys)
    answer = [json.loads(line) for text in texts for line in text.splitlines()]
    return [line for line in answer if line["id"] == run_id]


@pytest.mark.cloud
def test_h3_a_row_that_has_ended_reaches_the_local_lake(cloud: Endpoints) -> None:
    run_id, unfinished = f"lake-{uuid.uuid4().hex}", f"lake-{uuid.uuid4().hex}"
    put(cloud, unfinished, state="RUNNING", ended_at=None)
    put(cloud, run_id)
    deadline = time.monotonic() + PATIENCE
    while not (found := lines(cloud, run_id)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert [(line["kind"], line["state"]) for line in found] == [("run", "SUCCEEDED")]
    assert lines(cloud, unfinished) == []


def test_h3_after_a_restart_a_stream_is_read_from_its_beginning() -> None:
    positions, others = {"a mapping": 15}, {"another": 7}

    def restore(kept: dict[str, int], data: dict[str, int]) -> None:
        kept.update(data)

    service = SimpleNamespace(_dynamodb_stream_positions=positions, _restore_esm_positions=restore)
    _read_streams_from_their_beginning(service)
    service._restore_esm_positions(positions, {"a mapping": 99})
    service._restore_esm_positions(others, {"another": 8})
    assert (positions, others) == ({}, {"another": 8})
