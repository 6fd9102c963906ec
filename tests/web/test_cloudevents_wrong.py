"""CloudEvents that are wrong are refused, with what to do, and store nothing (E11)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.web import cloudevents
from tests.web.conftest import Api, installation, settle_in
from tests.web.test_cloudevents import BATCH, EVENTS, PLAIN, STRUCTURED
from tests.web.wrong import refused


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        yield made


WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    ({"id": None}, "id", "expected a value, got nothing", "add the field"),
    ({"id": ""}, "id", "at least 1 character", "lengthen it"),
    ({"specversion": "0.3"}, "specversion", "expected the specversion '1.0', got '0.3'", "CloudEvents 1.0"),
    ({"source": "a b"}, "source", "expected a URI reference (RFC 3986), got 'a b'", "percent-encode"),
    ({"source": "/a%2"}, "source", "expected a URI reference", "percent-encode"),
    ({"type": "Größe"}, "type", "expected text that matches", ""),
    ({"time": "2026-11-20 12:00"}, "time", "expected an RFC 3339 instant", "2026-11-20T12:00:00Z"),
    ({"time": "2026-11-31T12:00:00Z"}, "time", "expected an RFC 3339 instant", ""),
    ({"dataschema": "order.json"}, "dataschema", "expected an absolute URI", "https://"),
    ({"datacontenttype": "json"}, "datacontenttype", "expected a media type", "application/json"),
    ({"subject": "a\u0007"}, "subject", "expected text without control characters", "remove"),
    ({"order_id": 7}, "order_id", "1 to 20 lower-case letters and digits", "data"),
    ({"a" * 21: 7}, "a" * 21, "1 to 20 lower-case letters and digits", "data"),
    ({"orders": {"a": 1}}, "orders", "expected text, true or false, or a whole number", "data"),
    ({"orders": 2**31}, "orders", "a whole number of 32 bits", "text"),
    ({"data_base64": "??"}, "data_base64", "expected base64", "data"),
    ({"data": 1, "data_base64": "AA=="}, "data", "either data or data_base64", "remove one"),
]


@pytest.mark.parametrize(("changed", "field", "message", "hint"), WRONG)
def test_e11_a_wrong_cloudevent_is_refused(
    api: Api, changed: dict[str, Any], field: str, message: str, hint: str
) -> None:
    body = json.dumps(PLAIN | changed).encode()
    error = refused(api, 400, "POST", EVENTS, body, content_type=STRUCTURED)
    assert error["field"] == field
    assert message in error["message"]
    assert hint in (error["hint"] or "")


def test_e11_one_wrong_event_refuses_its_batch_by_number(api: Api) -> None:
    sent = [PLAIN, PLAIN | {"id": None}, "no event", PLAIN | {"specversion": "0.3"}]
    before = api.everything()
    answer = json.loads(api.send("POST", EVENTS, json.dumps(sent).encode(), content_type=BATCH).body)["error"]
    assert [each["field"] for each in answer["problems"]] == ["1.id", "2", "3.specversion"]
    assert all(each["hint"].endswith("no event of the batch was stored") for each in answer["problems"])
    assert answer["field"] == "1.id"
    assert api.everything() == before
    many = json.dumps([PLAIN] * 101).encode()
    error = refused(api, 400, "POST", EVENTS, many, content_type=BATCH)
    assert error["message"] == "expected at most 100 CloudEvents in a batch, got '101'"


@pytest.mark.parametrize(
    ("content_type", "body", "status", "code", "field"),
    [
        (STRUCTURED, b"{no json", 400, "bad_json", "body"),
        (STRUCTURED, b"[]", 400, "invalid", "body"),
        (BATCH, b"{}", 400, "invalid", "body"),
        (BATCH, b"", 400, "bad_json", "body"),
        ("application/cloudevents+avro", b"x", 400, "invalid", "Content-Type"),
        (STRUCTURED, json.dumps(PLAIN | {"data": "x" * 1_000_000}).encode(), 413, "too_large", "body"),
        (STRUCTURED, json.dumps(PLAIN | {"data": "x" * 99_000}).encode(), 413, "too_large", None),
        (BATCH, json.dumps([PLAIN | {"data": "x" * 10_000}]).encode(), 413, "too_large", "0"),
    ],
)
def test_e11_a_body_that_is_no_cloudevent_is_refused(
    api: Api, content_type: str, body: bytes, status: int, code: str, field: str | None
) -> None:
    error = refused(api, status, "POST", EVENTS, body, content_type=content_type)
    assert (error["code"], error["field"]) == (code, field)
    assert error["hint"]


@pytest.mark.parametrize(
    ("headers", "body", "field", "hint"),
    [
        ({"ce-id": ""}, b"{}", "ce-id", "lengthen it"),
        ({"ce-specversion": "0.3"}, b"{}", "ce-specversion", "CloudEvents 1.0"),
        ({"ce-order-id": "7"}, b"{}", "ce-order-id", "rename"),
        ({"ce-subject": "%FF"}, b"{}", "ce-subject", "percent-encode"),
        ({"ce-data": "7"}, b"{}", "ce-data", "the data is the body"),
        ({"ce-dataschema": "a"}, b"{}", "ce-dataschema", "https://"),
        ({"Content-Type": "application/json"}, b"a,b", "body", "send JSON"),
        ({"Content-Type": "application/x-protobuf"}, b"a", "Content-Type", "application/octet-stream"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"{}", "Content-Type", "curl"),
        ({"Content-Type": "text/plain; charset=latin1"}, b"a", "Content-Type", "application/octet-stream"),
        ({"Content-Type": "json"}, b"", "Content-Type", "application/json"),
    ],
)
def test_e11_wrong_headers_of_binary_mode_are_refused(
    api: Api, headers: dict[str, str], body: bytes, field: str, hint: str
) -> None:
    sent = {f"ce-{name}": value for name, value in PLAIN.items()} | headers
    error = refused(api, 400, "POST", EVENTS, body, **sent)
    assert error["field"] == field
    assert hint in error["hint"]


@pytest.mark.parametrize("body", [b"", b"{}"])
def test_e11_no_header_holds_the_data_in_base64(body: bytes) -> None:
    headers = {f"ce-{name}": value for name, value in PLAIN.items()} | {"ce-data_base64": "e30="}
    with pytest.raises(SluiceError, match="expected a header for each attribute") as caught:
        cloudevents._binary(headers, "", body)
    assert caught.value.field == "ce-data_base64"


def test_e11_a_cloudevent_sent_as_plain_json_says_its_type(api: Api) -> None:
    error = refused(api, 400, "POST", EVENTS, PLAIN)
    assert f"Content-Type: {STRUCTURED}" in error["hint"]
