"""The class of the row that is stored as an item."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from chalicelib.core.rows import kinds


def class_of(item: Mapping[str, Any]) -> str:
    """The name of the class of the row, by its key. No two tables have keys of one form."""
    for table in kinds.TABLES:
        with suppress(ValueError):
            return kinds.kind_of(kinds.Key(table, item["pk"]["S"], item["sk"]["S"])).row.__name__
    raise LookupError(f"expected a row, got {item}")
