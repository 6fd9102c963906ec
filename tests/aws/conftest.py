"""The stores on two implementations of DynamoDB: moto in this process, and ministack, the server of the local cloud."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from chalicelib.aws.tables.dynamo import Dynamo
from tests.support import reserved, tables
from tests.support.world import World, settings


@pytest.fixture(params=["moto", pytest.param("ministack", marks=pytest.mark.cloud)])
def store(request: pytest.FixtureRequest) -> Iterator[tuple[Any, dict[str, str]]]:
    """A DynamoDB client, and the names of tables made for this test from the template."""
    if request.param == "moto":
        with mock_aws():
            client = boto3.client("dynamodb", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
            client.meta.events.register("provide-client-params.dynamodb", reserved.refuse)
            yield client, tables.create(client, "t")
        return
    client = request.getfixturevalue("cloud").client("dynamodb")
    names = tables.create(client, f"contract-{uuid.uuid4().hex[:8]}")
    yield client, names
    for name in names.values():
        client.delete_table(TableName=name)


@pytest.fixture
def dynamo(store: tuple[Any, dict[str, str]]) -> Dynamo:
    return Dynamo(store[0], settings(store[1]))


@pytest.fixture
def world(store: tuple[Any, dict[str, str]]) -> World:
    """The whole system on each of the two."""
    return World(*store)
