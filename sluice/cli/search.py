"""Search a list of history that the API does not filter in full: by state or kind, and by day."""

from __future__ import annotations

import re
from collections.abc import Callable

from sluice.client import Client, Document, Query
from sluice.errors import WrongUsage


def check_day(day: str | None) -> None:
    """Raise ``WrongUsage`` unless the day is written as 2026-11-20."""
    if day is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
        raise WrongUsage(f"expected a day such as 2026-11-20, got {day!r}", "--day")


def search(
    client: Client,
    path: str,
    query: Query,
    maximum: int | None,
    matches: Callable[[Document], bool],
    day: str | None = None,
    instant: str = "",
) -> Document:
    """The items that match, in whole pages until ``maximum`` items are found, so that the cursor continues there.

    An item belongs to the day of its field ``instant``. Lists are newest first, so an item of an earlier day ends the
    search.
    """
    found: list[Document] = []
    for page in client.pages(path, query):
        items = page["items"]
        found += [item for item in items if matches(item) and (day is None or str(item[instant])[:10] == day)]
        if day is not None and any(str(item[instant])[:10] < day for item in items):
            break
        if maximum is not None and len(found) >= maximum:
            return {"items": found, "next_cursor": page.get("next_cursor")}
    return {"items": found, "next_cursor": None}
