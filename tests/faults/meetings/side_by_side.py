"""Invocations side by side, one call at a time, in an order that a test gives or in every order with two switches.

A call is one of those before which the scheduler stops: to the tables, to a target, to the payloads, to send a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.faults.meetings.orders import Order, Segment
from tests.faults.meetings.scheduler import Actor, Stage
from tests.support.world import World

Act = Callable[[], Any]


def play(world: World, acts: Sequence[Act], segments: Sequence[Segment]) -> list[Actor]:
    """Carry out the segments of an order, then let each act run to its end. Raises the first error of an act."""
    stage = Stage(world)
    actors = stage.play([(act, lambda: None) for act in acts], Order(tuple(segments)), None, _no_time)
    for actor in actors:
        error = stage.log.ended[actor.number].error
        if error is not None:
            raise error
    return actors


def _no_time(span: str) -> None:
    raise AssertionError(f"no time passes in this order, got {span!r}")


def side_by_side(world: World, first: Act, second: Act, calls: tuple[int, int]) -> tuple[bool, bool]:
    """The first makes this many calls, then the second this many. Then the first runs to its end, then the second.

    Returns which of them had calls left at the switches: for the others a later switch makes no difference.
    """
    actors = play(world, [first, second], [*enumerate(calls)])
    first_left, second_left = (actor.made > count for actor, count in zip(actors, calls, strict=True))
    return first_left, second_left


def every_order(play: Callable[[tuple[int, int]], tuple[bool, bool]], stride: int) -> Iterator[tuple[int, int]]:
    """Play every pair of switches that makes a difference, or every n-th of both. Yields the pairs that were played."""
    first, more = 0, True
    while more:
        second, inner = 1 + first // stride % stride, True
        while inner:
            more, inner = play((first, second))
            yield first, second
            second += stride
        first += stride
