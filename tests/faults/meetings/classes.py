"""Tries one order of each class: two orders are in one class if one becomes the other by swaps of neighbours that
commute (`footprints.py`). All orders of a class end in the same state, with the same answers.

The search has no limit of switches. It plays an order, and finds each pair of conflicting calls that could come in the
other order. Later it plays that order (dynamic partial-order reduction with source sets: Abdulla, Aronis, Jonsson and
Sagonas, 2014). Sleep sets avoid an order whose class was tried. The footprints are those of the calls that were made,
so calls may depend on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.faults.meetings.footprints import Footprint

Event = tuple[int, Footprint]
"""A call, and the invocation that made it."""


@dataclass
class Node:
    """A moment between two calls. ``wanted`` go on from here in some order, ``tried`` have gone on. An invocation in
    ``sleep`` need not: what follows was tried before, until a call that conflicts with its own.
    """

    sleep: dict[int, Footprint] = field(default_factory=dict)
    wanted: set[int] = field(default_factory=set)
    tried: dict[int, Footprint] = field(default_factory=dict)
    before: str = ""  # of the call that was made from here in the last order

    @property
    def left(self) -> set[int]:
        return self.wanted - self.tried.keys() - self.sleep.keys()


@dataclass
class Result:
    """``redundant`` orders were begun and given up, because their class had been tried."""

    classes: int = 0
    redundant: int = 0
    whole: bool = True


class NotRepeatable(Exception):
    """The same calls did something else when they were made again, so orders that were left out may matter."""


class Classes:
    """The search of one meeting. A play asks `choose` before each call, reports the call to `made`, and its end to
    `ended`.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._path: list[int] = []  # what is repeated of the order before
        self._made: list[Event] = []
        self._last = -1
        self.result = Result()

    @property
    def calls(self) -> Sequence[Event]:
        """The calls of the last order."""
        return self._made

    def search(self, play: Callable[[Classes], bool], most: int) -> Result:
        """Play one order of each class, up to ``most``. ``play`` returns whether the search should go on."""
        while True:
            self._made, self._last = [], -1
            goes_on = play(self)
            self._reverse_races()
            while self._nodes and not self._nodes[-1].left:
                self._nodes.pop()
            enough = self.result.classes >= most or self.result.redundant >= most
            if not goes_on or not self._nodes or enough:
                self.result.whole = goes_on and not self._nodes
                return self.result
            self._path = [*self._path_to(len(self._nodes) - 1), min(self._nodes[-1].left)]

    def choose(self, able: Sequence[int]) -> int | None:
        """The invocation that makes the next call; None if every order that follows was tried."""
        depth = len(self._made)
        if depth == len(self._nodes):
            self._nodes.append(Node(self._sleep_after()))
        if depth < len(self._path):
            return self._path[depth]
        node = self._nodes[depth]
        awake = [actor for actor in able if actor not in node.sleep]
        if not awake:
            return None
        chosen = self._last if self._last in awake else awake[0]
        node.wanted.add(chosen)
        return chosen

    def made(self, actor: int, call: Footprint) -> None:
        """Note a call that was made."""
        node = self._nodes[len(self._made)]
        text = f"{actor} {call.text}"
        if len(self._made) < len(self._path) - 1 and node.before != text:
            raise NotRepeatable(f"call {len(self._made)} was {node.before}, and is {text} in the same order")
        node.before = text
        node.tried[actor] = call
        self._made.append((actor, call))
        self._last = actor

    def ended(self, whole: bool) -> None:
        """Note that an order was played to its end, or was given up."""
        if whole:
            self.result.classes += 1
        else:
            self.result.redundant += 1

    def _path_to(self, depth: int) -> list[int]:
        return [actor for actor, _ in self._made[:depth]]

    def _sleep_after(self) -> dict[int, Footprint]:
        """Who sleeps after the last call: each invocation that slept or went on before it, and commutes with it."""
        if not self._made:
            return {}
        node, (actor, call) = self._nodes[-1], self._made[-1]
        known = {**node.sleep, **node.tried}
        return {other: own for other, own in known.items() if other != actor and not own.conflicts(call)}

    def _reverse_races(self) -> None:
        """For each two calls in conflict with none in between that orders them, want the other order."""
        before = happens_before(self._made)
        for late, (actor, _) in enumerate(self._made):
            ordered: set[int] = set()  # calls before this one because of others in between
            for early in reversed(range(late)):
                other = self._made[early][0]
                if early in ordered or early not in before[late]:
                    continue
                ordered |= before[early]
                if other == actor:
                    continue
                behind = [each for each in range(early + 1, late) if early not in before[each]] + [late]
                first = {self._made[each][0] for each in behind if not before[each].intersection(behind)}
                node = self._nodes[early]
                if not first & (node.wanted | node.tried.keys()):
                    node.wanted.add(actor if actor in first else min(first))


def happens_before(made: Sequence[Event]) -> list[set[int]]:
    """For each call, the numbers of the calls that come before it in every order of its class."""
    before: list[set[int]] = []
    for late, (actor, call) in enumerate(made):
        found: set[int] = set()
        for early in reversed(range(late)):
            other, own = made[early]
            if early not in found and (other == actor or own.conflicts(call)):
                found.add(early)
                found |= before[early]
        before.append(found)
    return before


def class_of(made: Sequence[Event]) -> tuple[tuple[int, ...], ...]:
    """The Foata normal form: in each step, the invocations whose next call has no call left that must come before it.
    Equal for two orders of one class.
    """
    before = happens_before(made)
    level: list[int] = []
    for number in range(len(made)):
        level.append(1 + max((level[each] for each in before[number]), default=-1))
    steps: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for number, (actor, _) in enumerate(made):
        steps[level[number]].append(actor)
    return tuple(tuple(sorted(step)) for step in steps)
