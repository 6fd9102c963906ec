"""What a search needs to know of a moment of the system: how it came about, who may meet there, what must hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.core.errors import SluiceError
from tests.faults import invariants
from tests.faults.meetings.scheduler import Log
from tests.faults.meetings.snapshot import Outside
from tests.faults.memory_tables import QuickWorld
from tests.support.world import World

Do = Callable[[World], Any]


@dataclass(frozen=True)
class Act:
    """One invocation. ``note`` is what is kept of the world when it is acknowledged; ``promise`` looks at that."""

    do: Do
    note: Do = lambda world: None
    promise: Callable[[Played, int], None] = lambda played, actor: None
    alone: bool = False  # it is not let to meet itself
    reopens: bool = False  # it lets go on what a pause had stopped
    ticks: bool = False  # it leases what is overdue, so that only the hints that it sends come to that


@dataclass(frozen=True)
class Played:
    """An order that was played to the end of its invocations, and what comes after."""

    world: QuickWorld
    log: Log
    acts: Sequence[Act]
    generations: dict[str, int]  # of the schedules, before anything met

    def acknowledged(self, actor: int) -> Any:
        """What was noted when an act was acknowledged; None if it was refused."""
        ended = self.log.ended[actor]
        return ended.noted if ended.error is None else None


def _nothing(world: World) -> None:
    pass


def come_to_rest(world: QuickWorld) -> None:
    """Time passes, ticks come, runs succeed."""
    for span in ("1m", "1m", "11m", "11m", "11m", "11m", "11m", "11m"):
        world.clock.pass_by(span)
        world.tick()
        world.finish()
        world.settle()


def at_rest(world: QuickWorld) -> None:
    invariants.check_rest(world)
    invariants.check_awake(world)


@dataclass(frozen=True)
class Situation:
    """A moment, and the invocations that may come then.

    ``ended`` holds when the invocations have ended and no hint of theirs has arrived, ``always`` then and at every
    later moment, ``finally_`` once all has come to rest.
    ``after`` is what people do when the invocations have ended; ``rest`` brings the rest about.
    ``together`` names the acts that meet, if not all of them do. ``spans`` are the times that may pass in between.
    """

    build: Callable[[], QuickWorld]
    acts: dict[str, Act]
    ended: Callable[[Played], None] = lambda played: None
    always: Callable[[Played], None] = lambda played: None
    finally_: Callable[[Played], None] = lambda played: None
    after: Do = _nothing
    rest: Callable[[QuickWorld], None] = come_to_rest
    check_rest: Callable[[QuickWorld], None] = at_rest
    together: Sequence[tuple[str, ...]] | None = None
    small: Sequence[str] = ()  # the acts that meet by three
    awake: bool = True  # whether `invariants.check_awake` is asked right after the invocations
    accepts: bool = True  # what is met when it begins is to become a run or a record
    spans: tuple[str, ...] = ("+6s", "~65s")

    def world(self) -> QuickWorld:
        made = self.build()
        if not hasattr(made, "outside"):
            made.outside = Outside()
        return made


def refused(error: BaseException | None) -> bool:
    """A request that Sluice answers with a refusal has come to its end as well as any."""
    return isinstance(error, SluiceError) and error.status < 500


def two(build: Callable[[], QuickWorld], first: Do, second: Do, **fields: Any) -> Situation:
    """Two invocations that meet at a moment, and a story of their own of what comes of it."""
    acts = {"first": Act(first), "second": Act(second)}
    return Situation(build, acts, **{"together": [("first", "second")], "spans": (), "accepts": False, **fields})
