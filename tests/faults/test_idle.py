"""A tick that is left out because no row wakes soon would have changed nothing."""

from __future__ import annotations

import pytest

from tests.faults import dying
from tests.faults.dying import play, world_for
from tests.faults.test_crash_points import SCENARIOS
from tests.support import idle
from tests.support.snapshot import fingerprint
from tests.support.world import World

# A timer, a pace, a queue, a lease of a worker, a backfill: what a tick finds.
SHORT = (
    "one fire each to a queue, to EMR, and to a trigger of two leaves",
    "a policy, and a pool behind it",
    "a worker that dies, and another that does its work",
    "a backfill whose schedule is deleted",
    "a feed that comes, and one that does not",
)
# In each moment of these a row wakes within minutes.
BUSY = ("schedules whose life ends, by their last fire and by their ttl",)


@pytest.mark.parametrize("name", SHORT)
def test_a_tick_that_is_left_out_would_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _ticks_in_idle_moments_change_nothing(name, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in SHORT])
def test_no_tick_left_out_would_change_any_scenario(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _ticks_in_idle_moments_change_nothing(name, monkeypatch)


def _ticks_in_idle_moments_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = []

    def ticked(world: World) -> bool:
        if idle.is_idle(world):
            world.settle()  # as after a tick that is left out
        if idle.is_idle(world):
            before = fingerprint(world)
            world.tick()
            assert fingerprint(world) == before, "a tick that was left out has an effect"
            left_out.append(world.clock.now())
        return idle.is_idle(world)

    monkeypatch.setattr(dying, "is_idle", ticked)
    play(SCENARIOS[name], world_for(SCENARIOS[name]))
    assert left_out or name in BUSY, "no tick was left out"
