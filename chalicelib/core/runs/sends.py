"""How late the events of a bundle were sent: a few counts, which the run of the bundle keeps (T4).

`{"first": 1000, "last": 1300, "late": {"20": 240, "50": 10}, "max": 31}`: 240 events were sent at most 20 ms after
their instants and 10 at most 50 ms. Instants and durations are in ms.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from chalicelib.core.instants import DAY, Instant, Millis

_BOUNDS: tuple[Millis, ...] = tuple(step * 10**power for power in range(10) for step in (1, 2, 5))  # up to 57 days


def of(sent: Iterable[tuple[Instant, Instant]], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The sends of events, each with its instant and that of its send, added to those ``before``."""
    pairs = list(sent)
    known = before or {"first": pairs[0][1], "last": pairs[0][1], "late": {}, "max": 0}
    late = Counter({str(bound): int(count) for bound, count in known["late"].items()})
    for due, at in pairs:
        late[str(_bound(max(0, at - due)))] += 1
    return {
        "first": min(known["first"], *(at for _, at in pairs)),
        "last": max(known["last"], *(at for _, at in pairs)),
        "late": dict(sorted(late.items(), key=lambda entry: int(entry[0]))),
        "max": max(known["max"], *(max(0, at - due) for due, at in pairs)),
    }


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The sends of both."""
    if not one or not other:
        return dict(one or other)
    late = Counter(one["late"]) + Counter(other["late"])
    return {
        "first": min(one["first"], other["first"]),
        "last": max(one["last"], other["last"]),
        "late": dict(sorted(late.items(), key=lambda entry: int(entry[0]))),
        "max": max(one["max"], other["max"]),
    }


def median(sends: Mapping[str, Any]) -> Millis:
    """A bound that half of the events keep: no more than the largest lateness."""
    counts = [(int(bound), int(count)) for bound, count in sends["late"].items()]
    half, found = sum(count for _, count in counts) / 2, 0
    for bound, count in sorted(counts):
        found += count
        if found >= half:
            return min(bound, int(sends["max"]))
    return int(sends["max"])


def _bound(late: Millis) -> Millis:
    return _BOUNDS[bisect_left(_BOUNDS, late)] if late <= _BOUNDS[-1] else 100 * DAY
