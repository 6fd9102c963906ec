"""Catch-up: which fires that were not prepared during an outage are prepared later, and which are skipped (T5).

A fire is late by the time that has passed since it was due. Its nominal instant may be much earlier: jitter is no
outage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core.definitions.schedule import CatchUp
from chalicelib.core.instants import DAY, MINUTE, Instant, Millis, format_duration, iso
from chalicelib.core.triggers.time import Series

# A fire counts as missed if it is prepared later than this. A tick that is a little late is no outage.
MISSED_AFTER: Millis = MINUTE
# How many skipped fires one emit counts one by one. Beyond this number, the text of the record has "at least".
MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Skipped:
    """``count`` fires from ``first`` on, and before ``until``, are skipped; ``following`` is the next fire. ``exact``
    is False if there were more than `MAX_COUNTED`."""

    count: int
    first: Instant
    until: Instant
    following: Instant | None
    exact: bool
    why: str

    @property
    def reason(self) -> str:
        """The reason on the record."""
        least = "" if self.exact else "at least "
        fires, were, are = ("1 fire", "was", "is") if self.count == 1 else (f"{self.count} fires", "were", "are")
        return f"{least}{fires} from {iso(self.first)} to {iso(self.until)} {were} missed{self.why} and {are} skipped"


def skip(series: Series, nominal: Instant, rule: CatchUp, now: Instant, left: int | None) -> Skipped | None:
    """The fires to skip from ``nominal`` on, the first one that is not prepared; None if there are none. ``left`` is
    how often the trigger may still fire (None: without a bound). A skipped fire counts as one of them."""
    stop, why = _stop(series, nominal, rule, now)
    if nominal >= stop:
        return None
    count, following = series.count(nominal, stop, MAX_COUNTED if left is None else min(MAX_COUNTED, left))
    if left is not None and count >= left:
        return _to_the_last(series, Skipped(left, nominal, stop, None, exact=True, why=why), rule, now)
    exact = following is None or following >= stop
    if not exact and left is None:
        following = series.after(stop - 1)
    return Skipped(count, nominal, stop, following, exact or left is not None, why)


def _to_the_last(series: Series, all_left: Skipped, rule: CatchUp, now: Instant) -> Skipped | None:
    """The same, for all fires that are left. With ``latest`` the last one is not skipped, if it is recent enough."""
    last = series.nth(all_left.first, all_left.count - 1)
    if rule.mode != "latest" or last is None or series.due(last) < now - rule.span:
        return all_left
    return replace(all_left, count=all_left.count - 1, following=last) if all_left.count > 1 else None


def _stop(series: Series, nominal: Instant, rule: CatchUp, now: Instant) -> tuple[Instant, str]:
    """The nominal instant before which all fires are skipped, and the part of the reason that explains it."""
    too_old = f" by more than {'a day' if rule.span == DAY else format_duration(rule.span)}"
    if rule.mode == "none":
        return series.due_bound(now - MISSED_AFTER), " (catch_up: none)"
    if rule.mode == "latest" and series.due(nominal) < now - MISSED_AFTER:
        latest = series.last_by(series.due_bound(now + 1) - 1, nominal)
        if latest is not None and series.due(latest) >= now - rule.span:
            return latest, " (catch_up: latest)"
    return series.due_bound(now - rule.span), too_old
