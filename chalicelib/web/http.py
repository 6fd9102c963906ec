"""Requests and responses: strict JSON bodies, flags, ETags, and the one format of all errors."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, cast
from uuid import uuid4

from chalice.app import Request, Response
from pydantic import ValidationError

from chalicelib.core.access.principal import identified
from chalicelib.core.documents import SENT
from chalicelib.core.errors import SluiceError, from_validation, invalid
from chalicelib.core.instants import Instant, of_our_age, parse_instant
from chalicelib.core.views import View, as_json
from chalicelib.core.why import Sees, everyone
from chalicelib.web import access

if TYPE_CHECKING:
    from pydantic import BaseModel

    from chalicelib.flow.definitions.store import Change

    M = TypeVar("M", bound=BaseModel)

Json: TypeAlias = Mapping[str, Any]  # an object of an answer

MAX_BODY = 1_000_000  # bytes; docs/api.md, Conventions
# A run row holds the properties of a workflow, a schedule and a run-now, and a DynamoDB item ends at 400 KB.
MAX_DOCUMENT = 100_000
# The answer of a Lambda has at most 6 MB (6,291,556 bytes); the rest is for its headers.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
MAX_ANSWER = 6_000_000
MAX_KEY = 200  # characters of an Idempotency-Key
KEY = rf"[ -~]{{1,{MAX_KEY}}}"
MAX_DEPTH = 50  # a trigger of 45 leaves needs half of it; a deeper body is a mistake or an attack
PARTS = ("datasets", "workflows", "schedules", "dags", "events")  # lists of a body whose members are stored one by one
CARRIED = ("data", "data_base64", "output")  # fields with a size limit of their own (L13, W5)


class ChangeView(View):
    """What a PUT did: ``created``, ``replaced`` or ``unchanged``."""

    name: str
    kind: str
    did: str
    version: int


def document(view: Json, status: int = 200) -> Response:
    """A response with one document, and its version as ETag."""
    return answer(view, status, {"ETag": f'"{view["version"]}"'} if "version" in view else {})


def changed(kind: str, name: str, change: Change, **more: Any) -> Response:
    """The answer to a document that was put."""
    view = ChangeView(name=name, kind=kind, did=change.did, version=change.version)
    return document({**view, **more}, 201 if change.did == "created" else 200)


def gone() -> Response:
    return Response(body="", status_code=204, headers={})


def refusal(error: SluiceError) -> Response:
    return written(answer(error.to_dict(), error.status))


def failure(
    status: int = 500,
    code: str = "internal",
    message: str = "the request failed",
    hint: str | None = "retry the request; if the error persists, read the log of the api Lambda",
) -> Response:
    """An error that is no `SluiceError`: a fault, or a request that Chalice refuses before a route is called."""
    return written(answer({"error": {"code": code, "message": message, "field": None, "hint": hint}}, status))


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response whose body becomes a text when it is `written`."""
    all_headers: dict[str, str | list[str]] = {"Content-Type": "application/json", **(headers or {})}
    return Response(body=content, status_code=status, headers=all_headers)


def written(response: Response, sees: Sees = everyone) -> Response:
    """The response with its body as a text, for a reader who may know the names that ``sees`` accepts."""
    if isinstance(response.body, str):
        return response
    response.body = text = as_json(response.body, sees)
    if len(text) > MAX_ANSWER // 2 and escaped_size(text) > MAX_ANSWER:
        message = f"expected an answer of at most {MAX_ANSWER} bytes, got a larger one"
        return failure(413, "too_large", message, "request less: a smaller limit, or a part by its name")
    return response


def escaped_size(text: str) -> int:
    """The size of an ASCII text as a string in JSON. An answer of a Lambda is JSON that contains the body as text."""
    return len(text) + text.count('"') + text.count("\\")


def body(request: Request) -> dict[str, Any]:
    """The JSON object of a request of any content type; an empty body is an empty object. Raises ``too_large``,
    ``bad_json`` or ``invalid`` for any other body."""
    data = raw(request)
    return json_object(data) if data.strip() else {}


def raw(request: Request) -> bytes:
    """The bytes of a body. Raises ``too_large``."""
    data = cast("bytes", request.raw_body or b"")
    if len(data) > MAX_BODY:
        hint = "put large data into S3 and pass a reference; a large app can be uploaded (docs/api.md, Uploads)"
        raise SluiceError("too_large", f"expected a body of at most {MAX_BODY} bytes, got {len(data)}", "body", hint)
    return data


def json_object(data: str | bytes) -> dict[str, Any]:
    """The JSON object in the bytes of a body or of an upload. Raises ``bad_json``, ``too_large`` or ``invalid``."""
    parsed = json_value(data, "send one JSON object in UTF-8")
    if not isinstance(parsed, dict):
        raise invalid("body", "a JSON object", parsed, "send an object in braces, such as {}")
    _check_sizes(parsed)
    return parsed


def json_list(data: bytes) -> list[Any]:
    """The JSON array in the bytes of a body. Raises ``bad_json`` or ``invalid``."""
    parsed = json_value(data, "send one JSON array in UTF-8")
    if not isinstance(parsed, list):
        raise invalid("body", "a JSON array", parsed, "send an array in brackets, such as []")
    return parsed


def json_value(data: str | bytes, hint: str = "send JSON in UTF-8") -> Any:
    """The JSON value in the bytes of a body. Raises ``bad_json`` or ``invalid``."""
    try:
        parsed = json.loads(data, object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_no_number)
        if b"\\ud" in data.lower():
            json.dumps(parsed, ensure_ascii=False).encode()  # half of a surrogate pair cannot be stored as UTF-8
    except SluiceError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise SluiceError("bad_json", f"expected JSON, got something else: {error}", "body", hint) from None
    _check_depth(parsed)
    return parsed


