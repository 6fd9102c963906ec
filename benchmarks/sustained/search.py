"""The search for the highest rate that holds: by doubling, then by bisection, and a long probe that confirms it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LIMIT_MS = 1_000  # a rate holds if the p99 of the lateness is below
TOLERANCE = 1.1  # the lowest rate that did not hold is at most so many times the highest that did
CONFIRMATIONS = 5  # a rate that does not hold for long is lowered by the tolerance, and tried so often in all


@dataclass(frozen=True, slots=True)
class Probe:
    """``per_second`` jobs due in each of some seconds, and how many ``arrived``. ``lateness_ms`` has p50, p99 and max;
    None if too few arrived in time for the p99 to be below the limit."""

    per_second: int
    seconds: int
    arrived: int
    lateness_ms: dict[str, float] | None
    doubled: int = 0

    @property
    def jobs(self) -> int:
        return self.per_second * self.seconds

    @property
    def holds(self) -> bool:
        return self.arrived == self.jobs and self.lateness_ms is not None and self.lateness_ms["p99"] < LIMIT_MS

    def as_json(self) -> dict[str, Any]:
        names = ("per_second", "seconds", "arrived", "lateness_ms", "doubled", "holds")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The first rate and the highest one that are tried, and the seconds of a probe and of a confirmation."""

    start: int
    most: int
    probe_s: int
    confirm_s: int


@dataclass
class Search:
    """A search, step by step: `next` is the rate and the seconds of the next probe, until it is None.

    ``low`` is the highest rate that has held so far, 0 if none has; ``high`` the lowest that has not."""

    bounds: Bounds
    low: int = 0
    high: int | None = None
    probes: list[Probe] = field(default_factory=list)
    confirmations: list[Probe] = field(default_factory=list)

    def next(self) -> tuple[int, int] | None:
        rate = self._rate()
        if rate is not None:
            return rate, self.bounds.probe_s
        rate = self._unconfirmed()
        return (rate, self.bounds.confirm_s) if rate else None

    def add(self, probe: Probe) -> None:
        if self._rate() is None:
            self.confirmations.append(probe)
            return
        self.probes.append(probe)
        if probe.holds:
            self.low = probe.per_second
        else:
            self.high = probe.per_second

    def found(self) -> Probe | None:
        """The confirmation that held; None if none did."""
        return next((probe for probe in self.confirmations if probe.holds), None)

    def left(self) -> list[tuple[int, int]]:
        """The rates and seconds of the probes that are still to come, if the next rate does not hold. How often a rate
        will be doubled is not known."""
        ahead = self.next()
        if ahead is None:
            return []
        rate, seconds = ahead
        if self._rate() is None:
            return [ahead]
        bisected = bool(self.low and self.high)
        width = self.high / self.low if self.low and self.high else 2.0
        # Each bisection halves the logarithm of the width. Before the first, the next rate doubles or halves the last.
        bisections = math.ceil(math.log2(max(1.0, math.log(width) / math.log(TOLERANCE))))
        more = max(0, bisections - bisected)
        return [ahead, *[(rate, seconds)] * more, (rate, self.bounds.confirm_s)]

    def _rate(self) -> int | None:
        """The rate of the next probe, before the confirmation."""
        if self.high is None:
            if self.low >= self.bounds.most:
                return None
            return min(2 * self.low or self.bounds.start, self.bounds.most)
        if not self.low:
            return self.high // 2 or None
        middle = round(math.sqrt(self.low * self.high))
        return middle if self.high > TOLERANCE * self.low and self.low < middle < self.high else None

    def _unconfirmed(self) -> int | None:
        if not self.confirmations:
            return self.low or None
        last = self.confirmations[-1]
        if last.holds or len(self.confirmations) == CONFIRMATIONS:
            return None
        return min(last.per_second - 1, round(last.per_second / TOLERANCE)) or None


def highest(bounds: Bounds, play: Callable[[int, int], Probe], told: Callable[[Search], None]) -> Search:
    """Search with ``play``, which plays a rate for some seconds. ``told`` gets the search before each probe."""
    search = Search(bounds)
    while ahead := search.next():
        told(search)
        search.add(play(*ahead))
    return search
