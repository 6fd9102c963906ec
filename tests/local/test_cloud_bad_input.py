# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""Bad input to the deployed service: refused by the API, or set aside without harm to other messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from infra.local.endpoints import Endpoints
from infra.local.rollout import STACK

# Imported, so that it replaces the fixture of this name in conftest.py, which is only an S3.
from tests.local.conftest import eventually
from tests.support.cloud import cloud  # noqa: F401 - a fixture

pytestmark = pytest.mark.cloud

DATASET = {"bucket": "lake", "keys": ["day"]}


class Caller:
    """Sends requests to the API through its gateway, in a namespace for the test."""

    def __init__(self, cloud: Endpoints) -> None:
        self.cloud = cloud
        self.namespace = f"bad-{uuid.uuid4().hex[:12]}"
        self.path = f"/v1/namespaces/{self.namespace}"

    def send(
        self, method: str, path: str = "", body: Any = None, secret: str | None = "", **headers: str
    ) -> tuple[int, Any]:
        """Status and JSON. ``secret`` is another secret key to sign with; None leaves the request unsigned."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        request = AWSRequest(method, self.cloud.api_url + self.path + path, data=data, headers=sent)
        if secret is not None:
            credentials = Credentials(self.cloud.access_key, secret or self.cloud.secret_key)
            SigV4Auth(credentials, "execute-api", self.cloud.region).add_auth(request)
        answer = URLLib3Session(timeout=35).send(request.prepare())
        return answer.status_code, json.loads(answer.content) if answer.content else None

    def refused(self, status: int, method: str, path: str = "", body: Any = None, **headers: str) -> dict[str, Any]:
        answered, answer = self.send(method, path, body, **headers)
        assert (answered, set(answer)) == (status, {"error"})
        assert set(answer["error"]) == {"code", "message", "field", "hint"}
        error: dict[str, Any] = answer["error"]
        return error

    def ready(self) -> set[str]:
        """The registered partitions of the dataset ``orders``."""
        items = self.send("GET", "/datasets/orders/partitions")[1]["items"]
        return {item["partition"]["day"] for item in items}


@pytest.fixture
def caller(cloud: Endpoints) -> Iterator[Caller]:
    made = Caller(cloud)
    assert made.send("PUT")[0] == 201
    yield made
    made.send("DELETE", "/datasets/orders")
    made.send("DELETE", "/apps/orders")
    assert made.send("DELETE")[0] == 204


# -- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", [None, "not-the-secret"], ids=["unsigned", "wrongly signed"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/datasets/orders", {**DATASET, "prefix": "x/"}),
        ("POST", "/datasets/orders/partitions", {}),
        ("DELETE", "", None),
    ],
)
def test_an_unsigned_bad_request_changes_nothing(
    caller: Caller, secret: str | None, method: str, path: str, body: Any
) -> None:
    assert caller.send(method, path, body, secret=secret)[0] == 403
    assert caller.send("GET", "/datasets") == (200, {"items": [], "next_cursor": None})


def test_a_wrong_signed_request_is_answered_with_the_expectation(caller: Caller) -> None:
    caller.send("PUT", "/apps/orders", {})
    path = "/apps/orders/schedules/daily"
    document = {"workflow": "ship", "trigger": {"type": "time", "expression": "0 0 30 2 *"}}

    error = caller.refused(400, "PUT", path, document)

    assert error == {
        "code": "invalid",
        "message": "expected a cron expression that some date matches, got '0 0 30 2 *'",
        "field": "trigger.expression",
        "hint": "no such date exists in any year; correct day of month or month",
    }
    caller.refused(404, "GET", path)


def test_a_wrong_body_is_refused_by_the_api_behind_the_gateway(caller: Caller) -> None:
    for raw, kind in [
        (b"not json", "text/plain"),
        (b"[]", "application/x-www-form-urlencoded"),
        (b"\xff", "image/png"),
    ]:
        assert caller.refused(400, "PUT", "", raw, content_type=kind)["field"] == "body"
    assert caller.refused(413, "PUT", "", b" " * 1_000_001)["code"] == "too_large"
    assert caller.refused(400, "PUT", "/datasets/Bad%20Name", DATASET)["field"] == "name"
    assert caller.refused(400, "GET", "/runs?limit=0")["field"] == "limit"
    assert caller.refused(400, "GET", "/runs?cursor=junk")["code"] == "bad_cursor"
    assert caller.refused(412, "PUT", "", {"owner": "ops"}, if_match='"7"')["code"] == "changed_meanwhile"
    assert caller.send("GET")[1]["version"] == 1


# -- messages --------------------------------------------------------------------------------------------------------


def notification(bucket: str, key: str) -> str:
    entity = {"bucket": {"name": bucket}, "object": {"key": key}}
    return json.dumps(
        {"Records": [{"eventName": "ObjectCreated:Put", "eventTime": "2026-03-02T12:00:00.000Z", "s3": entity}]}
    )


@pytest.fixture
def orders(caller: Caller) -> str:
    """The prefix of a dataset for the test."""
    prefix = f"{caller.namespace}/orders/"
    assert caller.send("PUT", "/datasets/orders", {**DATASET, "prefix": prefix})[0] == 201
    return prefix


@pytest.fixture
def queue(cloud: Endpoints, caller: Caller) -> Iterator[dict[str, str]]:
    """Another queue before the deployed Lambda ``objects``, mapped and redriven like its own, but with short delays: as
    deployed, a message is tried for eight hours.
    """
    sqs, lambdas = cloud.client("sqs"), cloud.client("lambda")
    deployed = cloud.client("cloudformation").describe_stack_resource(
        StackName=STACK, LogicalResourceId="ObjectsQueue"
    )["StackResourceDetail"]["PhysicalResourceId"]
    settings = sqs.get_queue_attributes(QueueUrl=deployed, AttributeNames=["All"])["Attributes"]
    [mapping] = lambdas.list_event_source_mappings(EventSourceArn=settings["QueueArn"])["EventSourceMappings"]

    def made(name: str, **attributes: str) -> tuple[str, str]:
        url = sqs.create_queue(QueueName=f"{caller.namespace}-{name}", Attributes=attributes)["QueueUrl"]
        return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]

    dead, dead_arn = made("dead")
    redrive = json.loads(settings["RedrivePolicy"]) | {"deadLetterTargetArn": dead_arn, "maxReceiveCount": "12"}
    url, arn = made("objects", VisibilityTimeout="1", RedrivePolicy=json.dumps(redrive))
    copied = {name: mapping[name] for name in ("BatchSize", "FunctionResponseTypes")}
    mapped = lambdas.create_event_source_mapping(EventSourceArn=arn, FunctionName=mapping["FunctionArn"], **copied)
    yield {"url": url, "dead": dead, "receives": str(redrive["maxReceiveCount"])}
    lambdas.delete_event_source_mapping(UUID=mapped["UUID"])
    for each in (url, dead):
        sqs.delete_queue(QueueUrl=each)


@pytest.mark.own_resources
def test_a_poison_message_is_removed_and_others_are_handled(
    cloud: Endpoints, caller: Caller, orders: str, queue: dict[str, str]
) -> None:
    sqs = cloud.client("sqs")
    lake = cloud.outputs["LakeBucket"]
    bodies = [
        notification(lake, f"{orders}day%3D1/x"),
        "poison",
        notification(lake, f"{orders}day%3D2%2B3/x"),
        '{"Records": 7}',
    ]
    entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]

    sqs.send_message_batch(QueueUrl=queue["url"], Entries=entries)

    eventually(lambda: caller.ready() == {"1", "2+3"}, 20)
    dead: dict[str, str] = {}

    def both_are_dead() -> bool:
        names = ["ApproximateReceiveCount"]
        found = sqs.receive_message(QueueUrl=queue["dead"], MaxNumberOfMessages=10, MessageSystemAttributeNames=names)
        dead.update({each["Body"]: each["Attributes"]["ApproximateReceiveCount"] for each in found.get("Messages", [])})
        return set(dead) == {"poison", '{"Records": 7}'}

    eventually(both_are_dead, 40)
    # The receive that reads the dead letters counts as well.
    assert all(int(count) > int(queue["receives"]) for count in dead.values())
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    left = sqs.get_queue_attributes(QueueUrl=queue["url"], AttributeNames=names)["Attributes"]
    assert set(left.values()) == {"0"}


@pytest.mark.own_resources
def test_the_deployed_lambda_names_exactly_the_failed_messages(cloud: Endpoints, caller: Caller, orders: str) -> None:
    right = notification(cloud.outputs["LakeBucket"], f"{orders}day%3D1/x")
    more = {
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:another",
        "receiptHandle": "no message of that queue",
        "attributes": {"ApproximateReceiveCount": "1"},
    }
    bodies = enumerate(["poison", right, "[]"])
    records = [{"messageId": f"m{number}", "body": body, **more} for number, body in bodies]
    answer = cloud.client("lambda").invoke(
        FunctionName=f"{STACK}-objects", Payload=json.dumps({"Records": records}).encode()
    )
    view = json.loads(answer["Payload"].read())
    assert view == {"batchItemFailures": [{"itemIdentifier": "m0"}, {"itemIdentifier": "m2"}]}
    assert caller.ready() == {"1"}
