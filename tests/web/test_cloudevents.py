"""CloudEvents over HTTP (E11): each mode is accepted, counts once, and reaches triggers and runs whole. The SDK of the
CloudEvents project makes most of them."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

from tests.web.conftest import APP, NS, Api
from tests.web.wrong import ONE

EVENTS = f"{NS}/events"
STRUCTURED, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ATTRIBUTES = {"id": "o-7", "source": "https://shop.example/orders?of=eu", "type": "orders.closed", "time": NOON}
PLAIN = {"specversion": "1.0", "id": "o-7", "source": "/orders", "type": "orders.closed"}
WAITING = {"type": "event", "event": "orders.closed", "count": 9}


def made(data: Any = None, **more: Any) -> CloudEvent:
    return CloudEvent(ATTRIBUTES | more, data)


def post(api: Api, message: HTTPMessage) -> dict[str, Any]:
    answer = api.send("POST", EVENTS, message.body, **message.headers)
    assert answer.status_code == 202, answer.body
    [accepted] = json.loads(answer.body)["accepted"]
    return dict(accepted)


def batch(api: Api, *events: Any) -> list[dict[str, Any]]:
    answer = api.post(EVENTS, json.dumps(events).encode(), content_type=BATCH)
    return list(answer["accepted"])


def counted(api: Api, name: str = "nightly") -> list[dict[str, int]]:
    return [job["progress"] for job in api.get(f"{APP}/schedules/{name}/jobs")["items"]]


@pytest.mark.parametrize("encode", [to_structured_event, to_binary_event])
def test_e11_a_run_has_the_whole_cloudevent(api: Api, encode: Any) -> None:
    pattern = {"data": {"region": [{"prefix": "eu-"}]}, "subject": ["order 7"], "traceparent": [{"exists": True}]}
    api.schedule("nightly", trigger=WAITING | {"count": 1, "pattern": pattern}, enabled=True)
    data = {"region": "eu-west", "lines": [1.5, None, True], "who": "Zoë €"}
    more = {"subject": "order 7", "datacontenttype": "application/json", "traceparent": '00-a "b" 100%'}

    accepted = post(api, encode(made(data, **more)))
    api.work()

    assert (accepted["id"], accepted["type"], accepted["source"]) == ("o-7", "orders.closed", ATTRIBUTES["source"])
    [run] = api.get(f"{ONE}/runs")["items"]
    [event] = api.get(f"/v1/runs/{run['run_id']}")["events"]
    assert event["payload"] == {
        "specversion": "1.0",
        **ATTRIBUTES,
        "time": "2026-11-20T12:00:00Z",
        **more,
        "data": data,
    }
    assert (event["id"], event["instant"]) == (accepted["event_id"], 1_795_176_000_000)


def test_e11_source_and_id_count_once_in_any_mode(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, enabled=True)
    first = post(api, to_structured_event(made({"n": 1})))
    before = api.everything()

    same = [post(api, to_binary_event(made({"n": 1}))), post(api, to_structured_event(made(type="orders.other")))]
    [again, twin] = batch(api, PLAIN | {"source": ATTRIBUTES["source"]}, PLAIN | {"source": ATTRIBUTES["source"]})
    assert {each["event_id"] for each in (*same, again, twin)} == {first["event_id"]}
    assert api.everything() == before

    others = batch(api, PLAIN, PLAIN | {"id": "o-8"})
    own = api.post(EVENTS, {"events": [{"type": "orders.closed", "id": "o-7"}]})["accepted"]
    assert len({each["event_id"] for each in (first, *others, *own)}) == 4
    assert counted(api) == [{"0": 4}]


def test_e11_a_batch_is_taken_in_order_and_may_be_empty(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, enabled=True)
    assert batch(api) == []
    sent = [PLAIN | {"id": f"o-{number}", "subject": None} for number in range(3)]
    assert [(each["id"], each["source"]) for each in batch(api, *sent)] == [(each["id"], "/orders") for each in sent]
    assert counted(api) == [{"0": 3}]


def test_e11_a_correlation_value_is_in_the_data_or_an_attribute(api: Api) -> None:
    api.schedule("nightly", trigger=WAITING, by=["day", "subject"], enabled=True)
    batch(
        api,
        PLAIN | {"subject": "paris", "data": {"day": "2026-11-20"}},
        PLAIN | {"id": "o-8", "subject": "oslo", "day": 5},
        PLAIN | {"id": "o-9", "subject": "oslo"},
    )
    jobs = api.get(f"{ONE}/jobs")["items"]
    values = [{"day": "2026-11-20", "subject": "paris"}, {"day": "5", "subject": "oslo"}]
    assert sorted((job["correlation"] for job in jobs), key=str) == values
    assert [record["kind"] for record in api.get(f"{ONE}/records")["items"]] == ["DROPPED"]


@pytest.mark.parametrize(
    ("content_type", "content", "data"),
    [
        ("application/vnd.shop+json; charset=utf-8", b'[1, "\xe2\x82\xac"]', {"data": [1, "€"]}),
        ("", b"7", {"data": 7}),
        ("text/csv", b"a,b\n1,2\n", {"data": "a,b\n1,2\n"}),
        ("application/xml", "<a>é</a>".encode(), {"data": "<a>é</a>"}),
        ("application/octet-stream", b"\xff\x00", {"data_base64": base64.b64encode(b"\xff\x00").decode()}),
        ("application/json", b"", {}),
    ],
)
def test_e11_binary_mode_takes_data_of_many_types(api: Api, content_type: str, content: bytes, data: Any) -> None:
    api.schedule("nightly", trigger=WAITING | {"count": 1}, enabled=True)
    headers = {f"Ce-{name.title()}": value for name, value in PLAIN.items()} | {"ce-what": "Euro%20%E2%82%AC"}
    post(api, HTTPMessage(headers | ({"Content-Type": content_type} if content_type else {}), content))
    api.work()
    [run] = api.get(f"{ONE}/runs")["items"]
    [event] = api.get(f"/v1/runs/{run['run_id']}")["events"]
    named = {"datacontenttype": content_type} if content_type else {}
    assert event["payload"] == PLAIN | {"what": "Euro €"} | named | data
