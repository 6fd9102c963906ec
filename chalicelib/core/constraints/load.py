"""What was measured of a load, and until when that holds (C6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from chalicelib.core.constraints.constraint import Load
from chalicelib.core.documents import Document
from chalicelib.core.instants import HOUR, Instant

MOST_WHY = 300


@dataclass(frozen=True, slots=True)
class LoadReading:
    """A value as text, which keeps it as it was through the tables; None if it could not be had, and ``why``."""

    value: str | None
    at: Instant
    until: Instant
    why: str = ""
    failures: int = 0

    def kept(self) -> dict[str, Any]:
        return asdict(self)


def loads_of(constraints: Iterable[Document]) -> dict[str, Load]:
    """The load constraints of a schedule by what they are called in a job: their number."""
    loads = [each for each in constraints if isinstance(each, Load)]
    return {str(number): each for number, each in enumerate(loads)}


def remembered(readings: Mapping[str, Mapping[str, Any]], key: str) -> LoadReading | None:
    return LoadReading(**readings[key]) if key in readings else None


def told(load: Load, value: float, now: Instant) -> LoadReading:
    return LoadReading(f"{value:.6g}", now, now + load.span)


def failed(load: Load, why: str, before: LoadReading | None, now: Instant) -> LoadReading:
    """No value: asked again after ``recheck``, doubled with every failure up to an hour."""
    failures = before.failures + 1 if before is not None else 1
    pause = max(load.span, min(load.span * 2 ** min(failures - 1, 20), HOUR))
    return LoadReading(None, now, now + pause, why[:MOST_WHY], failures)


def assume(load: Load, met: bool, now: Instant) -> LoadReading:
    """A reading that holds, or does not: what would become of the job then?"""
    bound = load.below if load.below is not None else (load.at_least or 0)
    inside = bound - 1 if load.below is not None else bound
    outside = bound if load.below is not None else bound - 1
    return LoadReading(repr(float(inside if met else outside)), now, now)
