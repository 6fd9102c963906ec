"""Faults of tables and clocks besides kills: throttled and slow calls, lost answers, a clock that steps.

A step of the random worlds sets up each fault for later calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.core.instants import SECOND, Millis
from sluice.testing.memory_tables import MemoryTables
from tests.faults.unreliable_tables import no_answer, throttled
from tests.support.clock import HandClock

# The largest difference between the clocks of two Lambdas: those of AWS are accurate to some milliseconds (NTP).
MAX_SKEW: Millis = SECOND


class LambdaClock:
    """The clock of the Lambda that runs: the true time, a little ahead or behind."""

    def __init__(self, true: HandClock) -> None:
        self._true = true
        self.skew: Millis = 0

    def now(self) -> int:
        return self._true.now() + self.skew

    def wait_until(self, instant: int) -> None:
        self._true.wait_until(instant - self.skew)


class Weather:
    """``busy``: the numbers of calls that are throttled. ``deaf``: the writes whose answer is lost. ``slow``: the
    number of calls that take long, and how long each takes.
    """

    def __init__(self, tables: MemoryTables, clock: HandClock) -> None:
        self._calls: set[int] = set()
        self._writes: set[int] = set()
        self._made = self._written = 0
        self._slow: tuple[int, Millis] = (0, 0)
        self._clock = clock
        self.lambda_clock = LambdaClock(clock)
        tables.before_call, tables.after_write = self._before, self._after

    def busy(self, after: int, calls: int) -> None:
        self._calls |= set(range(self._made + after, self._made + after + calls))

    def deaf(self, after: int, writes: int) -> None:
        self._writes |= set(range(self._written + after, self._written + after + writes))

    def slow(self, calls: int, millis: Millis) -> None:
        self._slow = (calls, millis)

    def clears_up(self) -> None:
        self._calls, self._writes, self._slow, self.lambda_clock.skew = set(), set(), (0, 0), 0

    def undisturbed(self, act: Callable[[], Any]) -> Any:
        """Call a function without faults: reads of the test itself are no calls of a Lambda."""
        kept = self._calls, self._writes, self._slow, self._made, self._written
        self._calls, self._writes, self._slow = set(), set(), (0, 0)
        try:
            return act()
        finally:
            self._calls, self._writes, self._slow, self._made, self._written = kept

    def _before(self) -> None:
        self._made += 1
        left, millis = self._slow
        if left:
            self._slow = (left - 1, millis)
            self._clock.wait_until(self._clock.now() + millis)
        if self._made in self._calls:
            raise throttled()

    def _after(self) -> None:
        self._written += 1
        if self._written in self._writes:
            raise no_answer()
