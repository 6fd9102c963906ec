"""The throughput of a table and its global indexes: limits per partition key and per table, as token buckets.

A request is refused while a bucket that it needs is empty; otherwise its units are taken, even beyond the last. Local
indexes belong to the key of their table.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.aws_model.assumptions import Assumptions

Key = tuple[str, str, str]  # table or index, partition key or partition or "" for all of it, "w" or "r"


@dataclass(frozen=True, slots=True)
class Warm:
    """The warm throughput of a table and its indexes, in units a second."""

    writes: float
    reads: float


class Throughput:
    """``refused`` counts refusals by table or index, and by what was exhausted: a key or the table. ``warm`` has the
    tables that were warmed; a key of theirs takes no more than one of a new table."""

    def __init__(self, assumed: Assumptions, warm: Mapping[str, Warm] | None = None) -> None:
        self._assumed = assumed
        self._warm = warm or {}
        self._level: dict[Key, tuple[float, float]] = {}  # tokens, and the instant of that
        self.refused: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()

    def admits(self, places: Iterable[tuple[str, str]], kind: str, now: float) -> bool:
        """Whether each of these places, (table or index, partition key), has throughput left."""
        for name, key in places:
            for which in (self._partition(name, key), ""):
                if self._tokens((name, which, kind), now) <= 0:
                    self.refused[f"{name} {'key' if which else 'table'}"] += 1
                    return False
        return True

    def take(self, name: str, key: str, kind: str, units: float, now: float) -> None:
        self.taken[f"{name} {kind}"] += units  # type: ignore[assignment]  # a Counter adds floats, too
        for which in (self._partition(name, key), ""):
            self._level[name, which, kind] = (self._tokens((name, which, kind), now) - units, now)

    def _partition(self, name: str, key: str) -> str:
        """What limits a key: the key itself, or the partition that a hash of it names. A table has as many partitions
        as it needs for its throughput."""
        assumed = self._assumed
        if not assumed.shared_partitions:
            return key
        needs = (
            self._rate((name, "", "w")) / assumed.key_writes_per_s,
            self._rate((name, "", "r")) / assumed.key_reads_per_s,
        )
        return f"partition {zlib.crc32(key.encode()) % math.ceil(max(needs))}"

    def _tokens(self, key: Key, now: float) -> float:
        rate = self._rate(key)
        tokens, since = self._level.get(key, (rate * self._assumed.burst_s, now))
        return min(rate * self._assumed.burst_s, tokens + rate * (now - since) / 1000)

    def _rate(self, key: Key) -> float:
        assumed, (name, which, kind) = self._assumed, key
        if which:
            return assumed.key_writes_per_s if kind == "w" else assumed.key_reads_per_s
        least = assumed.table_writes_per_s if kind == "w" else assumed.table_reads_per_s
        warm = self._warm.get(name.partition("/")[0])
        return max(least, (warm.writes if kind == "w" else warm.reads) if warm else 0.0)
