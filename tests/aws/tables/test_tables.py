"""What the lake and the Glue catalog store about Iceberg tables, on moto (T21)."""

from __future__ import annotations

import boto3
import pytest
from moto import mock_aws

from chalicelib.aws.s3.lake import S3Lake

REGION = "us-east-1"


@mock_aws
def test_t21_bytes_are_read_unchanged_up_to_a_limit() -> None:
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="lake")
    s3.put_object(Bucket="lake", Key="a", Body=b"\x1f\x8b\xff")
    lake = S3Lake(s3)
    assert lake.content("lake", "a", 3) == b"\x1f\x8b\xff"
    assert lake.content("lake", "b", 3) is None
    with pytest.raises(ValueError, match="at most 2 bytes, got 3"):
        lake.content("lake", "a", 2)


@mock_aws
def test_t21_glue_names_the_metadata_file_of_a_table() -> None:
    glue = boto3.client("glue", region_name=REGION)
    glue.create_database(DatabaseInput={"Name": "sales"})
    location = "s3://lake/warehouse/sales/orders/metadata/00001-1.metadata.json"
    answer = {"table_type": "ICEBERG", "metadata_location": location}
    glue.create_table(DatabaseName="sales", TableInput={"Name": "orders", "Parameters": answer})
    glue.create_table(DatabaseName="sales", TableInput={"Name": "csv"})
    lake = S3Lake(boto3.client("s3", region_name=REGION), lambda: glue)
    assert lake.metadata_location("sales.orders") == location
    assert lake.metadata_location("sales.csv") is None
    assert lake.metadata_location("sales.nothing") is None
    assert lake.metadata_location("nowhere.orders") is None
