"""Which of the fires that an outage has kept from being prepared are made up for, and which are skipped (T5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core.definitions.schedule import CatchUp
from chalicelib.core.instants import DAY, MINUTE, Instant, Millis, format_duration, iso
from chalicelib.core.triggers.occurrences import Series

# A fire is missed when it is prepared so much too late: a tick that comes a little late is no outage.
MISSED_AFTER: Millis = MINUTE
# How many skipped fires are counted one by one in one look; beyond, the record says "at least".
MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Skipped:
    """``count`` fires from ``first`` on are left out, and ``following`` is the one that comes next. ``exact`` False:
    they were more than anybody counts."""

    count: int
    first: Instant
    until: Instant
    following: Instant | None
    exact: bool
    why: str

    @property
    def reason(self) -> str:
        least = "" if self.exact else "at least "
        fires, were, are = ("1 fire", "was", "is") if self.count == 1 else (f"{self.count} fires", "were", "are")
        return f"{least}{fires} from {iso(self.first)} to {iso(self.until)} {were} missed{self.why} and {are} skipped"


def skip(series: Series, nominal: Instant, rule: CatchUp, now: Instant, left: int | None) -> Skipped | None:
    """What is skipped from the occurrence ``nominal`` on, the first that is not prepared yet; None if nothing is.
    ``left`` is how often the trigger may fire still: a fire that is skipped counts as one."""
    stop, why = _stop(series, nominal, rule, now)
    if nominal >= stop:
        return None
    count, following = series.count(nominal, stop, MAX_COUNTED if left is None else min(MAX_COUNTED, left))
    if left is not None and count >= left:
        return _to_the_last(series, Skipped(left, nominal, stop, None, True, why), rule, now)
    exact = following is None or following >= stop
    if not exact and left is None:
        following = series.after(stop - 1)
    return Skipped(count, nominal, stop, following, exact or left is not None, why)


def _to_the_last(series: Series, all_left: Skipped, rule: CatchUp, now: Instant) -> Skipped | None:
    """Of all fires that were left the last one is made up for, if the latest is to be."""
    last = series.nth(all_left.first, all_left.count - 1)
    if rule.mode != "latest" or last is None or last < now - rule.span:
        return all_left
    return replace(all_left, count=all_left.count - 1, following=last) if all_left.count > 1 else None


def _stop(series: Series, nominal: Instant, rule: CatchUp, now: Instant) -> tuple[Instant, str]:
    """All before this instant are skipped, and why."""
    oldest = now - rule.span
    too_old = f" by more than {'a day' if rule.span == DAY else format_duration(rule.span)}"
    if rule.mode == "none":
        return now - MISSED_AFTER, ", of which none is made up for,"
    if rule.mode == "latest" and nominal < now - MISSED_AFTER:
        latest = series.last_by(now, nominal)
        if latest is not None and latest >= oldest:
            return latest, ", of which only the latest is made up for,"
    return oldest, too_old
