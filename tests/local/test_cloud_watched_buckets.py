# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""On the local cloud EventBridge brings an object of a bucket outside the stack to the deployed Lambda (T20)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest

from infra.local.endpoints import Endpoints
from infra.local.landing import BUCKET
from tests.local.conftest import eventually
from tests.local.test_cloud_bad_input import Caller
from tests.support.cloud import cloud  # noqa: F401 - a fixture

pytestmark = pytest.mark.cloud

PATIENCE = 60  # seconds; it takes one, once the Lambda has started
DAYS = ["1", "1 of 2", "1+2", "50%20", "Zürich"]


@pytest.fixture
def caller(cloud: Endpoints) -> Iterator[Caller]:
    made = Caller(cloud)
    assert made.send("PUT")[0] == 201
    yield made
    made.send("DELETE", "/datasets/orders")
    assert made.send("DELETE")[0] == 204


def dataset(caller: Caller, **fields: Any) -> str:
    """The prefix of the dataset ``orders`` in the bucket outside the stack."""
    prefix = f"{caller.namespace}/in/"
    body = {"bucket": BUCKET, "prefix": prefix, "keys": ["day"], **fields}
    assert caller.send("PUT", "/datasets/orders", body)[0] == 201
    return prefix


def test_t20_an_object_outside_stack_makes_its_partition_ready(cloud: Endpoints, caller: Caller) -> None:
    prefix, s3 = dataset(caller), cloud.client("s3")
    for day in DAYS:
        s3.put_object(Bucket=BUCKET, Key=f"{prefix}day={day}/part 0+1.csv", Body=b"x")
    s3.copy_object(
        Bucket=BUCKET, Key=f"{prefix}day=copy/x", CopySource={"Bucket": BUCKET, "Key": f"{prefix}day=1/part 0+1.csv"}
    )
    parts = s3.create_multipart_upload(Bucket=BUCKET, Key=f"{prefix}day=parts/x")
    named = {name: parts[name] for name in ("Bucket", "Key", "UploadId")}
    etag = s3.upload_part(**named, PartNumber=1, Body=b"x")["ETag"]
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})

    days = {unquote(day) for day in DAYS}  # Spark escapes characters in the names of folders
    eventually(lambda: caller.ready() == {*days, "copy", "parts"}, PATIENCE)


def test_t20_the_lambda_may_read_a_manifest_in_a_watched_bucket(cloud: Endpoints, caller: Caller) -> None:
    prefix, s3 = dataset(caller, ready={"manifest": "MANIFEST"}), cloud.client("s3")
    s3.put_object(Bucket=BUCKET, Key=f"{prefix}day=1/MANIFEST", Body=b"a.csv\n")
    s3.put_object(Bucket=BUCKET, Key=f"{prefix}day=2/a.csv", Body=b"x")
    s3.put_object(Bucket=BUCKET, Key=f"{prefix}day=2/MANIFEST", Body=b"a.csv\n")

    eventually(lambda: caller.ready() == {"2"}, PATIENCE)


def test_t20_the_deployed_api_refuses_an_unlisted_bucket(cloud: Endpoints, caller: Caller) -> None:
    body = {"bucket": f"closed-{uuid.uuid4().hex[:8]}", "prefix": "in/", "keys": ["day"]}
    error = caller.refused(400, "PUT", "/datasets/orders", body)
    assert f"{cloud.outputs['LakeBucket']}, {BUCKET})" in error["message"]
    assert "WatchedBuckets" in error["hint"]
