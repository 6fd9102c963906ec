"""Pull workers in tests: one at a time, with requests made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.runs.workers import LeaseId, parse_lease_id
from chalicelib.flow.runs import workers
from chalicelib.flow.runs.workers import Report
from tests.support.answers import read
from tests.support.world import World

POOL = "demo.etl"
PULLED: dict[str, Any] = {"type": "worker", "pool": "etl", "arguments": ["--fast"]}


def lease_id(text: str) -> LeaseId:
    parsed = parse_lease_id(text)
    assert parsed is not None
    return parsed


@dataclass
class PullWorker:
    """A worker with a name, and the leases that it assumes to hold, oldest first."""

    world: World
    name: str
    leases: list[dict[str, Any]] = field(default_factory=list)

    def claim(self, capacity: int = 1, pool: str = POOL, wait: int = 0) -> list[dict[str, Any]]:
        taken = workers.claim(self.world.ports, pool, self.name, capacity, wait).leases
        self.leases += taken
        return taken

    def beat(self, place: int = -1, message: str = "", **metrics: Any) -> dict[str, Any]:
        return read(workers.heartbeat(self.world.ports, self._lease(place), self.name, message, metrics or None))

    def succeed(self, place: int = -1, **reported: Any) -> dict[str, Any]:
        return read(workers.report(self.world.ports, self._lease(place), self.name, Report(True, 0, **reported)))

    def fail(self, place: int = -1, exit_code: int = 1, **reported: Any) -> dict[str, Any]:
        return read(
            workers.report(self.world.ports, self._lease(place), self.name, Report(False, exit_code, **reported))
        )

    def release(self, place: int = -1, why: str = "") -> dict[str, Any]:
        return read(workers.release(self.world.ports, self._lease(place), self.name, why))

    def _lease(self, place: int) -> LeaseId:
        return lease_id(self.leases[place]["lease"])


def run_now(world: World, name: str = "nightly", request: str = "r1", **properties: Any) -> str:
    """Request a run, and let its offer come into its pool. Returns its id."""
    job = world.run_now(name, request, **properties)
    world.settle()
    return job


def lease_lost(act: Callable[[], Any]) -> str:
    """The reason in the error of a lost lease."""
    with pytest.raises(SluiceError) as refused:
        act()
    assert (refused.value.code, refused.value.status) == ("lease_lost", 409)
    return refused.value.message
