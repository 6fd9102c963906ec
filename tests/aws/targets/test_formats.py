"""Deliveries as CloudEvents (E11), read by the SDK of the CloudEvents project as a receiver would."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from moto import mock_aws

from chalicelib.aws.targets import formats
from chalicelib.aws.targets.event_bus import EventBusTarget
from chalicelib.aws.targets.http import HttpTarget
from chalicelib.aws.targets.lambda_function import LambdaTarget
from chalicelib.aws.targets.safe_http import SafeHttp
from chalicelib.aws.targets.secrets import Secrets
from chalicelib.aws.targets.sns import SnsTarget
from chalicelib.aws.targets.sqs import SqsTarget
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Started
from chalicelib.core.targets.registry import of_type
from tests.aws.targets.test_callbacks import Server
from tests.support.clock import NOON
from tests.support.deliveries import CONTEXT, Queue, attributes, run
from tests.support.http_server import served

ID = "demo.flights.notify.1.e1"
NOMINAL = datetime(2026, 3, 2, 12, tzinfo=UTC)
FORMAT = {"format": "cloudevents"}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    with served(made):
        yield made


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {"DEFAULT_REGION": "us-east-1", "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with mock_aws():
        yield


def checked(event: BaseCloudEvent, data: Any = CONTEXT, **more: Any) -> None:
    """Fail unless an event has the attributes of the run, these further ones, and the data."""
    assert event.get_data() == data
    assert {name: value for name, value in event.get_attributes().items() if value is not None} == {
        "specversion": "1.0",
        "id": ID,
        "source": "/v1/namespaces/demo/apps/flights",
        "type": "sluice.delivery",
        "subject": "demo.flights.clean",
        "time": NOMINAL,
        "datacontenttype": "application/json",
        "sluicedue": "2026-03-02T12:00:00.250Z",
        "sluiceattempt": 1,
        **more,
    }


def read(document: str | bytes) -> CloudEvent:
    event = JSONFormat().read(CloudEvent, document)
    assert isinstance(event, CloudEvent)
    return event


def called(server: Server, given: Run) -> BaseCloudEvent:
    """The event that a server receives from an HTTP call."""
    target = HttpTarget(SafeHttp(allow_private=True), Secrets(lambda: None, lambda: None, lambda: NOON), lambda: NOON)
    assert isinstance(target.start(given, CONTEXT), Started)
    _, _, headers, body = server.seen[-1]
    assert headers["Sluice-Event-Id"] == ID
    kept = {name.lower(): value for name, value in headers.items() if name.lower().startswith(("ce-", "content-type"))}
    return from_http_event(HTTPMessage(kept, body))


def http(server: Server, data: Mapping[str, Any] | None = None, **more: Any) -> Run:
    url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    fields = {"url": url, "method": "POST", "headers": {}, "timeout": "10s", "secret": None} | more
    return run(1, data, type="http", **fields)


DATA: list[tuple[Mapping[str, Any], Any]] = [
    ({"content_type": "application/json", "text": '{"a": [1, "€"]}'}, {"a": [1, "€"]}),
    ({"content_type": "text/plain; charset=utf-8", "text": "grüße"}, "grüße"),
    ({"content_type": "application/octet-stream", "base64": base64.b64encode(b"\xff\x00").decode()}, b"\xff\x00"),
]


@pytest.mark.parametrize(("data", "content"), DATA)
@pytest.mark.parametrize("form", ["cloudevents", "cloudevents-binary"])
def test_e11_an_http_call_is_a_cloudevent(server: Server, form: str, data: Mapping[str, Any], content: Any) -> None:
    event = called(server, http(server, data, format=form))
    attempt = "1" if form == formats.BINARY else 1  # a header is text
    checked(event, content, datacontenttype=data["content_type"], sluiceattempt=attempt)


def test_e11_headers_of_a_cloudevent_are_percent_encoded(server: Server) -> None:
    given = http(server, format="cloudevents-binary", event_type="shop.due")
    uri = "s3://control/data/50%/a b/é"
    event = called(
        server, replace(given, request=replace(given.request, data={"content_type": "text/csv", "uri": uri}))
    )
    headers = server.seen[-1][2]
    assert headers["ce-dataref"] == "s3://control/data/50%25/a%2520b/%25C3%25A9"
    assert headers["Content-Type"] == "text/csv"
    more = {"dataref": "s3://control/data/50%/a%20b/%C3%A9", "sluiceattempt": "1", "type": "shop.due"}
    checked(event, None if event.get_data() is None else "", datacontenttype="text/csv", **more)


def test_e11_a_repeat_and_a_redrive_have_the_same_identity(server: Server) -> None:
    first = called(server, http(server, **FORMAT))
    assert called(server, http(server, **FORMAT)).get_attributes() == first.get_attributes()
    again = called(server, replace(http(server, **FORMAT), attempt=2, due_at=NOON + 9_000))
    checked(again, sluiceattempt=2, sluicedue="2026-03-02T12:00:09.000Z")


@pytest.mark.usefixtures("aws")
def test_e11_queues_and_topics_get_cloudevents() -> None:
    queue, sns = Queue(), boto3.client("sns")
    topic = sns.create_topic(Name="orders")["TopicArn"]
    raw = {"RawMessageDelivery": "true"}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn, Attributes=raw)
    SqsTarget(queue.client).start(run(type="sqs", queue_url=queue.url, **FORMAT), CONTEXT)
    SnsTarget(sns).start(run(type="sns", topic_arn=topic, subject=None, **FORMAT), CONTEXT)

    messages = queue.messages()
    assert len(messages) == 2
    for message in messages:
        checked(read(message["Body"]))
        named = attributes(message)
        assert named["sluice-content-type"] == "application/cloudevents+json"
        assert (named["ce-type"], named["ce-source"]) == ("sluice.delivery", "/v1/namespaces/demo/apps/flights")
        assert (named["ce-subject"], named["sluice-event-id"]) == ("demo.flights.clean", ID)
        assert len(named) <= 10  # SQS takes no more


@pytest.mark.usefixtures("aws")
def test_e11_a_bus_and_a_function_get_cloudevents() -> None:
    queue, events = Queue(), boto3.client("events")
    events.create_event_bus(Name="orders")
    pattern = json.dumps({"detail": {"type": ["shop.due"], "source": [{"prefix": "/v1/namespaces/demo/"}]}})
    events.put_rule(Name="all", EventBusName="orders", EventPattern=pattern)
    events.put_targets(Rule="all", EventBusName="orders", Targets=[{"Id": "q", "Arn": queue.arn}])
    bus = {
        "type": "event_bus",
        "bus": "orders",
        "source": "team.orders",
        "detail_type": "Due",
        "event_type": "shop.due",
    }
    assert isinstance(EventBusTarget(events).start(run(**bus, **FORMAT), CONTEXT), Started)
    [message] = queue.messages()
    checked(read(json.dumps(json.loads(message["Body"])["detail"])), type="shop.due")

    class Functions:
        payload = b""

        def invoke(self, **call: Any) -> Any:
            self.payload = call["Payload"]
            return {"ResponseMetadata": {}}

    functions = Functions()
    LambdaTarget(functions).start(run(type="lambda", function="f", wait=False, **FORMAT), CONTEXT)
    checked(read(functions.payload))


def test_e11_text_that_is_not_its_json_type_stays_as_it_is() -> None:
    broken = {"content_type": "application/json", "text": "{no json"}
    event = formats.document(run(1, broken, type="lambda", **FORMAT), CONTEXT)
    assert (event["data_base64"], event["datacontenttype"]) == (
        base64.b64encode(b"{no json").decode(),
        "application/json",
    )
    assert "data" not in event


def test_e11_a_notice_has_a_type_of_its_own() -> None:
    given = run(1, {"content_type": "application/json", "text": "{}"}, type="lambda", **FORMAT)
    notice = replace(given, schedule="demo.flights.~notice-0a1b2c")
    assert formats.document(notice, {})["type"] == "sluice.notice"
    assert formats.document(replace(given, schedule="demo.flights.~notices"), {})["type"] == "sluice.delivery"


URL = "https://hooks.example.com/a"
WRONG = [
    ({"type": "http", "url": URL, "method": "GET", "format": "cloudevents"}, "POST, PUT or PATCH"),
    ({"type": "http", "url": URL, "headers": {"Ce-Id": "1"}, "format": "cloudevents-binary"}, "do not begin with ce-"),
    ({"type": "lambda", "function": "arn:aws:lambda:us-east-1:123456789012:function:f", "event_type": "a"}, "format"),
    ({"type": "sqs", "queue_url": "https://q", "format": "cloudevents-binary"}, "Input should be 'cloudevents'"),
    ({"type": "sqs", "queue_url": "https://q", "format": "cloudevents", "event_type": "Größe"}, "pattern"),
]


@pytest.mark.parametrize(("document", "expected"), WRONG)
def test_e11_a_format_that_a_target_cannot_send_is_refused(document: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        of_type(document["type"]).model_validate(document)


def test_e11_a_target_without_a_format_is_stored_as_before() -> None:
    target = of_type("sqs").model_validate({"type": "sqs", "queue_url": "https://q"})
    assert target.model_dump(mode="json") == {"type": "sqs", "queue_url": "https://q", "group": None}
