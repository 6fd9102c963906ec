"""Put a world back as it was, instead of building it anew: a copy costs a hundredth of a deployment."""

from __future__ import annotations

import pickle
from typing import Any

from tests.faults.memory_tables import QuickWorld

_OUTSIDE = ("_clock", "_now")


class Snapshot:
    """The tables, the clock, the hints, and all that the fakes keep, as they are at this moment."""

    def __init__(self, world: QuickWorld) -> None:
        self._world = world
        self._tables = world.tables.saved()
        self._rest = pickle.dumps([_kept(thing) for thing in _things(world)])

    def restore(self) -> None:
        self._world.tables.restore(self._tables)
        # Versions are cached for ever, for they never change. Of another order the same number may be another version.
        vars(self._world.ports.catalog)["_versions"].clear()
        for thing, kept in zip(_things(self._world), pickle.loads(self._rest), strict=True):
            vars(thing).update(kept)


def fingerprint(world: QuickWorld) -> int:
    """A number that two worlds share if they are the same in all that a flow can see."""
    return hash((world.tables.digest, repr([_kept(thing) for thing in _things(world)])))


def _things(world: QuickWorld) -> list[Any]:
    targets = world.targets
    return [world.clock, world.hints, targets, targets.emr, targets.queue, world.payloads, world.lake, world.outside]


def _kept(thing: Any) -> dict[str, Any]:
    """What it keeps; not who it knows, nor what the scheduler has put before its methods."""
    if isinstance(thing, Outside):
        return vars(thing)
    names = ("says", "load", "measured", "asked") if hasattr(thing, "emr") else vars(thing)
    if hasattr(thing, "now"):
        return {"_now": thing.now()}
    return {name: vars(thing)[name] for name in names if name not in _OUTSIDE and not callable(vars(thing)[name])}


class Outside:
    """What those outside remember who are no part of the world, such as the leases of workers."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
