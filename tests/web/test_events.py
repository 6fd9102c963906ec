"""Custom events over HTTP: accepted once under the id of their producer, and applied to the schedules that wait for
them (T11).
"""

from typing import Any

import pytest

from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, Api
from tests.web.signed import Signer, role
from tests.web.wrong import ONE, refused, schedule

EVENTS = f"{NS}/events"
CLOSED = {"type": "orders.closed"}


def waiting(**more: Any) -> dict[str, Any]:
    return {"type": "event", "event": "orders.closed", **more}


def post(api: Api, *events: Any, **headers: str) -> list[dict[str, Any]]:
    answer = api.send("POST", EVENTS, {"events": list(events)}, **headers)
    assert answer.status_code == 202, answer.body
    assert set(answer.json_body) == {"accepted"}
    accepted: list[dict[str, Any]] = answer.json_body["accepted"]
    assert all(set(each) == {"id", "type", "event_id"} for each in accepted)
    return accepted


def progress(api: Api) -> list[dict[str, int]]:
    """The progress of the schedule's jobs, by leaf."""
    return [job["progress"] for job in api.get(f"{ONE}/jobs")["items"]]


def test_t11_an_event_starts_waiting_schedule_and_its_run_has_it(api: Api) -> None:
    api.schedule("nightly", trigger=waiting(), enabled=True)
    payload = {"order": 7, "lines": [1.5, None, True], "who": "Zoë"}
    event = CLOSED | {"id": "o-7", "payload": payload, "timestamp": "2026-11-20T13:00:00+01:00"}

    [accepted] = post(api, event)
    api.work()

    assert (accepted["id"], accepted["type"]) == ("o-7", "orders.closed")
    [run] = api.get(f"{ONE}/runs")["items"]
    [answer] = api.get(f"/v1/runs/{run['run_id']}")["events"]
    assert answer == {
        "kind": "event",
        "id": accepted["event_id"],
        "type": "orders.closed",
        "payload": payload,
        "instant": 1_795_176_000_000,  # 2026-11-20T12:00:00Z
    }


def test_t11_an_event_reaches_exactly_the_waiting_schedules(api: Api) -> None:
    api.put("/v1/namespaces/other")
    triggers = {
        "all": waiting(count=9),
        "west": waiting(count=9, pattern={"region": [{"prefix": "us-west"}]}),
        "theirs": waiting(count=9, namespace="other"),
        "opened": {"type": "event", "event": "orders.opened", "count": 9},
    }
    for name, trigger in triggers.items():
        api.schedule(name, trigger=trigger, enabled=True)
    regions = [CLOSED | {"payload": {"region": region}} for region in ("us-west-1", "us-west-2", "eu-west-1")]
    post(api, *regions)
    api.post("/v1/namespaces/other/events", {"events": [CLOSED]})

    gathered = {
        name: [job["progress"]["0"] for job in api.get(f"{APP}/schedules/{name}/jobs")["items"]] for name in triggers
    }
    assert gathered == {"all": [3], "west": [2], "theirs": [1], "opened": []}


def test_t11_the_same_id_is_the_same_event_however_often_posted(api: Api) -> None:
    api.schedule("nightly", trigger=waiting(count=9), enabled=True)
    mine = CLOSED | {"id": "o-7"}
    first = post(api, mine)
    before = api.everything()
    assert post(api, mine) == first
    assert post(api, mine, mine) == first * 2
    assert api.everything() == before
    assert progress(api) == [{"0": 1}]

    # An id belongs to its type: with another type it is another event.
    [opened] = post(api, {"type": "orders.opened", "id": "o-7"})
    assert opened["event_id"] != first[0]["event_id"]


def test_t11_without_an_id_each_event_is_distinct(api: Api) -> None:
    api.schedule("nightly", trigger=waiting(count=9), enabled=True)
    accepted = post(api, CLOSED, CLOSED) + post(api, CLOSED)
    assert len({each["id"] for each in accepted}) == len({each["event_id"] for each in accepted}) == 3
    assert progress(api) == [{"0": 3}]

    again = post(api, CLOSED | {"id": accepted[0]["id"]})
    assert again == accepted[:1]
    assert progress(api) == [{"0": 3}]


