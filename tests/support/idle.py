"""Leaves out the ticks that find no work. Most of the time of a recovery is idle, and each tick queries three indexes.

`tests/faults/test_idle.py` shows that a tick that is left out changes nothing.
"""

from __future__ import annotations

from chalicelib.core.instants import Instant, duration
from sluice.testing import engine
from tests.support.world import World


def next_work(world: World) -> Instant:
    """The instant from which a tick has something to do; the present one for tables that are not in this process."""
    return engine.next_work(world.tables, world.ports.settings) if world.is_in_memory else world.clock.now()


def is_idle(world: World) -> bool:
    """Whether a tick has nothing to do now. False for tables that are not in this process."""
    return next_work(world) > world.clock.now()


def tick(world: World) -> None:
    """A tick, or only the hints that are due."""
    if is_idle(world):
        world.settle()
    else:
        world.tick()


def pass_by(world: World, span: str) -> None:
    """Move the clock of a world by a span, without the ticks that find no work."""
    world.pass_until(world.clock.now() + duration(span), lambda: next_work(world))
