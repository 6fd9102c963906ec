"""The client of the tables sends and returns what botocore's own would, without a walk through its model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from moto import mock_aws

from chalicelib import wiring
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.wire_format import as_it_is
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Failures
from chalicelib.core.writes import Conflict, CountFailure, Create, Put, Replace
from tests.support import tables
from tests.support.rows import job
from tests.support.world import settings

ITEM = {
    "pk": {"S": "a § b"}, "sk": {"S": ""}, "n": {"N": "-1.5E+3"}, "flag": {"BOOL": False}, "none": {"NULL": True},
    "set": {"SS": ["x", "y"]}, "list": {"L": [{"S": "x"}, {"M": {"deep": {"L": []}}}]},
}  # fmt: skip
TABLES = ("catalog_table", "jobs_table", "runs_table")
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "get": ("get_item", {"TableName": "t", "Key": {"pk": {"S": "a"}}, "ConsistentRead": True}),
    "gets": ("batch_get_item", {"RequestItems": {"t": {"Keys": [{"pk": {"S": "a"}}], "ConsistentRead": True}}}),
    "puts": ("batch_write_item", {"RequestItems": {"t": [{"PutRequest": {"Item": ITEM}}]}}),
    "query": ("query", {"TableName": "t", "KeyConditionExpression": "pk = :a", "Limit": 3, "ScanIndexForward": False}),
    "transaction": (
        "transact_write_items",
        {"TransactItems": [{"Put": {"TableName": "t", "Item": ITEM}}], "ClientRequestToken": "token"},
    ),
}


class Network:
    """Answers each request of a client with one body, and keeps the requests."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.sent: list[Any] = []
        self._body, self._status = body, status

    def answer(self, request: Any, **_: Any) -> AWSResponse:
        self.sent.append(request)
        return AWSResponse(request.url, self._status, {"x-amzn-requestid": "r1"}, self)

    def stream(self) -> Iterator[bytes]:
        yield self._body

    def client(self, wrap: Callable[[Any], Any]) -> Any:
        made = boto3.client(
            *("dynamodb", "us-east-1"),
            aws_access_key_id="x", aws_secret_access_key="x", config=Config(parameter_validation=False),
        )  # fmt: skip
        made.meta.events.register("before-send.dynamodb", self.answer)
        return wrap(made)


def both(body: bytes, status: int = 200) -> tuple[tuple[Network, Any], tuple[Network, Any]]:
    """botocore's own client and ours, each with its network."""
    networks = Network(body, status), Network(body, status)
    return (networks[0], networks[0].client(lambda own: own)), (networks[1], networks[1].client(as_it_is))


@pytest.mark.parametrize("name", CALLS)
def test_a_request_is_that_of_botocore(name: str) -> None:
    method, arguments = CALLS[name]
    sent = []
    for network, client in both(b"{}"):
        getattr(client, method)(**arguments)
        (request,) = network.sent
        signed = {key: value for key, value in request.headers.items() if key not in ("Authorization", "X-Amz-Date")}
        sent.append((request.url, signed.keys(), request.headers["X-Amz-Target"], json.loads(request.body)))
        assert b"Signature=" in request.headers["Authorization"]
        assert int(request.headers["Content-Length"]) == len(request.body)
    assert sent[0] == sent[1]
    assert sent[1][3] == arguments


def test_an_answer_is_that_of_botocore() -> None:
    answer = {"Items": [ITEM, {}], "Count": 2, "LastEvaluatedKey": {"pk": {"S": "a"}}}
    found = [client.query(TableName="t") for _, client in both(json.dumps(answer).encode())]
    assert found[0] == found[1]
    assert found[1]["Items"] == [ITEM, {}]
    assert found[1]["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_binary_value_goes_back_as_it_came() -> None:
    """No code stores one. Newer code may, and older code keeps what it does not know."""
    network = Network(b'{"Item": {"pk": {"S": "a"}, "zz": {"B": "AP8="}}}')
    client = network.client(as_it_is)
    item = client.get_item(TableName="t", Key={"pk": {"S": "a"}})["Item"]
    client.put_item(TableName="t", Item=item)
    assert json.loads(network.sent[-1].body)["Item"]["zz"] == {"B": "AP8="}


def test_an_error_is_parsed_with_its_item_and_reasons() -> None:
    body = {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": "cancelled",
        "CancellationReasons": [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": ITEM}],
    }
    found = []
    for _, client in both(json.dumps(body).encode(), 400):
        with pytest.raises(ClientError) as caught:
            client.transact_write_items(TransactItems=[{"Put": {"TableName": "t", "Item": ITEM}}])
        found.append(caught.value.response)
    assert found[0] == found[1]
    assert found[1]["CancellationReasons"][1] == {"Code": "ConditionalCheckFailed", "Item": ITEM}


def test_a_body_that_is_no_json_is_left_to_botocore() -> None:
    found = [client.get_item(TableName="t", Key={}) for _, client in both(b"<html>")]
    assert found[0] == found[1]
    assert "Item" not in found[1]


@mock_aws
def test_the_tables_read_and_write_through_it() -> None:
    client = boto3.client(
        *("dynamodb", "us-east-1"),
        aws_access_key_id="x", aws_secret_access_key="x", config=Config(parameter_validation=False),
    )  # fmt: skip
    names = tables.create(client, "t")
    dynamo = Dynamo(as_it_is(client), settings(names))
    jobs = [job(sort_key=f"FIRE#{number:03d}", job_id=f"j{number}") for number in range(130)]

    dynamo.put_all([Put(each) for each in jobs])
    keys = [kinds.key_of(each) for each in jobs]
    assert dynamo.get_many(keys).keys() == set(keys)
    assert dynamo.get(keys[7], Job) == jobs[7]

    changed = replace(jobs[7], rev=jobs[7].rev + 1, reason=jobs[8].reason)
    assert dynamo.commit([Replace(changed), Create(replace(jobs[0], sort_key="FIRE#new"))]) is None
    again = dynamo.commit([Replace(changed), Create(jobs[0])])
    assert isinstance(again, Conflict) and len(again.writes) == 2
    assert dynamo.commit([CountFailure("demo.flights.clean")]) is None
    assert dynamo.get(kinds.key(Failures, "demo.flights.clean"), Failures) is not None


def test_the_tables_of_the_lambdas_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(b"{}")
    monkeypatch.setattr(wiring, "client", lambda service, **options: network.client(lambda own: own))
    monkeypatch.setattr(wiring.Settings, "from_environment", lambda: settings({field: field for field in TABLES}))
    wiring.ports.__wrapped__().ledger.commit([Put(job())])
    (request,) = network.sent
    assert json.loads(request.body)["Item"]["job_id"] == {"S": "j1"}
    assert b": " not in request.body, "botocore puts a space there"


def test_requests_name_sluice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    network = Network(b"{}")
    client = wiring.client_as(Credentials("x", "x"), "dynamodb")
    client.meta.events.register("before-send.dynamodb", network.answer)
    client.list_tables()
    assert network.sent[0].headers["User-Agent"].startswith(f"sluice/{wiring.VERSION}".encode())
