"""Read a list until enough is found. The API filters; what Sluice made is left out here, unless a user asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluice import names
from sluice.client import PAGE, Client, Document


@dataclass(frozen=True, slots=True)
class Found:
    """``answer`` has the form of a list of the API; ``left_out`` counts the items that match and are internal."""

    answer: Document
    left_out: int


def search(
    client: Client,
    path: str,
    query: Mapping[str, str | None],
    maximum: int | None,
    hide: bool = False,
    matches: Callable[[Document], bool] | None = None,
) -> Found:
    """The items of a list, in whole pages until ``maximum`` items are found, so that the cursor continues there. With
    ``hide``, items of schedules that Sluice made are left out. ``matches`` is for what the API does not filter."""
    found: list[Document] = []
    left_out = 0
    cursor: str | None = None
    # Without a filter almost every item is kept, so the first page need not be longer than the list.
    filtered = matches is not None or any(value is not None for value in query.values())
    size = PAGE if maximum is None or filtered else min(PAGE, maximum)
    while True:
        page = client.get(path, {**query, "limit": size, "cursor": cursor})
        fitting = [item for item in page.get("items", ()) if matches is None or matches(item)]
        kept = [item for item in fitting if not (hide and names.is_internal(str(item["schedule"])))]
        found, left_out, cursor = found + kept, left_out + len(fitting) - len(kept), page.get("next_cursor")
        if cursor is None or (maximum is not None and len(found) >= maximum):
            return Found({"items": found, "next_cursor": cursor}, left_out)
        size = PAGE
