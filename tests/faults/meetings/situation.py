"""A situation: how a moment of the system is built, which acts meet there, and what must hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from chalicelib.core.errors import SluiceError
from tests.faults import invariants
from tests.faults.meetings.footprints import Seen
from tests.faults.meetings.scheduler import Log
from tests.support import idle
from tests.support.world import World

Do = Callable[[World], Any]


@dataclass(frozen=True)
class Act:
    """One invocation. ``note`` returns what is kept of the world at the acknowledgement; ``promise`` checks it."""

    do: Do
    note: Do = lambda world: None
    promise: Callable[[Played, int], None] = lambda played, actor: None
    alone: bool = False  # the act does not meet itself
    reopens: bool = False  # it lets paused jobs start
    seen: Seen | None = None  # what ``note`` and ``promise`` depend on at the end; None: everything, if there are any
    ticks: bool = False  # it leases overdue rows, so that only its own hints wake them

    @property
    def sees(self) -> Seen:
        if self.seen is not None:
            return self.seen
        plain = {each.name: each.default for each in fields(Act)}
        return "nothing" if self.note is plain["note"] and self.promise is plain["promise"] else "everything"


@dataclass(frozen=True)
class Played:
    """An order that was played until its invocations ended."""

    world: World
    log: Log
    acts: Sequence[Act]
    generations: dict[str, int]  # of the schedules, before the invocations

    def acknowledged(self, actor: int) -> Any:
        """What was noted when an act was acknowledged; None if it was refused."""
        ended = self.log.ended[actor]
        return ended.noted if ended.error is None else None


def _nothing(world: World) -> None:
    pass


def come_to_rest(world: World) -> None:
    """Time passes, ticks come, runs succeed."""
    for span in ("1m", "1m", "11m", "11m", "11m", "11m", "11m", "11m"):
        world.clock.pass_by(span)
        idle.tick(world)
        world.finish()
        world.settle()


def at_rest(world: World) -> None:
    invariants.check_rest(world)
    invariants.check_awake(world)


@dataclass(frozen=True)
class Situation:
    """A moment, and the invocations that may meet then.

    ``ended`` must hold when the invocations have ended and no hint of theirs has arrived. ``always`` must hold then and
    later, ``finally_`` at rest. ``after`` is what users do when the invocations have ended. ``rest`` lets all work end.
    ``together`` names the acts that meet, if not all of them do. ``spans`` are the times that may pass between two
    calls.
    """

    build: Callable[[], World]
    acts: dict[str, Act]
    ended: Callable[[Played], None] = lambda played: None
    always: Callable[[Played], None] = lambda played: None
    finally_: Callable[[Played], None] = lambda played: None
    after: Do = _nothing
    rest: Callable[[World], None] = come_to_rest
    check_rest: Callable[[World], None] = at_rest
    together: Sequence[tuple[str, ...]] | None = None
    small: Sequence[str] = ()  # the acts of which three meet
    awake: bool = True  # whether `invariants.check_awake` runs right after the invocations
    accepts: bool = True  # jobs whose trigger is met at the start must become runs or records
    spans: tuple[str, ...] = ("+6s", "~65s")

    def world(self) -> World:
        return self.build()


def refused(error: BaseException | None) -> bool:
    """Whether the error is a refusal. A refused request has ended as a successful one has."""
    return isinstance(error, SluiceError) and error.status < 500


def two(build: Callable[[], World], first: Do, second: Do, **fields: Any) -> Situation:
    """A situation of its own for two invocations."""
    acts = {"first": Act(first), "second": Act(second)}
    return Situation(build, acts, **{"together": [("first", "second")], "spans": (), "accepts": False, **fields})
