"""Search a list of history that the API does not filter in full. The filters are state or kind, day, and the maker, a
user or Sluice."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluice import names
from sluice.client import PAGE, Client, Document
from sluice.errors import WrongUsage


@dataclass(frozen=True, slots=True)
class Wanted:
    """The conditions of a search. An item belongs to the day of its field ``instant``. With ``hide``, the search leaves
    out items of schedules that Sluice made."""

    matches: Callable[[Document], bool] | None = None
    day: str | None = None
    instant: str = ""
    hide: bool = False

    def fits(self, item: Document) -> bool:
        of_day = self.day is None or str(item[self.instant])[:10] == self.day
        return of_day and (self.matches is None or self.matches(item))


@dataclass(frozen=True, slots=True)
class Found:
    """``answer`` has the form of a list of the API; ``left_out`` counts the items that match and are internal."""

    answer: Document
    left_out: int


def check_day(day: str | None) -> None:
    """Raise ``WrongUsage`` unless the day is written as 2026-11-20."""
    if day is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
        raise WrongUsage(f"expected a day such as 2026-11-20, got {day!r}", "--day")


def search(client: Client, path: str, query: Mapping[str, str | None], maximum: int | None, wanted: Wanted) -> Found:
    """The items that match, in whole pages until ``maximum`` items are found, so that the cursor continues there.

    Lists are newest first, so an item of an earlier day ends the search.
    """
    found: list[Document] = []
    left_out = 0
    cursor: str | None = None
    # Without a filter almost every item is kept, so the first page need not be longer than the list.
    size = PAGE if maximum is None or wanted.matches or wanted.day else min(PAGE, maximum)
    while True:
        page = client.get(path, {**query, "limit": size, "cursor": cursor})
        items = page.get("items", ())
        fitting = [item for item in items if wanted.fits(item)]
        kept = [item for item in fitting if not (wanted.hide and names.is_internal(str(item["schedule"])))]
        found, left_out, cursor = found + kept, left_out + len(fitting) - len(kept), page.get("next_cursor")
        earlier = wanted.day is not None and any(str(item[wanted.instant])[:10] < wanted.day for item in items)
        if cursor is None or earlier:
            return Found({"items": found, "next_cursor": None}, left_out)
        if maximum is not None and len(found) >= maximum:
            return Found({"items": found, "next_cursor": cursor}, left_out)
        size = PAGE