def test_t11_a_request_repeated_under_one_key_posts_once(api: Api) -> None:
    api.schedule("nightly", trigger=waiting(count=9), enabled=True)
    first = post(api, CLOSED, CLOSED, idempotency_key="once")
    assert post(api, CLOSED, CLOSED, idempotency_key="once") == first
    assert progress(api) == [{"0": 2}]
    post(api, CLOSED, CLOSED, idempotency_key="twice")
    assert progress(api) == [{"0": 4}]


def test_l3_an_event_counts_from_the_enabling(api: Api) -> None:
    api.schedule("nightly", trigger=waiting(count=9))
    post(api, CLOSED | {"id": "early"})
    api.post(f"{ONE}/enable")
    post(api, CLOSED | {"id": "early"}, CLOSED | {"id": "late"})
    assert progress(api) == [{"0": 1}]


def test_t11_a_request_has_up_to_a_hundred_events_of_10_kb(api: Api) -> None:
    api.schedule("nightly", trigger=waiting(count=1_000), enabled=True)
    large = CLOSED | {"payload": {"x": "x" * (10_000 - len('{"x": ""}'))}}
    accepted = post(api, *[large] * 98, CLOSED | {"id": "x" * 200}, {"type": "A" * 128})
    assert len({each["event_id"] for each in accepted}) == 100
    assert progress(api) == [{"0": 99}]


def test_t11_a_schedule_that_cannot_take_event_fails_no_request(api: Api) -> None:
    """The event is stored. A producer that gave no id and got an error would post a second event."""
    for name in ("broken", "nightly"):
        api.schedule(name, trigger=waiting(count=9), enabled=True)
    key = {"pk": {"S": "SCHEDULE#demo.flights.broken"}, "sk": {"S": "VERSION#0000000001"}}
    table = api.names["catalog_table"]
    item = api.dynamodb.get_item(TableName=table, Key=key)["Item"]
    api.dynamodb.put_item(TableName=table, Item=item | {"definition": {"S": "{}"}})
    ports.cache_clear()  # versions never change, so they are cached
    post(api, CLOSED)
    assert progress(api) == [{"0": 1}]


# -- what is refused -------------------------------------------------------------------------------------------------

TYPE = "expected text that matches ^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$, got "
INSTANT = "expected an RFC 3339 instant such as 2026-11-20T12:00:00Z, got "
AGE = "expected an instant from the year 1970 to 9998, got "