def parse(model: type[M], request: Request) -> M:
    """The body as a document. Raises an error that names the field, the expected and the actual value."""
    return validated(model, body(request))


def validated(model: type[M], content: dict[str, Any]) -> M:
    """A JSON object as a document, with the errors of `parse`."""
    try:
        return model.model_validate(content, context=SENT)
    except ValidationError as error:
        raise from_validation(error, model) from None


def query(request: Request, name: str) -> str | None:
    value = request.query_params.get(name) if request.query_params else None
    return str(value) if value is not None else None


def flag(request: Request, name: str) -> bool:
    text = query(request, name)
    if text not in (None, "true", "false"):
        raise invalid(name, "true or false", text, "write one of the two")
    return text == "true"


def cancels_runs(request: Request) -> bool:
    """Whether a request that cancels a backfill also cancels its active runs."""
    runs = query(request, "runs")
    if runs not in (None, "cancel"):
        raise invalid("runs", "cancel, or no value", runs, "leave out the parameter to let active runs continue")
    return runs is not None


def choice(request: Request, name: str, options: Collection[str]) -> str | None:
    """The value of a query parameter that takes one of the options; None without it. Raises ``invalid`` for another."""
    text = query(request, name)
    if text is not None and text not in options:
        raise invalid(name, f"one of {', '.join(options)}", text, f"use one of these, or leave {name} out")
    return text


def number(request: Request, name: str, default: int, maximum: int, least: int = 1) -> int:
    text = query(request, name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= maximum:
        raise invalid(name, f"a number from {least} to {maximum}", text, "leave it out for the default")
    return int(text)


def day(request: Request) -> str | None:
    """The day of ``?day=2026-11-20``, in UTC; None without the parameter. Raises ``invalid`` for any other text."""
    text = query(request, "day")
    try:
        if text is None or date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise invalid("day", "a day such as 2026-11-20", text, "write the day as year-month-day")


def instant(request: Request, name: str, default: Instant) -> Instant:
    """The instant of a query parameter such as ``?from``."""
    text = query(request, name)
    return default if text is None else of_our_age(parse_instant(text, name), name, text)


def request_id(request: Request) -> str:
    """An id that all requests with the same ``Idempotency-Key`` share; without a key each request has its own id.
    Raises ``invalid`` for a key that is long or has other characters than visible ASCII ones and spaces."""
    key = request.headers.get("idempotency-key")
    if key and not re.fullmatch(KEY, key):
        expected = f"at most {MAX_KEY} visible ASCII characters"
        got = f"{len(key)} characters" if len(key) > MAX_KEY else key
        raise invalid("Idempotency-Key", expected, got, "a UUID is a good key")
    return str(key or (request.context or {}).get("requestId") or uuid4().hex)


def if_match(request: Request) -> int | None:
    """The version that the caller expects (``If-Match: "3"``); None if the caller expects none."""
    header = request.headers.get("if-match")
    if header is None:
        return None
    version = re.fullmatch(r'\s*"?([0-9]{1,18})"?\s*', header)
    if version is None:
        raise invalid(
            "If-Match",
            'an ETag of an answer of this API, such as "3"',
            header,
            "send the ETag header of the last GET, with its quotes",
        )
    return int(version[1])


def caller(request: Request) -> str:
    """The ARN of the signer, for the history of versions; ``unknown`` only if nothing enforces roles. Raises
    ``forbidden`` for an unknown signer otherwise."""
    if access.installed().settings.authorization == "enforce":
        return identified(request.context or {}).arn
    identity = (request.context or {}).get("identity") or {}
    return str(identity.get("userArn") or identity.get("caller") or "unknown")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as a dict. JSON does not define a repeated key; a dict would silently lose one of two schedules."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise SluiceError("bad_json", f"expected each key of an object once, got {twice!r} twice", "body", None)
    return found


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise SluiceError("bad_json", f"expected numbers that JSON can hold, got {text}", "body", "send it as a string")


def _too_deep() -> SluiceError:
    return invalid("body", f"at most {MAX_DEPTH} levels of objects and lists", "more", "flatten it")


def _check_depth(parsed: Any) -> None:
    level = [parsed]
    for _ in range(MAX_DEPTH):
        lists = [part for part in level if isinstance(part, list)]
        objects = [part for part in level if isinstance(part, dict)]
        level = [child for part in lists for child in part] + [child for part in objects for child in part.values()]
        if not level:
            return
    raise _too_deep()


def _check_sizes(content: dict[str, Any]) -> None:
    """Check that each stored row has a valid size: an app part by part, events one by one, other bodies as a whole."""
    pieces = {f"{group}.{name}": part for group in PARTS for name, part in _members(content.get(group))}
    pieces["body"] = {name: part for name, part in content.items() if name not in PARTS}
    for field, piece in pieces.items():
        own = {name: part for name, part in piece.items() if name not in CARRIED} if isinstance(piece, dict) else piece
        size = len(json.dumps(own))
        if size > MAX_DOCUMENT:
            hint = "put large data into S3 and pass a reference"
            message = f"expected a document of at most {MAX_DOCUMENT} bytes, got {size}"
            raise SluiceError("too_large", message, field, hint)


def _members(group: Any) -> Iterable[tuple[object, Any]]:
    """The members of a list or object, by name or number; nothing for any other value, which its model refuses."""
    if isinstance(group, dict):
        return group.items()
    return enumerate(group) if isinstance(group, list) else ()
