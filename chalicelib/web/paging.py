"""Lists: ``?limit``, and a cursor that is opaque, of its own list, and checked before anything reads it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chalice.app import Request

from chalicelib.core import ids
from chalicelib.core.errors import SluiceError
from chalicelib.web.http import number, query

if TYPE_CHECKING:
    from chalicelib.ports import Page


DEFAULT_LIMIT, MAX_LIMIT = 50, 500


PAGING = ("limit", "cursor")


MARK = 8  # characters in front of a cursor that say which list it belongs to


Read = Callable[[int, str | None], "Page[Any]"]


def listing(request: Request, read: Read, view: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """One page of a list: ``read`` fetches it by limit and place, ``view`` shows an item."""
    limit = number(request, "limit", DEFAULT_LIMIT, MAX_LIMIT)
    cursor = query(request, "cursor")
    page = read(limit, None if cursor is None else _open(request, cursor))
    following = None if page.cursor is None else _seal(request, page.cursor)
    return {"items": [view(item) for item in page.items], "next_cursor": following}


def _seal(request: Request, place: str) -> str:
    return base64.urlsafe_b64encode((_mark(request, place) + place).encode()).decode().rstrip("=")


def _open(request: Request, cursor: str) -> str:
    """The place that a cursor names. One of another list, or of none, is refused before a store meets it."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except ValueError:
        text = ""
    mark, place = text[:MARK], text[MARK:]
    if mark != _mark(request, place):
        hint = "leave the cursor out to begin at the start"
        raise SluiceError("bad_cursor", "expected a cursor that this very list answered with", "cursor", hint)
    return place


def _mark(request: Request, place: str) -> str:
    """A digest of the list (its path and filters) and the place."""
    segments = sorted((request.uri_params or {}).items())
    filters = sorted((name, query(request, name)) for name in request.query_params or () if name not in PAGING)
    return ids.digest(request.path, segments, filters, place, length=MARK)


MAX_FIRES = 1000
