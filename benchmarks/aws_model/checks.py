"""The promises that every run of the model asserts: never early, nothing missed, nothing doubled, no pace exceeded.

docs/guarantees.md lets a delivery come twice only after an invocation died between a send and its record, or a call
had no answer. The model stops invocations at their timeout, so each such death may repeat what it had sent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from benchmarks.aws_model.region import Region


class Broken(AssertionError):
    """A run of the model broke a promise."""


def check_arrivals(region: Region, expected: int) -> None:
    """Raises Broken if a message came early, did not come, came too often, or a handler raised."""
    arrivals = region.target.arrivals
    early = [one for one in arrivals if one.lateness < 0]
    if early:
        raise Broken(f"expected no message before its instant, got {len(early)}, such as {early[0]}")
    times = Counter(one.event_id for one in arrivals)
    if len(times) != expected:
        raise Broken(f"expected {expected} events at the target, got {len(times)}; {_state(region)}")
    check_doubled(sum(count - 1 for count in times.values()), deaths(region), region)


def check_starts(region: Region, expected: int) -> None:
    """Raises Broken unless each job run was started once."""
    names = Counter(name for _, name in region.target.started)
    if len(names) != expected:
        raise Broken(f"expected {expected} job runs, got {len(names)}; {_state(region)}")
    check_doubled(sum(count - 1 for count in names.values()), 0, region)


def check_doubled(doubled: int, deaths: int, region: Region | None = None) -> None:
    if doubled and not deaths:
        state = _state(region) if region else "no invocation died"
        raise Broken(f"expected no event twice where no invocation died, got {doubled}; {state}")


def check_pace(starts: Sequence[float], most: int, interval_ms: int) -> None:
    """Raises Broken if more than ``most`` start calls begin in any sliding interval."""
    at = sorted(starts)
    worst = max((bisect_left(at, first + interval_ms) - number for number, first in enumerate(at)), default=0)
    if worst > most:
        raise Broken(f"expected at most {most} starts in any {interval_ms} ms, got {worst}")


def deaths(region: Region) -> int:
    return sum(one.usage.died for one in region.lambdas.values())


def _state(region: Region) -> str:
    used = {name: one.usage.invocations for name, one in region.lambdas.items()}
    return f"{deaths(region)} invocations died of {used}; errors {region.raised[:3]}"
