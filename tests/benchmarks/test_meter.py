"""The metering client bills what the calls do to real tables, and its answers are those of the metered client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from benchmarks.cost.meter import MeteredDynamo, row_kind, table_of
from benchmarks.cost.tally import Tally
from tests.support import tables

JOBS = "t-jobs_table"
KEY = {"pk": {"S": "demo.flights.clean@1"}, "sk": {"S": "GATHERING"}}
WOKEN = {"wake_shard": {"S": "1"}, "wake_at": {"S": "2026-03-02T12:00:00.000Z"}}


@pytest.fixture
def metered() -> Iterator[MeteredDynamo]:
    with mock_aws():
        client = boto3.client("dynamodb", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        names = tables.create(client, "t")
        made = {title.removesuffix("Table").lower(): body for title, body in tables.definitions().items()}
        schema = {names[f"{title}_table"]: table_of(title, body) for title, body in made.items()}
        yield MeteredDynamo(client, schema, Tally({"check": 1.0}))


def row(**attributes: Any) -> dict[str, Any]:
    return {**KEY, **attributes}


def test_a_put_into_the_wake_index_costs_two_writes(metered: MeteredDynamo) -> None:
    metered.put_item(TableName=JOBS, Item=row(**WOKEN))

    assert metered.tally.table_units.total() == 1
    assert metered.tally.index_units.total() == 1
    assert metered.tally.calls == {"dynamodb:PutItem": 1}


def test_items_before_and_after_an_update_decide_its_index_cost(metered: MeteredDynamo) -> None:
    metered.put_item(TableName=JOBS, Item=row(**WOKEN))
    later = {":at": {"S": "2026-03-02T13:00:00.000Z"}}
    metered.update_item(TableName=JOBS, Key=KEY, UpdateExpression="SET wake_at = :at", ExpressionAttributeValues=later)

    assert metered.tally.write_units == (1 + 1) + (1 + 2)


def test_a_transaction_doubles_writes_and_checks_but_no_index(metered: MeteredDynamo) -> None:
    other = {"pk": KEY["pk"], "sk": {"S": "FIRE#1"}}
    check = {"TableName": JOBS, "Key": other, "ConditionExpression": "attribute_not_exists(pk)"}
    metered.transact_write_items(
        TransactItems=[{"Put": {"TableName": JOBS, "Item": row(**WOKEN)}}, {"ConditionCheck": check}]
    )

    assert metered.tally.table_units.total() == 2 + 2
    assert metered.tally.index_units.total() == 1


def test_a_marker_is_written_twice_for_its_local_index(metered: MeteredDynamo) -> None:
    marker = {"pk": KEY["pk"], "sk": {"S": "APPLIED#1"}, "event_job": {"S": "j1"}, "event": {"S": "x" * 1100}}
    metered.put_item(TableName=JOBS, Item=marker)

    assert (metered.tally.table_units.total(), metered.tally.index_units.total()) == (2, 2)


def test_a_refused_write_is_billed_and_does_not_change_indexes(metered: MeteredDynamo) -> None:
    metered.put_item(TableName=JOBS, Item=row(big={"S": "x" * 1500}))
    with pytest.raises(ClientError):
        metered.put_item(TableName=JOBS, Item=row(**WOKEN), ConditionExpression="attribute_not_exists(pk)")

    assert metered.tally.write_units == 2 + 2


def test_a_batch_is_billed_item_by_item(metered: MeteredDynamo) -> None:
    rows = [{"pk": KEY["pk"], "sk": {"S": f"FIRE#{number}"}, **WOKEN} for number in range(3)]
    metered.batch_write_item(RequestItems={JOBS: [{"PutRequest": {"Item": one}} for one in rows]})

    assert metered.tally.calls == {"dynamodb:BatchWriteItem": 1}
    assert metered.tally.write_units == 3 * (1 + 1)


def test_reads_are_billed_by_consistency_and_answered_unchanged(metered: MeteredDynamo) -> None:
    metered.put_item(TableName=JOBS, Item=row(**WOKEN))

    assert metered.get_item(TableName=JOBS, Key=KEY, ConsistentRead=True)["Item"] == row(**WOKEN)
    found = metered.query(
        TableName=JOBS,
        IndexName="wake",
        KeyConditionExpression="wake_shard = :shard",
        ExpressionAttributeValues={":shard": {"S": "1"}},
    )
    assert len(found["Items"]) == 1
    metered.batch_get_item(RequestItems={JOBS: {"Keys": [KEY, {**KEY, "sk": {"S": "GONE"}}], "ConsistentRead": True}})

    assert metered.tally.read_units == 1 + 0.5 + 2


def test_the_calls_and_waits_of_a_lambda_are_its_own(metered: MeteredDynamo) -> None:
    with metered.tally.invocation("check"):
        metered.put_item(TableName=JOBS, Item=row())
        metered.tally.wait(1_000)
    metered.put_item(TableName=JOBS, Item=row())

    assert [written.handler for written in metered.tally.times] == ["check", "-"]
    assert metered.tally.gb_seconds == pytest.approx(1.021)  # 15 ms, 6 ms for the call, and the wait, in 1 GB


@pytest.mark.parametrize(
    ("pk", "sk", "kind"),
    [
        ("RUN#r1", "A#001", "RUN"),
        ("RUN#r1", "RECORD", "RECORD"),
        ("demo.flights.clean@1", "GATHERING#2013/1/1", "GATHERING"),
        ("LIMIT#emr:00app", "STATE", "LIMIT emr"),
        ("SCHEDULE#demo.flights.clean", "STATE", "STATE"),
        ("LIMIT#workflow:demo.flights.clean", "WAIT#5", "WAIT"),
    ],
)
def test_rows_are_counted_by_their_kind(pk: str, sk: str, kind: str) -> None:
    assert row_kind({"pk": {"S": pk}, "sk": {"S": sk}}) == kind


def test_batch_deletes_are_billed_by_the_size_of_their_items(metered: MeteredDynamo) -> None:
    metered.put_item(TableName=JOBS, Item=row(**WOKEN))
    before = metered.tally.write_units
    metered.batch_write_item(RequestItems={JOBS: [{"DeleteRequest": {"Key": KEY}}]})

    assert metered.tally.write_units - before == 1 + 1  # out of the table, and out of the index
    assert "Item" not in metered.get_item(TableName=JOBS, Key=KEY, ConsistentRead=True)
