"""Caches the parsed rows: most calls of a long test read items that were read before, and items never change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.log import logger

MAX_ROWS = 20_000  # rows that are cached
_known: dict[tuple[Any, int], tuple[Mapping[str, Any], Any]] = {}
_plain = items.from_item


def _from_item(kind: Any, item: Mapping[str, Any]) -> Any:
    # The cache keeps the item beside its row. As long as it does, no other item has the same identity.
    found = _known.get((kind, id(item)))
    if found is None:
        if len(_known) >= MAX_ROWS:
            _known.clear()
        found = _known[kind, id(item)] = (item, _plain(kind, item))
    return found[1]


@contextmanager
def rows_are_cached() -> Iterator[None]:
    """Build each row once per item, and write no log. Both take half of the time of a crossing. Tests that begin in the
    same world share the rows.
    """
    before, level = items.from_item, logger.level
    items.from_item = _from_item
    logger.setLevel("CRITICAL")
    try:
        yield
    finally:
        items.from_item = before
        logger.setLevel(level)
