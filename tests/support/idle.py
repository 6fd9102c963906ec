"""Leaves out the ticks that find no work. Most of the time of a recovery is idle, and each tick queries three indexes.

A tick reads only the rows that wake soon, and the hints that are due. `tests/faults/test_idle.py` shows that a tick
that is left out changes nothing.
"""

from __future__ import annotations

from functools import partial

from chalicelib.aws.tables import items
from chalicelib.core.instants import duration, iso
from sluice.testing.app import LEAD, busy_from
from tests.support.world import World


def is_idle(world: World) -> bool:
    """Whether a tick has nothing to do now. False for tables that are not in this process."""
    if not world.is_in_memory:
        return False
    soon = iso(world.clock.now() + LEAD)
    return not any("wake_at" in row and row["wake_at"]["S"] <= soon and not items.is_listed(row)
                   for _, row in world.tables.rows())  # fmt: skip


def tick(world: World) -> None:
    """A tick, or only the hints that are due."""
    if is_idle(world):
        world.settle()
    else:
        world.tick()


def pass_by(world: World, span: str) -> None:
    """Move the clock of a world by a span, without the ticks that find no work."""
    if world.is_in_memory:
        world.pass_until(world.clock.now() + duration(span), partial(busy_from, world.tables))
    else:
        world.pass_by(span)
