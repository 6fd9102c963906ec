"""Repairs of worlds in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from sluice.operations.ports import Changed
from sluice.operations.repair import steps
from sluice.operations.repair.repair import Finding, Repair
from sluice.testing.memory import MemoryLake
from tests.support.archives import copies_of
from tests.support.world import World


def mended(world: World, since: int, **how: Any) -> list[Finding]:
    """Repair a world whose tables were restored to ``since`` or later. Returns what was found."""
    given = {"ports": world.ports, "changed": partial(changed, world.lake), **how}
    began = world.targets.emr.started_since(since)
    return steps.run(Repair(copies=copies_of(world), since=since, began=began, **given))


def changed(lake: MemoryLake, bucket: str, prefix: str, since: int) -> Iterator[Changed]:
    """The objects of a lake in memory that were put at an instant or later."""
    for (where, key), at in lake.put_at.items():
        if where == bucket and key.startswith(prefix) and at >= since:
            yield Changed(key, at, lake.sizes.get((where, key), 0), lake.etags.get((where, key), ""))
