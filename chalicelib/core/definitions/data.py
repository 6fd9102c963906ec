"""Data that a schedule or a message carries to its target (L13): a JSON value, text, or bytes, with a content type.

The version row holds data of up to `MAX_INLINE` bytes; larger data is in S3, and the target gets its URI. Each process
that fires the schedule reads the version row, and each run stores the data again, billed in units of 1 KB. Beyond
`MAX_INLINE`, one S3 request costs less than these writes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import Field, model_validator

from chalicelib.core import ids
from chalicelib.core.documents import Sparse
from chalicelib.core.errors import SluiceError, invalid

C = TypeVar("C", bound="Carried")

MAX_DATA = 256 * 1024  # bytes: L13, and the limit of an SQS message, an SNS message and an EventBridge event
MAX_INLINE = 16 * 1024  # bytes

JSON, TEXT, BYTES = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
# RFC 9110: type/subtype and parameters. Printable characters without line breaks, because the text becomes a header.
_TOKEN = r"[A-Za-z0-9!#$&^_.+-]+"
_CONTENT_TYPE = re.compile(rf'{_TOKEN}/{_TOKEN}(?: *; *{_TOKEN}=(?:{_TOKEN}|"[ !#-~]*"))*')


class Carried(Sparse):
    """Data for a target: ``data`` (a JSON value; text if ``content_type`` is not JSON) or ``data_base64`` (bytes).

    The default ``content_type`` is plain text for text, JSON for any other value, and octet-stream for bytes.
    ``data_uri`` is the location at which Sluice stored data that is too large for this document.
    """

    omitted: ClassVar[Collection[str]] = ("data", "data_base64", "content_type", "data_uri")

    data: Any = None
    data_base64: str | None = None
    content_type: str | None = Field(default=None, max_length=200)
    data_uri: str | None = Field(default=None, max_length=2_000)

    @model_validator(mode="after")
    def _can_be_carried(self) -> Carried:
        given = [name for name in ("data", "data_base64", "data_uri") if getattr(self, name) is not None]
        if len(given) > 1:
            raise invalid(given[1], "either data or data_base64", "both", "remove one of the two")
        if self.content_type is not None:
            _check_type(self.content_type, given)
            if self.data is not None and not isinstance(self.data, str) and not is_json(self.content_type):
                hint = "write the data as text, or use a JSON content type"
                raise invalid("data", f"text for the content type {self.content_type}", self.data, hint)
        content = content_of(self)
        if content is not None and len(content) > MAX_DATA:
            hint = "put it into S3 and send a reference"
            message = f"expected data of at most {MAX_DATA} bytes, got {len(content)}"
            raise SluiceError("too_large", message, given[0], hint)
        return self


def refuse_data_uri(carried: C) -> C:
    """Raises ``invalid`` for a ``data_uri`` in a document that a user sends: only Sluice sets it."""
    if carried.data_uri is not None:
        raise invalid("data_uri", "data, or a reference inside it", carried.data_uri, "send the reference as data")
    return carried


def content_of(carried: Carried) -> bytes | None:
    """The data as bytes; None if there is none or it is in S3. Raises ``invalid`` for malformed base64."""
    if carried.data_base64 is not None:
        try:
            return base64.b64decode(carried.data_base64, validate=True)
        except (binascii.Error, ValueError):
            expected = "bytes in base64 (RFC 4648, with padding)"
            hint = "encode the bytes, such as with base64 -w0, or send text as data"
            raise invalid("data_base64", expected, carried.data_base64, hint) from None
    return None if carried.data is None else _text(carried).encode()


def request_data(carried: Carried) -> Mapping[str, Any] | None:
    """The data in a start request: ``content_type``, and one of ``text``, ``base64`` and ``uri``; None without data."""
    if carried.data_uri is not None:
        return {"content_type": carried.content_type or BYTES, "uri": carried.data_uri}
    if carried.data_base64 is not None:
        return {"content_type": carried.content_type or BYTES, "base64": carried.data_base64}
    return None if carried.data is None else {"content_type": type_of(carried), "text": _text(carried)}


def is_large(carried: Carried) -> bool:
    content = content_of(carried)
    return content is not None and len(content) > MAX_INLINE


def key_of(owner: str, carried: Carried) -> str:
    """The S3 key of large data. Equal data of one owner has the same key."""
    content = content_of(carried) or b""
    return f"data/{owner}/{ids.digest(type_of(carried), content.hex(), length=40)}"


def by_reference(carried: Carried, uri: str) -> Mapping[str, Any]:
    """The fields of the same document with its data at ``uri``."""
    return {"data": None, "data_base64": None, "content_type": type_of(carried), "data_uri": uri}


def type_of(carried: Carried) -> str:
    if carried.content_type is not None:
        return carried.content_type
    if carried.data_base64 is not None or carried.data is None:
        return BYTES
    return TEXT if isinstance(carried.data, str) else JSON


def is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == JSON or kind.endswith("+json")


def _text(carried: Carried) -> str:
    """The data as text: plain text unchanged, any JSON value encoded."""
    if isinstance(carried.data, str) and not is_json(type_of(carried)):
        return carried.data
    return json.dumps(carried.data, ensure_ascii=False, separators=(",", ":"))


def _check_type(content_type: str, given: list[str]) -> None:
    if not _CONTENT_TYPE.fullmatch(content_type):
        hint = "write type/subtype in ASCII, or leave it out"
        raise invalid("content_type", "a content type such as application/json", content_type, hint)
    if not given:
        raise invalid("content_type", "data for the content type", "no data", "add data, or leave content_type out")
