"""What all routes share: signed requests only, JSON in and out, one error shape, ETags, pages."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from chalice.app import IAMAuthorizer, Request, Response

from chalicelib.core.errors import SluiceError, from_validation, invalid

if TYPE_CHECKING:
    from pydantic import BaseModel

    from chalicelib.ports import Page

    M = TypeVar("M", bound=BaseModel)

SIGNED = IAMAuthorizer()
MOST_BODY = 1_000_000  # bytes; INTERFACES: bodies up to 1 MB
DEFAULT_LIMIT, MOST_LIMIT = 50, 500

Handler = Callable[..., Any]


def answers(handler: Handler) -> Handler:
    """Turn what a route returns into a response, and a refusal into the one error shape. Never a traceback."""

    @functools.wraps(handler)
    def answer(*args: Any, **kwargs: Any) -> Response:
        from pydantic import ValidationError

        from chalicelib.log import logger

        try:
            result = handler(*args, **kwargs)
        except SluiceError as error:
            return _json(error.to_dict(), error.status)
        except ValidationError as error:
            refusal = from_validation(error)
            return _json(refusal.to_dict(), refusal.status)
        except Exception:
            logger.exception("request failed")
            hint = "try again; if it stays, the log of the api Lambda tells more"
            message = "the request could not be carried out"
            return _json({"error": {"code": "internal", "message": message, "field": None, "hint": hint}}, 500)
        return result if isinstance(result, Response) else _json(result, 200)

    return answer


def document(view: dict[str, Any], status: int = 200) -> Response:
    """A single document with its version as ETag."""
    return _json(view, status, {"ETag": f'"{view["version"]}"'} if "version" in view else {})


def gone() -> Response:
    return Response(body="", status_code=204, headers={})


def listing(page: Page[Any], view: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    cursor = base64.urlsafe_b64encode(page.cursor.encode()).decode() if page.cursor else None
    return {"items": [view(item) for item in page.items], "next_cursor": cursor}


def paging(request: Request) -> tuple[int, str | None]:
    """``?limit`` (1 to 500, default 50) and ``?cursor`` of a list."""
    text = query(request, "limit") or str(DEFAULT_LIMIT)
    if not text.isdigit() or not 1 <= int(text) <= MOST_LIMIT:
        raise invalid("limit", f"a number from 1 to {MOST_LIMIT}", text)
    cursor = query(request, "cursor")
    try:
        return int(text), base64.urlsafe_b64decode(cursor.encode()).decode() if cursor else None
    except ValueError:
        hint = "leave the cursor out to begin at the start"
        raise SluiceError("bad_cursor", "expected a cursor that a list answered with", "cursor", hint) from None


def query(request: Request, name: str) -> str | None:
    value = request.query_params.get(name) if request.query_params else None
    return str(value) if value is not None else None


def flag(request: Request, name: str) -> bool:
    text = query(request, name) or "false"
    if text not in ("true", "false"):
        raise invalid(name, "true or false", text)
    return text == "true"


def body(request: Request) -> dict[str, Any]:
    """The JSON object that was sent; an empty body is an empty object."""
    raw = request.raw_body or b""
    data = raw.encode() if isinstance(raw, str) else raw
    if len(data) > MOST_BODY:
        hint = "put large data into S3 and pass a reference"
        raise SluiceError("too_large", f"expected a body of at most {MOST_BODY} bytes, got {len(data)}", None, hint)
    if not data.strip():
        return {}
    try:
        parsed = json.loads(data)
    except ValueError as error:
        raise SluiceError("bad_json", f"expected JSON, got something else: {error}", "body", None) from None
    if not isinstance(parsed, dict):
        raise invalid("body", "a JSON object", parsed)
    return parsed


def parse(model: type[M], request: Request) -> M:
    """The body as a document. Raises a refusal that names the field, what was expected and what came."""
    return model.model_validate(body(request))


def if_match(request: Request) -> int | None:
    """The version that the caller has seen (``If-Match: "3"``); None if it does not care."""
    header = request.headers.get("if-match")
    if header is None:
        return None
    text = header.strip().removeprefix("W/").strip('"')
    if not text.isdigit():
        raise invalid("If-Match", 'an ETag that this API answered with, such as "3"', header)
    return int(text)


def caller(request: Request) -> str:
    """Who signed the request, for the history of versions."""
    identity = (request.context or {}).get("identity") or {}
    return str(identity.get("userArn") or identity.get("caller") or "unknown")


def _json(content: Any, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(
        body=json.dumps(content),
        status_code=status,
        headers={"Content-Type": "application/json", **(headers or {})},
    )
