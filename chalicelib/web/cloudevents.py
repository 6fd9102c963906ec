"""CloudEvents in requests (E11): structured mode, batches, and binary mode, as their `Content-Type` and headers say.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from chalice.app import APIGateway, Request

from chalicelib.core.errors import Problems, SluiceError, invalid
from chalicelib.core.events.cloudevents import BATCH, STRUCTURED, CloudEvent
from chalicelib.web.http import body, json_list, json_value, raw, validated

MAX_EVENTS = 100  # in a batch, as in a request of custom events
HEADER = "ce-"
NONE_STORED = "no event of the batch was stored"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_TEXT = re.compile(r"text/.+|application/(.+\+)?(xml|yaml)")
_JSON = re.compile(r"(application|text)/(.+\+)?json")
# API Gateway passes bodies of these types as they are. It reads all others as UTF-8, which changes other bytes.
# https://docs.aws.amazon.com/apigateway/latest/developerguide/lambda-proxy-binary-media.html
_BYTES = frozenset(APIGateway().default_binary_types)


def cloudevents(request: Request) -> list[CloudEvent] | None:
    """The CloudEvents of a request; None for a request of another kind. Raises an error that names the field or header,
    and in a batch the number of the event. Without an error, all are valid."""
    content_type = str(request.headers.get("content-type") or "")
    essence = content_type.partition(";")[0].strip().lower()
    if essence == STRUCTURED:
        return [validated(CloudEvent, body(request))]
    if essence == BATCH:
        return _batch(json_list(raw(request)))
    if essence.startswith("application/cloudevents"):
        hint = "Sluice reads the JSON format; the binary mode takes the data in any type, and the attributes as headers"
        raise invalid("Content-Type", f"{STRUCTURED} or {BATCH}", essence, hint)
    headers = {name.lower(): value for name, value in request.headers.items() if name.lower().startswith(HEADER)}
    return [_binary(headers, content_type, raw(request))] if headers else None


def _batch(sent: list[Any]) -> list[CloudEvent]:
    if len(sent) > MAX_EVENTS:
        raise invalid("body", f"at most {MAX_EVENTS} CloudEvents in a batch", f"{len(sent)}", "send several batches")
    events, found = [], Problems()
    for number, each in enumerate(sent):
        with found.caught(str(number)):
            events.append(validated(CloudEvent, _object(each)))
    try:
        found.end()
    except SluiceError as error:
        raise _for_each(error, lambda each: _with_hint(each, each.field or "", NONE_STORED)) from None
    return events


def _object(sent: Any) -> dict[str, Any]:
    if not isinstance(sent, dict):
        raise invalid("", "a CloudEvent, which is a JSON object", sent, "send one object for each event")
    return sent


def _binary(headers: Mapping[str, str], content_type: str, content: bytes) -> CloudEvent:
    """The event whose attributes are in headers, and whose data is the body."""
    sent: dict[str, Any] = {}
    for header, value in headers.items():
        name = header.removeprefix(HEADER)
        if name in ("data", "data_base64", "datacontenttype"):
            hint = "the data is the body, and its type the header Content-Type"
            raise invalid(header, "a header for each attribute, and none for the data or its type", header, hint)
        sent[name] = _decoded(header, value)
    if content_type:
        sent["datacontenttype"] = content_type
    if content:
        sent |= _data(content_type, content)
    try:
        return validated(CloudEvent, sent)
    except SluiceError as error:
        raise error.renamed(_header_of) from None


def _header_of(field: str | None) -> str:
    elsewhere = {"datacontenttype": "Content-Type", "data": "body", "data_base64": "body"}
    return elsewhere.get(field, HEADER + field) if field else "body"


def _decoded(header: str, value: str) -> str:
    """The text of a header: without quotes, and with its percent escapes as UTF-8.

    https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md#3132-http-header-values
    """
    quoted = _QUOTED.fullmatch(value.strip())
    plain = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else value
    try:
        return unquote(plain, errors="strict")
    except UnicodeDecodeError:
        hint = "percent-encode the bytes of the text in UTF-8, such as Euro%20%E2%82%AC"
        raise invalid(header, "percent escapes of UTF-8", value, hint) from None


def _data(content_type: str, content: bytes) -> dict[str, Any]:
    """The data of an event in binary mode, as the JSON format has it."""
    essence = content_type.partition(";")[0].strip().lower()
    if essence in _BYTES:
        return {"data_base64": base64.b64encode(content).decode()}
    if not essence or _JSON.fullmatch(essence):
        return {"data": json_value(content)}
    charset = re.search(r';\s*charset\s*=\s*"?([^\s";]+)', content_type, re.IGNORECASE)
    if _TEXT.fullmatch(essence) and (charset is None or charset[1].lower() in ("utf-8", "us-ascii")):
        try:
            return {"data": content.decode()}
        except UnicodeDecodeError:
            hint = "send the text in UTF-8, or other bytes as application/octet-stream"
            raise invalid("body", "text in UTF-8", "other bytes", hint) from None
    expected = "JSON, text in UTF-8, or a type of bytes such as application/octet-stream or image/png"
    hint = f"send other bytes as application/octet-stream, or as data_base64 with Content-Type: {STRUCTURED}"
    if essence == "application/x-www-form-urlencoded":
        hint = "add the header Content-Type: application/json; curl sends this type if none is given"
    raise invalid("Content-Type", expected, content_type, hint)


def _for_each(error: SluiceError, change: Callable[[SluiceError], SluiceError]) -> SluiceError:
    """The same error with each of its problems changed."""
    changed = change(error)
    problems = [change(each) for each in error.problems]
    return SluiceError(changed.code, changed.said, changed.field, changed.hinted, problems)


def _with_hint(error: SluiceError, field: str, more: str) -> SluiceError:
    hint = f"{error.hint}; {more}" if error.hint else more
    return SluiceError(error.code, error.said, field, hint)
