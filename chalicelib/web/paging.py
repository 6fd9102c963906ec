"""Lists: ``?limit``, and an opaque cursor, which is checked to belong to this list before any read."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chalice.app import Request

from chalicelib.core import errors, ids
from chalicelib.web.http import number, query

if TYPE_CHECKING:
    from chalicelib.ports import Page


DEFAULT_LIMIT, MAX_LIMIT = 50, 500


PAGING = ("limit", "cursor")


MARK = 8  # characters; the prefix of a cursor, which identifies its list


Read = Callable[[int, str | None], "Page[Any]"]


def listing(
    request: Request,
    read: Read,
    view: Callable[[Any], dict[str, Any]],
    default: int = DEFAULT_LIMIT,
    most: int = MAX_LIMIT,
) -> dict[str, Any]:
    """One page of a list: ``read`` fetches it by limit and position, ``view`` formats an item."""
    limit = number(request, "limit", default, most)
    cursor = query(request, "cursor")
    page = read(limit, None if cursor is None else _open(request, cursor))
    following = None if page.cursor is None else _seal(request, page.cursor)
    return {"items": [view(item) for item in page.items], "next_cursor": following}


def _seal(request: Request, position: str) -> str:
    return base64.urlsafe_b64encode((_mark(request, position) + position).encode()).decode().rstrip("=")


def _open(request: Request, cursor: str) -> str:
    """The position that a cursor encodes. Raises ``bad_cursor`` for a cursor of another list, or for any other text."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except ValueError:
        text = ""
    mark, position = text[:MARK], text[MARK:]
    if mark != _mark(request, position):
        raise errors.bad_cursor()
    return position


def _mark(request: Request, position: str) -> str:
    """A digest of the list (its path and filters) and the position."""
    segments = sorted((request.uri_params or {}).items())
    filters = sorted((name, query(request, name)) for name in request.query_params or () if name not in PAGING)
    return ids.digest(request.path, segments, filters, position, length=MARK)


MAX_FIRES = 1000
