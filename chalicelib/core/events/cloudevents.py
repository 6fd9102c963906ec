"""CloudEvents 1.0 as custom events (E11): the checks of one that is sent.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from chalicelib.core.documents import Document, EventType
from chalicelib.core.errors import Problems, SluiceError, invalid
from chalicelib.core.instants import Instant, of_our_age, parse_instant
from chalicelib.core.text import refuse_controls
from chalicelib.core.triggers.event import MAX_PAYLOAD

STRUCTURED, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"

_NAME = re.compile(r"[a-z0-9]{1,20}")
# RFC 3986: the characters of a URI reference, with complete percent escapes and at most one fragment.
_CHARACTERS = r"(?:[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})"
_REFERENCE = re.compile(rf"{_CHARACTERS}+(#{_CHARACTERS}*)?|#{_CHARACTERS}*")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.*", re.DOTALL)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *;.*)?")
_INTEGERS = range(-(2**31), 2**31)  # those of CloudEvents


def _version(given: object) -> object:
    if given != "1.0":
        hint = "send CloudEvents 1.0; a version that is not text is refused, too"
        raise invalid("", "the specversion '1.0'", given, hint)
    return given


def _text(given: object) -> object:
    if isinstance(given, str):
        refuse_controls(given, "text without control characters", "")
    return given


def _reference(given: object) -> object:
    if isinstance(given, str) and not _REFERENCE.fullmatch(given):
        hint = "such as https://shop.example/orders, urn:shop:orders or /orders; percent-encode other characters"
        raise invalid("", "a URI reference (RFC 3986)", given, hint)
    return given


def _absolute(given: object) -> object:
    if isinstance(given, str) and not (_REFERENCE.fullmatch(given) and _ABSOLUTE.fullmatch(given)):
        raise invalid("", "an absolute URI", given, "such as https://shop.example/schemas/order.json")
    return given


def _moment(given: object) -> object:
    if isinstance(given, str):
        if not _MOMENT.fullmatch(given):
            raise invalid("", "an RFC 3339 instant", given, "such as 2026-11-20T12:00:00Z")
        of_our_age(parse_instant(given.upper(), ""), "", given)
    return given


def _media_type(given: object) -> object:
    if isinstance(given, str) and not _MEDIA_TYPE.fullmatch(given):
        raise invalid("", "a media type (RFC 2046)", given, "such as application/json")
    return given


def _encoded(given: object) -> object:
    if isinstance(given, str):
        try:
            base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError):
            hint = "encode the bytes as RFC 4648 says; text and JSON go into data"
            raise invalid("", "base64", given, hint) from None
    return given


Text = Annotated[str, Field(min_length=1), BeforeValidator(_text)]


class CloudEvent(Document):
    """A CloudEvent in the JSON format. ``source`` and ``id`` together identify it: the same pair is the same event in
    its namespace. The trigger and the run get the whole of it as their payload. All further fields are extension
    attributes: text, a whole number, or true or false. A field that is null counts as left out."""

    model_config = ConfigDict(extra="allow")

    specversion: Annotated[Literal["1.0"], BeforeValidator(_version)]
    id: Text
    source: Annotated[Text, BeforeValidator(_reference)]
    type: EventType
    subject: Text | None = None
    time: Annotated[str, Field(json_schema_extra={"format": "date-time"}), BeforeValidator(_moment)] | None = None
    datacontenttype: Annotated[Text, BeforeValidator(_media_type)] | None = None
    dataschema: Annotated[Text, BeforeValidator(_absolute)] | None = None
    data: Any = None
    data_base64: Annotated[str, BeforeValidator(_encoded)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_unset(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None or name == "data"}

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        found = Problems()
        for name, value in (self.model_extra or {}).items():
            with found.caught():
                _check_extension(name, value)
        if {"data", "data_base64"} <= self.model_fields_set:
            found.add(invalid("data", "either data or data_base64", "both", "remove one of the two"))
        found.end()
        size = len(json.dumps(self.payload).encode())
        if size > MAX_PAYLOAD:
            hint = "put large data into S3, and name it in the extension dataref"
            message = f"expected a CloudEvent of at most {MAX_PAYLOAD} bytes as JSON, got {size}"
            raise SluiceError("too_large", message, "", hint)
        return self

    @property
    def payload(self) -> dict[str, Any]:
        """The event in the JSON format, as it was sent, without the fields that are null."""
        return self.model_dump(exclude_unset=True)

    @property
    def at(self) -> Instant | None:
        """The ``time`` of the event, if it has one."""
        return parse_instant(self.time.upper()) if self.time is not None else None


def _check_extension(name: str, value: object) -> None:
    if not _NAME.fullmatch(name):
        hint = "rename the extension attribute; the content of an event belongs into data"
        raise invalid(name, "names of attributes of 1 to 20 lower-case letters and digits", name, hint)
    if isinstance(value, str):
        try:
            refuse_controls(value, "text without control characters", "")
        except SluiceError as error:
            raise error.under(name) from None
    elif isinstance(value, bool) or (isinstance(value, int) and value in _INTEGERS):
        return
    else:
        expected = "text, true or false, or a whole number of 32 bits"
        raise invalid(name, expected, value, "write it as text, or put it into data")