@pytest.mark.parametrize(
    ("event", "code", "field", "message"),
    [
        (7, "invalid", "", "expected an object, got 7"),
        ("orders.closed", "invalid", "", "expected an object, got 'orders.closed'"),
        ({}, "invalid", ".type", "expected a value, got nothing"),
        ({"type": 7}, "invalid", ".type", "expected text, got 7"),
        ({"type": ""}, "invalid", ".type", TYPE + "''"),
        ({"type": "orders closed"}, "invalid", ".type", TYPE + "'orders closed'"),
        ({"type": ".closed"}, "invalid", ".type", TYPE + "'.closed'"),
        ({"type": "closed\n"}, "invalid", ".type", TYPE + "'closed\\n'"),
        ({"type": "ünder"}, "invalid", ".type", TYPE + "'ünder'"),
        ({"type": "a" * 129}, "invalid", ".type", TYPE),
        (CLOSED | {"id": ""}, "invalid", ".id", "expected at least 1 character"),
        (CLOSED | {"id": "x" * 201}, "invalid", ".id", "expected at most 200 characters, got 'xxx"),
        (CLOSED | {"id": 7}, "invalid", ".id", "expected text, got 7"),
        (CLOSED | {"timestamp": "noon"}, "invalid", ".timestamp", INSTANT + "'noon'"),
        (CLOSED | {"timestamp": "2026-11-20T12:00:00"}, "invalid", ".timestamp", INSTANT + "'2026-11-20T12:00:00'"),
        (CLOSED | {"timestamp": 1_795_000_000}, "invalid", ".timestamp", "expected text, got 1795000000"),
        (CLOSED | {"timestamp": "9999-12-31T23:59:59-23:59"}, "invalid", ".timestamp", AGE),
        (CLOSED | {"timestamp": "0001-01-01T00:00:00+23:59"}, "invalid", ".timestamp", AGE),
        (CLOSED | {"payload": [1]}, "invalid", ".payload", "expected an object, got [1]"),
        (CLOSED | {"payload": "x"}, "invalid", ".payload", "expected an object, got 'x'"),
        (CLOSED | {"payload": None}, "invalid", ".payload", "expected an object, got None"),
        (CLOSED | {"paylaod": {}}, "unknown_field", ".paylaod", "unknown field 'paylaod'"),
    ],
)
def test_t11_a_wrong_event_is_named_by_number_and_none_is_stored(
    standing: Api, event: Any, code: str, field: str, message: str
) -> None:
    error = refused(standing, 400, "POST", EVENTS, {"events": [CLOSED, event]})
    assert (error["code"], error["field"]) == (code, f"events.1{field}")
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("body", "code", "field", "message"),
    [
        (None, "invalid", "events", "expected a value, got nothing"),
        ({"events": []}, "invalid", "events", "expected at least 1 item, got []"),
        ({"events": CLOSED}, "invalid", "events", "expected a list, got {"),
        ({"events": [CLOSED] * 101}, "invalid", "events", "expected at most 100 items, got ["),
        (CLOSED, "unknown_field", "type", "unknown field 'type' (and 1 more)"),
        ({"events": [CLOSED], "source": "x"}, "unknown_field", "source", "unknown field 'source'"),
        (b'[{"type": "orders.closed"}]', "invalid", "body", "expected a JSON object, got ["),
        (b'{"events": [{"type": "a", "type": "b"}]}', "bad_json", "body", "expected each key of an object once, "),
        (b'{"events": [{"type": "a", "payload": {"n": NaN}}]}', "bad_json", "body", "expected numbers that JSON "),
    ],
)
def test_t11_a_wrong_request_stores_nothing(standing: Api, body: Any, code: str, field: str, message: str) -> None:
    error = refused(standing, 400, "POST", EVENTS, body)
    assert (error["code"], error["field"]) == (code, field)
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("events", "field", "message"),
    [
        ([CLOSED, CLOSED | {"payload": {"x": "x" * 9_992}}], "events.1.payload",
         "expected a payload of at most 10000 bytes, got 10001"),
        ([CLOSED, CLOSED | {"payload": {"x": "é" * 2_000}}], "events.1.payload",
         "expected a payload of at most 10000 bytes, got 12009"),
        ([CLOSED, CLOSED | {"payload": {"x": "x" * 100_000}}], "events.1",
         "expected a document of at most 100000 bytes, got "),
        ([CLOSED | {"payload": {"x": "x" * 9_900}}] * 101, "body", "expected a body of at most 1000000 bytes, got "),
    ],
)  # fmt: skip
def test_t11_a_payload_that_is_too_large_must_go_by_reference(
    standing: Api, events: Any, field: str, message: str
) -> None:
    error = refused(standing, 413, "POST", EVENTS, {"events": events})
    assert (error["code"], error["field"]) == ("too_large", field)
    assert error["message"].startswith(message)
    assert error["hint"].startswith("put large data into S3 and pass a reference")


def test_t11_events_are_posted_to_an_existing_namespace_only(standing: Api) -> None:
    error = refused(standing, 404, "POST", "/v1/namespaces/nowhere/events", {"events": [CLOSED]})
    assert (error["code"], error["message"]) == ("not_found", "no namespace named 'nowhere'")
    assert error["hint"] == "create the namespace first"
    assert refused(standing, 400, "POST", "/v1/namespaces/No/events", {"events": [CLOSED]})["field"] == "namespace"
    assert refused(standing, 400, "POST", EVENTS, {"events": [CLOSED]}, if_match='"1"')["field"] == "If-Match"


def test_t11_a_trigger_waits_only_for_types_that_can_be_posted(standing: Api) -> None:
    for kind in ("orders closed", "", ".closed", "a" * 129):
        error = refused(standing, 400, "PUT", ONE, schedule(trigger={"type": "event", "event": kind}))
        assert error["field"] == "trigger.event"


@pytest.mark.parametrize("key", ["k" * 8_192, "k" * 201, "a\x00b", "a\x1b[2J", "a\tb", "schlüssel", "a\x9bb"])
def test_o14_a_long_or_unprintable_key_is_refused(standing: Api, key: str) -> None:
    before = standing.all_but_audit()
    error = Signer(role("ada")).error("POST", f"{NS}/events", {"events": [CLOSED]}, Idempotency_Key=key)
    assert (error["code"], error["field"]) == ("invalid", "Idempotency-Key")
    assert error["message"].startswith("expected at most 200 visible ASCII characters, got ")
    assert standing.all_but_audit() == before
