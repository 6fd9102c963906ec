"""Rate windows: limits on the claims in the last ``span`` ms (C5).

A rate window remembers the last starts, and has a permit when the n-th last is old enough. `core/limits/permits.py` has
the rules by which jobs acquire permits and queue for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from chalicelib.core.instants import Instant, Millis
from chalicelib.core.limits.names import rate_limit
from chalicelib.core.rows.limit import LimitState

MAX_RATES = 20  # different rates of one workflow that definitions may have: a claim writes an entry of each
# As many as a claim has room for besides its other writes. Puts that are made at the same time may pass the first
# number, and no write passes this one.
MOST_RATES = 22


@dataclass(frozen=True, slots=True)
class RateWindow:
    """A request for an entry in a rate window: fewer than ``limit`` claims in the last ``span`` ms (C5). With
    ``binding`` False the start is counted, because the rule limits other schedules, but not limited."""

    by_appointment: ClassVar[bool] = False
    records_claim: ClassVar[bool] = True
    aging: ClassVar[Millis] = 0

    limit_name: str
    limit: int
    span: Millis
    binding: bool = True

    @property
    def order(self) -> tuple[int, int, str]:
        return (0, self.span, self.limit_name)

    @property
    def maximum(self) -> tuple[int | None, str]:
        return self.limit, "starts"

    def used(self, state: LimitState, now: Instant) -> int | None:
        """How many starts count at ``now``; None if the rule does not bind this job."""
        return sum(at > now - self.span for at in state.starts.values()) if self.binding else None

    def next_entry_at(self, state: LimitState, now: Instant) -> Instant | None:
        return max(now, frees_at(self, state))

    def unhurried(self) -> RateWindow:
        """The request of a job of a backfill: its start is counted, and never waits."""
        return replace(self, binding=False)

    def without_gap(self) -> RateWindow:
        return self

    def tightened_by(self, other: object) -> RateWindow:
        return self


def frees_at(ask: RateWindow, state: LimitState) -> Instant:
    """When a rate window has its next permit: when its ``limit``-th last start is ``span`` ms old; 0 for at once."""
    newest = sorted(state.starts.values(), reverse=True)
    return newest[ask.limit - 1] + ask.span if len(newest) >= ask.limit else 0


def outdated(ask: RateWindow, state: LimitState) -> tuple[str, ...]:
    """The holders of the starts that a rate window can drop once it has one more.

    Each of the last ``limit`` entries may belong to a job that is dropped before it starts. So the window keeps as many
    entries before them.
    """
    oldest_first = sorted(state.starts.items(), key=lambda start: (start[1], start[0]))
    return tuple(holder for holder, _ in oldest_first[: max(len(oldest_first) - 2 * ask.limit + 1, 0)])


def with_known_starts(
    asks: Iterable[object], states: Mapping[str, LimitState], holder: str
) -> dict[str, LimitState]:  # fmt: skip
    """The windows of a workflow that have counted nothing yet, with the starts that its other windows remember.

    So a rule whose numbers have changed keeps its starts, as far as they are known. The first start that a window
    counts is stored with them. The entry of ``holder``, the job that asks, does not count against itself."""
    windows = {ask.limit_name: ask for ask in asks if isinstance(ask, RateWindow)}
    known = {other: at for name in windows for other, at in states[name].starts.items() if other != holder}
    oldest_first = sorted(known.items(), key=lambda start: (start[1], start[0]))
    new = {name: ask for name, ask in windows.items() if known and states[name].rev == 0}
    return {name: replace(states[name], starts=dict(oldest_first[1 - 2 * ask.limit :])) for name, ask in new.items()}


def rate_window_of(workflow: str, rule: str, binding: bool) -> RateWindow:
    """The request of a workflow's job for a rule, ``<limit>/<span in ms>``."""
    limit, _, span = rule.partition("/")
    return RateWindow(rate_limit(workflow, rule), int(limit), int(span), binding)
