"""The objects that a repair finds in the bucket of a dataset (O4)."""

from __future__ import annotations

import boto3
from moto import mock_aws

from chalicelib.core.instants import HOUR
from chalicelib.wiring import SystemClock
from sluice.operations.listings import changed


def test_o4_objects_since_an_instant_are_listed() -> None:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="lake")
        client.put_object(Bucket="lake", Key="raw/a/day=1/_SUCCESS", Body=b"")
        client.put_object(Bucket="lake", Key="raw/a/day=1/x.csv", Body=b"12345")
        client.put_object(Bucket="lake", Key="raw/b/day=1/x.csv", Body=b"1")
        now = SystemClock().now()
        found = {each.key: each.size for each in changed(client, "lake", "raw/a/", now - HOUR)}
        assert found == {"raw/a/day=1/_SUCCESS": 0, "raw/a/day=1/x.csv": 5}
        [csv] = list(changed(client, "lake", "raw/b/", now - HOUR))
        assert len(csv.etag) == 32 and '"' not in csv.etag
        assert list(changed(client, "lake", "raw/", now + HOUR)) == []
