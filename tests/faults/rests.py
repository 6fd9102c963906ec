"""The end of a world whose runs succeed: all work ends, with ticks and hints; schedules without an end are closed."""

from __future__ import annotations

from tests.support.world import World


def come_to_an_end(world: World, minutes: int, endless: tuple[str, ...]) -> None:
    """Let so many minutes pass, with runs that succeed every two, then close the endless schedules, and let two hours
    pass."""
    for _ in range(minutes // 2):
        world.pass_by("2m")
        world.finish()
        world.settle()
    for name in endless:
        world.disable(name)
    for _ in range(4):
        world.finish()
        world.settle()
        world.clock.pass_by("31m")
        world.tick()
