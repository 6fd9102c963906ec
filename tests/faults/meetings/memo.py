"""Read each stored item once: most calls of most orders read items that were read before, and these never change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.log import logger

MOST = 20_000  # rows that are remembered


@contextmanager
def fast() -> Iterator[None]:
    """Rows are built once for each item, and nothing is logged: half of the time of an order goes into these."""
    plain, level = items.from_item, logger.level
    known: dict[tuple[Any, int], tuple[Mapping[str, Any], Any]] = {}

    def from_item(kind: Any, item: Mapping[str, Any]) -> Any:
        # The item is kept beside its row: as long as it is, no other item has its identity.
        found = known.get((kind, id(item)))
        if found is None:
            if len(known) >= MOST:
                known.clear()
            found = known[kind, id(item)] = (item, plain(kind, item))
        return found[1]

    items.from_item = from_item
    logger.setLevel("CRITICAL")
    try:
        yield
    finally:
        items.from_item = plain
        logger.setLevel(level)
