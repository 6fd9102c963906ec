"""A fire that is due between the instant of an update and its commit runs once, with the old or the new properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.core.writes import PutState, Write
from tests.acceptance.words import any_of, kinds, on, partition, time
from tests.support.ledgers import Before
from tests.support.world import World, flights

TRIGGERS = [time("@every 1m"), time("@every 1m", repeats=1), any_of(time("@every 1m", repeats=1), partition())]


def changes_state(plan: Sequence[Write]) -> bool:
    return any(isinstance(write, PutState) for write in plan)


@pytest.mark.parametrize("workflow", ["clean", "notify"])
@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("slow", ["50ms", "3s", "29s"])
@pytest.mark.parametrize("handled", [True, False])
def test_c13_a_fire_due_while_an_update_is_written_runs_once(
    world: World, trigger: dict[str, Any], workflow: str, slow: str, handled: bool
) -> None:
    tick = on(trigger, workflow)
    world.deploy(flights({"tick": tick}))
    world.pass_by("59999ms")

    def passes() -> None:
        world.pass_by(slow) if handled else world.clock.pass_by(slow)

    undisturbed = world.ports
    world.ports = world.with_ports(ledger=Before(undisturbed.ledger, passes, changes_state))
    world.put("tick", tick | {"properties": {"number": 1}})
    world.ports = undisturbed
    world.pass_by("20s")
    assert len(world.runs("tick")) == 1
    assert kinds(world, "tick") == []
