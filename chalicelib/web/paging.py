"""Lists: ``?limit``, and an opaque cursor, which is checked to belong to this list before any read."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, TypeVar

from chalice.app import Request

from chalicelib.core import errors, ids
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.views import as_json
from chalicelib.ports import Page
from chalicelib.web.http import MAX_ANSWER, escaped_size, number, query

DEFAULT_LIMIT, MAX_LIMIT = 50, 500
MAX_FIRES = 1000
MAX_PAGES = 10  # that a request reads if a filter leaves out most items
PAGING = ("limit", "cursor")
ALWAYS_FIT = 10  # items: a row of a table has at most 400 KB
FRAME = 10_000  # bytes of an answer besides its items
MARK = 8  # characters; the prefix of a cursor, which identifies its list

T = TypeVar("T", Backfill, Reprocess)
Read = Callable[[int, str | None], Page[Any]]


def listing(
    request: Request,
    read: Read,
    view: Callable[[Any], Mapping[str, Any]] = lambda item: item,
    default: int = DEFAULT_LIMIT,
    most: int = MAX_LIMIT,
) -> dict[str, Any]:
    """One page of a list: ``read`` fetches it by limit and position, ``view`` formats an item. A page of large items
    has fewer than the limit, so that it fits into an answer."""
    limit = number(request, "limit", default, most)
    cursor = query(request, "cursor")
    position = None if cursor is None else _open(request, cursor)
    while True:
        page = read(limit, position)
        items = [view(item) for item in page.items]
        fitting = _fitting(items)
        if fitting >= len(items):
            break
        limit = fitting  # the source alone knows the position after an item, so it reads the shorter page
    following = None if page.cursor is None else _seal(request, page.cursor)
    return {"items": items, "next_cursor": following}


def only(read: Read, fits: Callable[[Any], bool], most: float = inf) -> Read:
    """A read of the items that fit, with the bounds of `chosen`."""
    return chosen(read, lambda items: [item for item in items if fits(item)], most)


def chosen(read: Read, choose: Callable[[Sequence[Any]], Sequence[Any]], most: float = inf) -> Read:
    """A read of the items that ``choose`` keeps. It goes on for some pages, so that a page is seldom empty, but ends
    after ``most`` items, and after a page without any. So a page may hold fewer than the limit, even none, and still
    have a next page."""

    def kept(limit: int, cursor: str | None) -> Page[Any]:
        found: list[Any] = []
        searched = 0
        for _ in range(MAX_PAGES):
            page = read(limit - len(found), cursor)
            found += choose(page.items)
            searched, cursor = searched + len(page.items), page.cursor
            at_its_bound = not page.items  # the read itself reads no more with one request
            if cursor is None or len(found) == limit or searched >= most or at_its_bound:
                break
        return Page(tuple(found), cursor)

    return kept


def ending(read: Read, is_over: Callable[[Any], bool]) -> Read:
    """A read of a sorted list that ends with the page on which an item is over, such as one older than a span."""

    def cut(limit: int, cursor: str | None) -> Page[Any]:
        page = read(limit, cursor)
        return Page(page.items, None) if page.items and is_over(page.items[-1]) else page

    return cut


def newest_first(rows: Iterable[T], limit: int, cursor: str | None) -> Page[T]:
    """A page of rows that all were read, by when they were created."""
    known: dict[str, Any] = {f"{row.created_at:015d}{row.id}": row for row in rows}
    older = sorted((position for position in known if cursor is None or position < cursor), reverse=True)
    page = older[:limit]
    return Page(tuple(known[position] for position in page), page[-1] if len(older) > limit else None)


def _fitting(items: Sequence[Mapping[str, Any]]) -> int:
    """How many of the items fit into an answer, at least one."""
    if len(items) <= ALWAYS_FIT:
        return len(items)
    size = 0
    for count, item in enumerate(items):
        size += escaped_size(as_json(item)) + 2
        if size > MAX_ANSWER - FRAME:
            return max(count, 1)
    return len(items)


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
