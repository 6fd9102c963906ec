"""Data with its content type (L13): what may be carried, what the target receives, and when the data is large."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions import data
from chalicelib.core.definitions.data import Carried
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.errors import SluiceError, from_validation

EVERY = {"type": "time", "expression": "@every 1h"}


def refused(**fields: Any) -> SluiceError:
    with pytest.raises(ValidationError) as raised:
        Carried.model_validate(fields)
    return from_validation(raised.value)


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"data": {"a": [1, None, "ü"]}}, {"content_type": "application/json", "text": '{"a":[1,null,"ü"]}'}),
        ({"data": 0}, {"content_type": "application/json", "text": "0"}),
        ({"data": False}, {"content_type": "application/json", "text": "false"}),
        ({"data": "plain\ntext"}, {"content_type": "text/plain; charset=utf-8", "text": "plain\ntext"}),
        ({"data": "<a/>", "content_type": "application/xml"}, {"content_type": "application/xml", "text": "<a/>"}),
        ({"data": "a", "content_type": "application/json"}, {"content_type": "application/json", "text": '"a"'}),
        ({"data": [1], "content_type": "application/x+json"}, {"content_type": "application/x+json", "text": "[1]"}),
        ({"data_base64": "AP8="}, {"content_type": "application/octet-stream", "base64": "AP8="}),
        ({"data_base64": "AP8=", "content_type": "image/png"}, {"content_type": "image/png", "base64": "AP8="}),
        ({"data_uri": "s3://b/k", "content_type": "a/b"}, {"content_type": "a/b", "uri": "s3://b/k"}),
        ({}, None),
    ],
)
def test_l13_a_target_receives_the_content_in_its_type(fields: dict[str, Any], sent: dict[str, str] | None) -> None:
    assert data.request_data(Carried.model_validate(fields)) == sent


def test_l13_data_may_have_256_kb_and_not_a_byte_more() -> None:
    most = data.MAX_DATA
    assert most == 262_144
    Carried.model_validate({"data": "x" * most})
    Carried.model_validate({"data_base64": base64.b64encode(bytes(most)).decode()})
    for fields in (
        {"data": "x" * (most + 1)},
        {"data": "ü" * (most // 2 + 1)},
        {"data_base64": base64.b64encode(bytes(most + 1)).decode()},
    ):
        error = refused(**fields)
        assert (error.code, error.field) == ("too_large", *fields)


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"data": 1, "data_base64": "AA=="}, "data_base64", "expected either data or data_base64, got 'both'"),
        ({"data_base64": "A"}, "data_base64", "expected bytes in base64 (RFC 4648, with padding), got 'A'"),
        ({"data": {}, "content_type": "text/plain"}, "data", "expected text for the content type text/plain, got {}"),
        ({"content_type": "a/b"}, "content_type", "expected data for the content type, got 'no data'"),
        ({"data": "a", "content_type": "json"}, "content_type", "expected a content type such as application/json"),
        ({"data": "a", "content_type": "a/b\r\nX: y"}, "content_type", "expected a content type such as"),
    ],
)
def test_l13_data_that_cannot_be_sent_is_refused_by_its_field(fields: dict[str, Any], field: str, message: str) -> None:
    error = refused(**fields)
    assert error.field == field
    assert error.message.startswith(message)


def test_l13_only_sluice_sets_where_data_is_stored() -> None:
    with pytest.raises(ValidationError) as raised:
        NewSchedule.model_validate({"workflow": "w", "trigger": EVERY, "data_uri": "s3://other/secret"})
    assert from_validation(raised.value).field == "data_uri"


def test_l13_data_over_16_kb_is_large_and_its_key_is_a_digest() -> None:
    small, large = Carried(data="x" * data.MAX_INLINE), Carried(data="x" * (data.MAX_INLINE + 1))
    assert (data.is_large(small), data.is_large(large)) == (False, True)
    key = data.key_of("demo.flights.clean", large)
    assert key == data.key_of("demo.flights.clean", Carried(data="x" * (data.MAX_INLINE + 1)))
    typed = Carried(data="x" * (data.MAX_INLINE + 1), content_type="text/csv")
    keys = {key, data.key_of("demo.flights.other", large), data.key_of("demo.flights.clean", typed)}
    assert len(keys) == 3
    assert all(each.startswith("data/demo.flights.") for each in keys)
