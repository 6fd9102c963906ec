"""Custom events from the event bus, as EventBridge sends them to the queue of the Lambda `custom` (T11)."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib import handlers
from chalicelib.aws.tables import items
from chalicelib.core.errors import SluiceError
from tests.web.conftest import NS, Api
from tests.web.outage import tables_down
from tests.web.wrong import ONE

WAITING = {"type": "event", "event": "orders.closed", "count": 2}


def reported(event_id: str = "6a7e8feb-b491-4cf7-a9f1-bf3703467718", **changed: Any) -> dict[str, Any]:
    """An event of EventBridge. https://docs.aws.amazon.com/eventbridge/latest/ref/events-structure.html"""
    event = {
        "version": "0",
        "id": event_id,
        "detail-type": "orders.closed",
        "source": "sluice/demo",
        "account": "123456789012",
        "time": "2026-11-20T12:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail": {"order": 7},
    }
    return event | {name.replace("_", "-"): value for name, value in changed.items()}


def post(event: dict[str, Any]) -> Any:
    """The id of a custom event that is posted. Raises what its handler meets."""
    return handlers._read_of_bus(event)()


def test_t11_a_bus_event_advances_the_triggers_of_its_namespace(api: Api) -> None:
    api.put("/v1/namespaces/other")
    api.schedule("nightly", trigger=WAITING | {"count": 1}, enabled=True)
    post(reported("e1", source="sluice/other"))
    post(reported("e2", detail_type="orders.opened"))
    api.work()
    assert api.get(f"{ONE}/runs")["items"] == []

    event_id = post(reported("e3"))
    api.work()

    [run] = api.get(f"{ONE}/runs")["items"]
    [event] = api.get(f"/v1/runs/{run['run_id']}")["events"]
    assert (event["id"], event["type"], event["payload"]) == (event_id, "orders.closed", {"order": 7})
    assert event["instant"] == 1_795_176_000_000  # its time, 2026-11-20T12:00:00Z


def test_t16_an_event_delivered_again_counts_once(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, enabled=True)
    first = post(reported("e1"))
    before = api.everything()
    assert post(reported("e1")) == first
    assert api.everything() == before
    [job] = api.get(f"{ONE}/jobs")["items"]
    assert job["progress"] == {"0": 1}

    assert post(reported("e2")) != first
    [job] = api.get(f"{ONE}/jobs")["items"]
    assert job["progress"] == {"0": 2}


def test_t11_the_bus_and_the_api_reach_the_same_schedules(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, enabled=True)
    post(reported("e1"))
    posted = {"events": [{"type": "orders.closed", "id": "e1", "payload": {"order": 7}}]}
    [accepted] = api.post(f"{NS}/events", posted)["accepted"]
    # Under one id they are one event, so an event that is sent both ways counts once.
    assert accepted["event_id"] == post(reported("e1"))
    [job] = api.get(f"{ONE}/jobs")["items"]
    assert job["progress"] == {"0": 1}


def received(api: Api, *bodies: str) -> list[str]:
    """Deliver messages to the Lambda. Returns the ids of those that come again."""
    dead = api.sqs.create_queue(QueueName="custom-dead")["QueueUrl"]
    arn = api.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "85"})}
    api.sqs.create_queue(QueueName="custom", Attributes=redrive)
    about = {"receiptHandle": "r", "attributes": {"ApproximateReceiveCount": "1"}, "messageAttributes": {}}
    about |= {"eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:custom", "eventSource": "aws:sqs"}
    records = [{"messageId": f"m{number}", "body": body, **about} for number, body in enumerate(bodies)]
    answer = api.client.lambda_.invoke("custom", {"Records": records}).payload
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def set_aside(api: Api) -> list[str]:
    url = api.sqs.get_queue_url(QueueName="custom-dead")["QueueUrl"]
    return [each["Body"] for each in api.messages(url)]


def test_t11_queue_events_are_accepted_and_bad_ones_removed(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, enabled=True)
    nowhere = json.dumps(reported("e2", source="sluice/nowhere"))
    assert received(api, json.dumps(reported("e1")), nowhere, "no event", json.dumps(reported("e3", time="noon"))) == []
    [job] = api.get(f"{ONE}/jobs")["items"]
    assert job["progress"] == {"0": 1}
    assert set(set_aside(api)) == {nowhere, "no event", json.dumps(reported("e3", time="noon"))}


@pytest.mark.parametrize(
    "body", ["[" * 100_000, json.dumps(reported(source=None)), json.dumps(reported(source=7)), "7"]
)
def test_t11_a_body_that_is_no_event_is_set_aside_at_once(api: Api, body: str) -> None:
    """Without that, SQS would deliver it again for eight hours."""
    assert received(api, body) == []
    assert set_aside(api) == [body]


def test_t11_an_event_during_a_table_outage_comes_again(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, enabled=True)
    body = json.dumps(reported("e1"))
    with tables_down():
        assert received(api, body) == ["m0"]
    assert set_aside(api) == []
    assert received(api, body) == []
    [job] = api.get(f"{ONE}/jobs")["items"]
    assert job["progress"] == {"0": 1}


def test_t11_an_event_at_a_row_of_a_newer_layout_comes_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """While Lambdas are being replaced, older code meets rows that only newer code can read."""
    api.schedule("nightly", trigger=WAITING, enabled=True)
    body = json.dumps(reported("e1"))
    with monkeypatch.context() as older:
        older.setattr(items, "OF_BUNDLES", items.FORMAT - 1)  # the highest layout that it reads
        assert received(api, body) == ["m0"]
    assert set_aside(api) == []
    assert received(api, body) == []


WRONG = {
    "an unknown namespace": (reported(source="sluice/nowhere"), SluiceError, "no namespace named 'nowhere'"),
    "what is below a namespace": (
        reported(source="sluice/demo/flights"),
        SluiceError,
        "no namespace named 'demo/flights'",
    ),
    "a type that cannot be waited for": (reported(detail_type="Order Closed"), ValidationError, "type"),
    "no type": (reported(detail_type=""), ValidationError, "type"),
    "a payload that is too large": (
        reported(detail={"x": "x" * 10_000}),
        ValidationError,
        "expected a payload of at most 10000 bytes, got 10009",
    ),
    "a detail that is no object": (reported(detail=[7]), ValidationError, "payload"),
    "a time that is none": (reported(time="noon"), ValidationError, "timestamp"),
}


@pytest.mark.parametrize(("event", "kind", "message"), WRONG.values(), ids=WRONG)
def test_t11_an_unacceptable_event_is_error_so_that_it_is_kept(
    standing: Api, event: dict[str, Any], kind: type[Exception], message: str
) -> None:
    """The queue keeps the message as a dead letter."""
    before = standing.everything()
    with pytest.raises(kind, match=message):
        post(event)
    assert standing.everything() == before


@pytest.mark.parametrize("missing", ["source", "detail-type", "detail", "time", "id"])
def test_t11_an_incomplete_event_is_an_error_too(standing: Api, missing: str) -> None:
    before = standing.everything()
    with pytest.raises(KeyError, match=missing):
        post({name: value for name, value in reported().items() if name != missing})
    assert standing.everything() == before
