"""Usage as numbers that can be added, scaled and subtracted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.cost.tally import Tally, Written

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a tally or of a part of it. `times` counts writes; the units are those of tables and indexes."""

    calls: Mapping[str, float] = field(default_factory=dict)
    gb_seconds: float = 0.0
    waited_seconds: float = 0.0
    log_bytes: float = 0.0
    stored_bytes: float = 0.0
    times: Mapping[Written, float] = field(default_factory=dict)
    table_units: Mapping[Written, float] = field(default_factory=dict)
    index_units: Mapping[Written, float] = field(default_factory=dict)
    read_units: Mapping[Written, float] = field(default_factory=dict)
    sizes: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, tally: Tally) -> Usage:
        reads = {key: halves / 2 for key, halves in tally.reads.items()}
        return cls(
            dict(tally.calls),
            tally.gb_seconds,
            tally.waited_seconds,
            tally.log_bytes,
            tally.stored_bytes,
            dict(tally.times),
            dict(tally.table_units),
            dict(tally.index_units),
            reads,
            dict(tally.sizes),
        )

    def __mul__(self, factor: float) -> Usage:
        return _combined(Usage(), self, 0, factor)

    def __sub__(self, other: Usage) -> Usage:
        return _combined(self, other, 1, -1)


def _combined(one: Usage, other: Usage, a: float, b: float) -> Usage:
    return Usage(
        _sum(one.calls, other.calls, a, b),
        one.gb_seconds * a + other.gb_seconds * b,
        one.waited_seconds * a + other.waited_seconds * b,
        one.log_bytes * a + other.log_bytes * b,
        one.stored_bytes * a + other.stored_bytes * b,
        _sum(one.times, other.times, a, b),
        _sum(one.table_units, other.table_units, a, b),
        _sum(one.index_units, other.index_units, a, b),
        _sum(one.read_units, other.read_units, a, b),
        {**other.sizes, **one.sizes},
    )


def _sum(one: Mapping[K, float], other: Mapping[K, float], a: float, b: float) -> dict[K, float]:
    keys = [*one, *(key for key in other if key not in one)]
    sums = {key: one.get(key, 0) * a + other.get(key, 0) * b for key in keys}
    # Sums of zero are left out; a rounding error of floating-point arithmetic counts as zero.
    return {key: value for key, value in sums.items() if abs(value) > 1e-9}
