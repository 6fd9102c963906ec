"""The order of the calls of several invocations, as text that a test prints and a command plays again.

``a4 b12 +65s a3 b a``: the first invocation makes 4 calls, the second 12. Then 65 seconds pass, the hints of that time
arrive and a tick comes. The first makes 3 more calls; then the second runs to its end, and so does the first. With
``~65s`` only the clock moves: hints come late, and so does the tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

LETTERS = "abc"
Segment = tuple[int, int | None]
"""Which invocation goes on, and for how many calls; None: to its end."""
TIME = -1
"""In the place of an invocation: time passes."""


@dataclass(frozen=True, slots=True)
class Order:
    """``span`` is the time that passes at the segment ``TIME``, such as ``+65s`` or ``~65s``."""

    segments: tuple[Segment, ...]
    span: str = ""

    def __str__(self) -> str:
        return " ".join(self._described(actor, calls) for actor, calls in self.segments)

    def _described(self, actor: int, calls: int | None) -> str:
        return self.span if actor == TIME else f"{LETTERS[actor]}{'' if calls is None else calls}"

    @property
    def has_time(self) -> bool:
        return any(actor == TIME for actor, _ in self.segments)

    def then(self, actor: int, calls: int | None = None) -> Order:
        return Order((*self.segments, (actor, calls)), self.span)

    def to_the_end(self, actors: int) -> Order:
        """The order in which every invocation runs to its end."""
        done = {actor for actor, calls in self.segments if calls is None}
        left = tuple((actor, None) for actor in range(actors) if actor not in done)
        return Order((*self.segments, *left), self.span)


def parse(text: str) -> Order:
    segments: list[Segment] = []
    span = ""
    for word in text.split():
        if word[0] in "+~":
            span = word
            segments.append((TIME, 1))
        elif word[0] in LETTERS and (word[1:].isdecimal() or not word[1:]):
            segments.append((LETTERS.index(word[0]), int(word[1:]) if word[1:] else None))
        else:
            raise ValueError(f"expected a segment such as a4, b, +65s or ~65s, got {word!r} in {text!r}")
    return Order(tuple(segments), span)


def in_segments(made: Sequence[int], time: int, span: str) -> Order:
    """The order of these calls, each given by its invocation. Time passes at the number ``time``."""
    runs = [(actor, len(list(calls))) for actor, calls in groupby(made)]
    return Order(tuple((TIME, 1) if actor == time else (actor, calls) for actor, calls in runs), span)
