"""The figures that summarize a list of durations."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed (nearest rank), so a measured value."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(values: Sequence[float]) -> dict[str, float]:
    """p50, p99 and max in seconds, rounded to a tenth of a millisecond."""
    return {
        "p50_s": round(percentile(values, 0.5), 4),
        "p99_s": round(percentile(values, 0.99), 4),
        "max_s": round(max(values), 4),
    }
