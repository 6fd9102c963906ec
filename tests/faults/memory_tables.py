"""Worlds with tables in this process, for tests that play thousands of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from sluice.testing.engine import stopwatch
from sluice.testing.memory_tables import MemoryTables
from tests.support import tables
from tests.support.world import World

_definitions = cache(tables.definitions)


class QuickWorld(World):
    """A world with fresh tables in memory; a test can read them as `tables`."""

    def __init__(self, **tuned: Any) -> None:
        self.tables, names = MemoryTables(), {}
        for logical_id, arguments in _definitions().items():
            names[logical_id.removesuffix("Table").lower() + "_table"] = logical_id
            self.tables.create_table(logical_id, **arguments)
        super().__init__(self.tables, names, patience=stopwatch(), **tuned)
