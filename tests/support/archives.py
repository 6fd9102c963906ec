"""Exports and imports of worlds in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice.operations.archive import export as exports
from sluice.operations.archive import give_up as giving
from sluice.operations.archive import load as loads
from sluice.operations.copies import DynamoCopies
from sluice.operations.rules.manifest import Manifest, Source
from sluice.testing.engine import stopwatch
from sluice.testing.memory_tables import MemoryTables
from tests.support.world import World

SOURCE = Source(catalog="CatalogTable", jobs="JobsTable", runs="RunsTable", lake="lake-bucket", control="control")


class MemoryArchive:
    """Files by name."""

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self.files = dict(files or {})

    def text(self, name: str) -> str | None:
        return self.files.get(name)

    def put(self, name: str, text: str) -> None:
        self.files[name] = text


def copies_of(world: World) -> DynamoCopies:
    return DynamoCopies(world.tables, world.ports.settings, stopwatch())


def exported(world: World, *namespaces: str) -> MemoryArchive:
    archive = MemoryArchive()
    exports.export(copies_of(world), archive, namespaces, SOURCE, world.clock.now())
    return archive


def imported(world: World, archive: MemoryArchive, **how: Any) -> Manifest:
    given = {"into": "here", "buckets": {}, "copy": True, **how}
    return loads.load(copies_of(world), archive, ports=world.ports, **given)


def given_up(world: World, archive: MemoryArchive) -> Manifest:
    return giving.give_up(copies_of(world), archive, world.ports)


def emptied(tables: MemoryTables) -> None:
    """Delete all rows of all tables."""
    for table in tables._tables.values():
        for key in list(table.items):
            table.replace(key, None)
