"""Two invocations side by side, one call of the tables or of a target at a time, in every order with few switches.

Each runs in its own thread, but never at once: a switch happens only before a call, where the test requires one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.world import World

ENDLESS = 1_000_000
Act = Callable[[], Any]


class Actor:
    """An invocation that waits before its next call until `let` allows it."""

    def __init__(self, act: Act) -> None:
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._allowance = 0
        self.done = False
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(act,), daemon=True)
        self.thread.start()

    def let(self, calls: int) -> None:
        """Let the invocation make this many calls, or end."""
        if not self.done:
            self._allowance = calls
            self._go.release()
            self._stopped.acquire()

    def before_call(self) -> None:
        if self._allowance == 0:
            self._stopped.release()
            self._go.acquire()
        self._allowance -= 1

    def _run(self, act: Act) -> None:
        self._go.acquire()
        try:
            act()
        except BaseException as error:  # raised again when the outcome is read
            self.error = error
        self.done = True
        self._stopped.release()


def side_by_side(world: World, first: Act, second: Act, calls: tuple[int, int]) -> tuple[bool, bool]:
    """The first makes this many calls, then the second this many. Then the first runs to its end, then the second.

    Returns which of them had calls left at the switches: for the others a later switch makes no difference.
    """
    actors = (Actor(first), Actor(second))
    by_thread = {actor.thread.ident: actor for actor in actors}

    def before_call() -> None:
        by_thread[threading.get_ident()].before_call()

    emr = world.targets.emr
    plain = {name: getattr(emr, name) for name in ("start", "status", "find", "cancel")}
    for name, method in plain.items():
        setattr(emr, name, lambda *args, method=method: (before_call(), method(*args))[1])
    world.tables.before_call = before_call
    try:
        left = []
        for actor, count in zip(actors, calls, strict=True):
            if count:
                actor.let(count)
            left.append(not actor.done)
        for actor in actors:
            actor.let(ENDLESS)
    finally:
        world.tables.before_call = lambda: None
        for name in plain:
            delattr(emr, name)
    for actor in actors:
        if actor.error is not None:
            raise actor.error
    return left[0], left[1]


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
