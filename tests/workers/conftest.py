"""Worlds with pull workers: two schedules of one workflow, and two workers of its pool."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.pull_workers import PULLED, PullWorker
from tests.support.world import World, flights

TWICE: dict[str, Any] = {"target": PULLED, "retries": {"attempts": 2, "delay": "10s"}}
AT_THREE = {"type": "time", "expression": "0 3 * * *"}
NIGHTLY: dict[str, Any] = {"workflow": "pulled", "enabled": True, "trigger": AT_THREE}
STATUSES = ["STARTED", "COMPLETED", "FAILED", "KILLED"]
AFTER: dict[str, Any] = {
    "workflow": "notify",
    "enabled": True,
    "trigger": {"type": "program_status", "workflow": "pulled", "statuses": STATUSES},
}


@pytest.fixture
def world() -> World:
    made = World()
    urgent = {**NIGHTLY, "priority": 9}
    made.deploy(flights({"nightly": NIGHTLY, "urgent": urgent}, pulled=TWICE))
    return made


@pytest.fixture
def ann(world: World) -> PullWorker:
    return PullWorker(world, "ann")


@pytest.fixture
def bob(world: World) -> PullWorker:
    return PullWorker(world, "bob")
