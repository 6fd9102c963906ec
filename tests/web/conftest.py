"""The whole service behind its HTTP API: the app of app.py on tables in memory, and on moto's queues and buckets.

``SLUICE_TEST_TABLES=moto`` plays the same tests on moto's tables, many times as slowly."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from chalice.local import LambdaContext
from chalice.test import Client, HTTPResponse
from moto import mock_aws

from app import app
from chalicelib import wiring
from chalicelib.wiring import ports
from sluice.testing.memory_tables import MemoryTables
from tests.support import tables
from tests.web import answer_schemas

MAX_ROUNDS = 50
NS = "/v1/namespaces/demo"
APP = f"{NS}/apps/flights"
KEYS = ["year", "month", "day"]
WEEKDAYS = {"type": "time", "expression": "0 5 * * mon-fri"}


class Api:
    """Sends requests to the API as a signed caller would, and invokes the Lambdas that the API calls asynchronously."""

    def __init__(self, names: dict[str, str], dynamodb: Any) -> None:
        self.client = Client(app)
        self.sqs, self.dynamodb = boto3.client("sqs"), dynamodb
        self.names = names

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> HTTPResponse:
        """Send a request. A ``body`` of type bytes is sent unchanged, any other as JSON; ``if_match="3"`` is the header
        If-Match.
        """
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IAMAuthorizer is not a supported in local mode")
            answer = self.client.http.request(method, path, headers=sent, body=data)
        if answer.status_code < 300:
            self.seen(method, path, answer.status_code, json.loads(answer.body) if answer.body else None)
        return answer

    def seen(self, method: str, path: str, status: int, body: Any) -> None:
        """Compare an answer with what the OpenAPI document says about it."""
        answer_schemas.check(method, path, status, body)

    def get(self, path: str) -> Any:
        return self.answer(self.send("GET", path), 200)

    def put(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.answer(self.send("PUT", path, {} if body is None else body, **headers), 200, 201)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.answer(self.send("POST", path, body, **headers), 200, 201, 202)

    def delete(self, path: str, **headers: str) -> None:
        assert self.send("DELETE", path, **headers).status_code == 204

    def refused(self, status: int, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
        """The error of a request that is refused with this status, in the common form of errors."""
        answer = self.send(method, path, body, **headers)
        assert answer.status_code == status, answer.body
        assert answer.headers["Content-Type"] == "application/json"
        view = json.loads(answer.body)
        assert set(view) == {"error"}
        error: dict[str, Any] = view["error"]
        problems = error.pop("problems", [])
        fields = {"code", "message", "field", "hint"}
        assert len(problems) != 1
        assert all(set(each) == fields for each in (error, *problems))
        return error

    @staticmethod
    def answer(answer: HTTPResponse, *expected: int) -> Any:
        assert answer.status_code in expected, answer.body
        return json.loads(answer.body)

    def everything(self) -> list[Any]:
        """Every item of every table, to compare when nothing may be stored."""
        return [
            sorted(json.dumps(item, sort_keys=True, default=bytes.hex) for item in self._items(table))
            for table in sorted(self.names.values())
        ]

    def _items(self, table: str) -> Iterator[Any]:
        start: dict[str, Any] = {}
        while True:
            page = self.dynamodb.scan(TableName=table, **start)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def all_but_audit(self) -> list[Any]:
        """The same without audit records: a refused request may write one."""
        return [[item for item in table if '"AUDIT#' not in item] for table in self.everything()]

    def messages(self, url: str) -> list[Any]:
        found = self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["ApproximateReceiveCount"]
        ).get("Messages", [])
        for message in found:
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found

    @property
    def hints_url(self) -> str:
        return ports().settings.hints_queue_url

    def work(self) -> None:
        """Deliver every due hint to its Lambda, and the hints that these invocations send."""
        for _ in range(MAX_ROUNDS):
            found = self.messages(self.hints_url)
            if not found:
                return
            records = [
                {
                    "messageId": each["MessageId"],
                    "body": each["Body"],
                    "receiptHandle": each["ReceiptHandle"],
                    "attributes": each["Attributes"],
                    "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:hints",
                }
                for each in found
            ]
            # The client of Chalice gives an invocation three seconds; the deployed one has two minutes.
            context = LambdaContext("check", 512, max_runtime_ms=120_000)
            answer = app.handler_map["check"]({"Records": records}, context)
            assert answer == {"batchItemFailures": []}
        raise AssertionError(f"expected quiet within {MAX_ROUNDS} rounds of hints")

    def schedule(self, name: str, **changed: Any) -> dict[str, Any]:
        """Put a schedule of the workflow ``notify``; by default it fires on every weekday."""
        view: dict[str, Any] = self.put(
            f"{APP}/schedules/{name}", {"workflow": "notify", "trigger": WEEKDAYS} | changed
        )
        return view


@contextmanager
def installation() -> Iterator[Api]:
    """A new installation: tables from the template, queues and bucket, and ports made from its environment."""
    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        environment = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
        for name, value in environment.items():
            patch.setenv(name, value)
        for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_EMR_SERVERLESS", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        emr = boto3.client("emr-serverless").create_application(
            name="jobs", type="SPARK", releaseLabel="emr-7.1.0", clientToken="jobs"
        )
        boto3.client("s3").create_bucket(Bucket="control")
        if os.environ.get("SLUICE_TEST_TABLES") == "moto":
            dynamodb = boto3.client("dynamodb")
            names = tables.create(dynamodb, "web")
        else:
            dynamodb, names = tables.in_memory()
            patch.setattr(wiring, "client", _clients(dynamodb))
        settings = names | {
            "hints_queue_url": boto3.client("sqs").create_queue(QueueName="hints")["QueueUrl"],
            "lake_bucket": "lake-bucket",
            "control_bucket": "control",
            "emr_application_id": emr["applicationId"],
            "emr_job_role_arn": "arn:aws:iam::123456789012:role/job",
        }
        for name, value in settings.items():
            patch.setenv(f"SLUICE_{name.upper()}", value)
        ports.cache_clear()
        yield Api(names, dynamodb)
        ports.cache_clear()


def _clients(dynamodb: MemoryTables) -> Any:
    """The function that makes clients, with these tables instead of DynamoDB."""
    make = wiring.client
    return lambda service, **options: dynamodb if service == "dynamodb" else make(service, **options)


_settled: list[Any] = []  # the tables of `settle_in`, made once in each process


def settle_in(api: Api) -> None:
    """The namespace ``demo`` with the app ``flights``: two datasets, and a workflow for each kind of target."""
    target = api.sqs.create_queue(QueueName="target")["QueueUrl"]
    if isinstance(api.dynamodb, MemoryTables) and _settled:
        api.dynamodb.restore(_settled[0])
        return
    _put_all(api, target)
    if isinstance(api.dynamodb, MemoryTables):
        _settled.append(api.dynamodb.saved())


def _put_all(api: Api, target: str) -> None:
    api.put(NS)
    api.put(
        APP,
        {
            "datasets": {
                "flights": {
                    "bucket": "lake",
                    "prefix": "raw/flights/",
                    "keys": KEYS,
                    "ready": {"done_flag": "_SUCCESS"},
                },
                "weather": {"bucket": "lake", "prefix": "raw/weather/", "keys": KEYS},
            },
            "workflows": {
                "clean": {"target": {"type": "emr_serverless", "entry_point": "s3://code/clean.py"}},
                "notify": {"target": {"type": "sqs", "queue_url": target}},
            },
        },
    )


@pytest.fixture
def empty() -> Iterator[Api]:
    with installation() as api:
        yield api


@pytest.fixture
def api(empty: Api) -> Api:
    settle_in(empty)
    return empty


@pytest.fixture(scope="module")
def standing() -> Iterator[Api]:
    """For requests that must change nothing, so many tests share it. `nightly` is enabled; `chained` starts `clean`
    after `refine`.
    """
    emr = {"type": "emr_serverless", "entry_point": "s3://code/refine.py"}
    chain = {"workflow": "clean", "enabled": True, "trigger": {"type": "program_status", "workflow": "refine"}}
    with installation() as api:
        settle_in(api)
        api.put(f"{APP}/workflows/refine", {"target": emr})
        api.schedule("nightly", enabled=True)
        api.put(f"{APP}/schedules/chained", chain)
        yield api
