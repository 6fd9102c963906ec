"""Single rows by their keys. Implements `ports.Rows`."""

from __future__ import annotations

from typing import Any, TypeVar

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.core.rows import kinds
from chalicelib.core.rows.kinds import Key, Kind, Part
from chalicelib.core.rows.ref import Ref

R = TypeVar("R")
MAX_FIXED = 20_000  # rows that never change, in memory, one or two KB each


class DynamoRows:
    """``fixed`` are the rows that were read and never change: they hold for the life of the process."""

    def __init__(self, dynamo: Dynamo, fixed: dict[Key, Any] | None = None) -> None:
        self._dynamo = dynamo
        self._fixed: dict[Key, Any] = {} if fixed is None else fixed

    def over(self, dynamo: Dynamo) -> DynamoRows:
        """The same rows over another `Dynamo`; those that are known are shared."""
        return DynamoRows(dynamo, self._fixed)

    def knows(self, key: Key) -> bool:
        return key in self._fixed

    def get(self, row: type[R], *values: Part) -> R | None:
        found: R | None = self._get(kinds.ROWS[row], kinds.key(row, *values))
        return found

    def of(self, ref: Ref) -> Any:
        place = kinds.at(ref)
        return self._get(*place) if place is not None else None

    def _get(self, kind: Kind, key: Key) -> Any:
        if not kind.fixed:
            return self._dynamo.get(key, kind.row)
        found = self._fixed.get(key) or self._dynamo.get(key, kind.row)
        if found is not None:
            if len(self._fixed) >= MAX_FIXED:
                self._fixed.clear()
            self._fixed[key] = found
        return found
