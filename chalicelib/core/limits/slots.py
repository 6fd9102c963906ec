"""Slots: limits whose permits are released when the run ends.

There is a permit while ``active < limit``. `core/limits/permits.py` has the rules by which jobs acquire permits and
queue for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.limits.names import is_admission, is_pool, order_of_slots, returns_permit
from chalicelib.core.rows.limit import LimitState

# How many active runs a limit lists with their starts. A longer row would make every start of the workflow costlier.
MAX_STARTS = 100


# How soon a queue for slots is due again after it was served: soon enough for the next tick to find it.
SLOTS_RECHECK: Millis = 5 * SECOND


# How often Sluice polls the runs that hold slots for which jobs wait: at each tick.
POLL_HOLDERS_EVERY: Millis = 50 * SECOND


# How often Sluice checks a job that requests more units than its pool has.
TOO_LARGE: Millis = 600 * SECOND


@dataclass(frozen=True, slots=True)
class Slots:
    """A request for one of at most ``limit`` slots (None: counted, but not limited).

    The last start must be at least ``gap`` ms ago (C4). The starts of successful and live runs count; with ``any_run``
    those of all runs do.

    Of a pool a job acquires ``units`` at once; ``unit`` is the word for one. ``fallback`` is where a job with a share
    acquires them if its share is used up and no job waits at the fallback. The job queues at the share. ``overdrawn``
    units are withheld here, because other parts of the pool have more units in use than belongs to them now (W3).
    ``aging`` is that of the pool, or of the policy of an admission."""

    by_appointment: ClassVar[bool] = False  # whether its permit is for one instant
    records_claim: ClassVar[bool] = False  # whether the claim enters the start, not the start itself

    limit_name: str
    limit: int | None
    gap: Millis | None = None
    any_run: bool = False
    units: int = 1
    unit: str = "slot"
    fallback: Slots | None = None
    overdrawn: int = 0
    aging: Millis = 0

    @property
    def order(self) -> tuple[int, int, str]:
        return (1, order_of_slots(self.limit_name), self.limit_name)

    @property
    def below(self) -> int | None:
        """There is a permit while fewer than this many units are in use; None: always. For the condition of a write."""
        return None if self.limit is None else self.limit - self.overdrawn - self.units + 1

    @property
    def maximum(self) -> tuple[int | None, str]:
        """How many permits there are at most, None without a bound, and what they count."""
        return self.limit, "vcpu" if self.unit == "vCPU" else "slots" if is_pool(self.limit_name) else "runs"

    def used(self, state: LimitState, now: Instant) -> int | None:
        """How many permits are in use; None without a bound."""
        return state.active if self.limit is not None else None

    def next_entry_at(self, state: LimitState, now: Instant) -> Instant | None:
        """When the passing of time alone gives the next permit; None: it does not."""
        return None

    def unhurried(self) -> Slots:
        """The request of a job of a backfill: without the gap, which bounds how often the present is processed."""
        return replace(self, gap=None)

    def without_gap(self) -> Slots:
        return replace(self, gap=None)

    def tightened_by(self, other: object) -> Slots:
        """Both requests in one: the lower limit, and the wider gap, which counts failed runs if one of the two does."""
        if not isinstance(other, Slots):
            return self
        limits = [ask.limit for ask in (other, self) if ask.limit is not None]
        gaps = [ask.gap for ask in (other, self) if ask.gap is not None]
        any_run = self.any_run or other.any_run
        return Slots(self.limit_name, min(limits, default=None), max(gaps, default=None), any_run)


def gap_ends(ask: Slots, state: LimitState) -> Instant | None:
    """When ``gap`` after the last start is over (C4); None without a gap, or if no start counts."""
    if ask.gap is None:
        return None
    known = [
        *state.starts.values(),
        *([state.untracked_start] if state.active > len(state.starts) and state.untracked_start else []),
    ]
    last = state.last_start if ask.any_run else state.last_success_start
    latest = max(known + ([last] if last is not None else []), default=None)
    return None if latest is None else latest + ask.gap


def polls_holders(state: LimitState, now: Instant) -> bool:
    """Whether to poll the runs that hold the slots of a limit: jobs wait, and the event of an end may be lost (W7)."""
    if not returns_permit(state.limit_name) or is_admission(state.limit_name) or state.waiters == 0:
        return False
    return state.active > 0 and now - state.asked_at >= POLL_HOLDERS_EVERY
