"""Restores a world instead of building it again: a copy costs a hundredth of a deployment."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.world import World


_OUTSIDE = ("_clock", "_now", "clock")


class Snapshot:
    """The tables, the ports, the clock, the hints, and the state of the fakes at this moment."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ports = world.ports
        self._tables = world.tables.saved()
        self._posted, self._alarms = world.posted, dict(world.alarms)
        self._rest = pickle.dumps([_kept(thing) for thing in things(world)])

    def restore(self) -> None:
        self._world.in_flight.clear()
        self._world.ports = self._ports
        self._world.posted, self._world.alarms = self._posted, dict(self._alarms)
        self._world.tables.restore(self._tables)
        # Versions never change, so they are cached for ever. In another order the same number may be another version.
        vars(self._world.ports.rows)["_fixed"].clear()
        vars(self._world.ports.catalog)["_lately"].clear()
        for thing, kept in zip(things(self._world), pickle.loads(self._rest), strict=True):
            vars(thing).update(kept)


class Start:
    """A world that is built once. `again` restores it, for each order that begins there."""

    def __init__(self, build: Callable[[], World]) -> None:
        self._world = build()
        self._snapshot = Snapshot(self._world)

    def again(self) -> World:
        self._snapshot.restore()
        return self._world


def fingerprint(world: World) -> int:
    """A number that is equal for two worlds in which every flow behaves the same."""
    return hash((world.tables.digest, repr([_kept(thing) for thing in things(world)])))


def parts_of(world: World) -> dict[str, str]:
    """The state of each part of the world besides its tables, by the name of its class."""
    return {type(thing).__name__: repr(_kept(thing)) for thing in things(world)}


def things(world: World) -> list[Any]:
    """The parts of the world besides its tables."""
    targets = world.targets
    engines = [targets.machines, targets.tasks, targets.batch_jobs, targets.jobs, targets.queries, targets.eks_runs]
    fakes = [targets, targets.emr, targets.queue, *engines, targets.sts, targets.roles]
    return [world.clock, world.hints, *fakes, world.payloads, world.lake, world.outside]


def _kept(thing: Any) -> dict[str, Any]:
    """The object's own state, without references to other objects and without the methods that the
    scheduler replaced.
    """
    if isinstance(thing, Outside):
        return vars(thing)
    names = ("says", "load", "measured", "asked") if hasattr(thing, "emr") else vars(thing)
    if hasattr(thing, "now"):
        return {"_now": thing.now()}
    return {name: vars(thing)[name] for name in names if name not in _OUTSIDE and not callable(vars(thing)[name])}


class Outside:
    """What parties outside the world remember, such as the leases of workers."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
