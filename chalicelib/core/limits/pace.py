"""Paces: limits whose permits are for instants, a spacing apart.

A pace is a leaky bucket in its virtual-scheduling form (ITU-T I.371). ``head`` is the instant at which the bucket is
empty. `core/limits/permits.py` has the rules by which jobs acquire permits and queue for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows.limit import LimitState

# How far ahead of its instant a job may acquire a permit of a pace: Sluice prepares the start before it may begin.
LEAD: Millis = SECOND


# The time between a permit and its start call: for the claim, the context, the record of the call, and another read of
# the schedule state.
PREPARATION: Millis = 250


# How long before its next permit the queue of a pace is served: the hint, the reads and the decision take time.
SERVED_EARLY: Millis = 600


# How long after its appointment a start may begin. At EMR the unused part of the burst covers late starts.
LATE_START: Millis = 2 * SECOND


@dataclass(frozen=True, slots=True)
class Pace:
    """A request for the next permit of a pace. Permits are ``spacing`` ms apart; at most ``burst`` of them at once.

    A permit is an appointment. Its start begins at that instant or at most ``tolerance`` ms later; else it needs
    another permit. ``rule`` describes the pace to users. ``cycle`` is a number of permits and the ms that these take
    together: ``spacing`` is rounded up to a whole ms, and permits in a block are not rounded one by one (`after`).
    ``parts``: the queue is divided into so many (`core/limits/parts.py`); 0 if it is not. ``aging`` is that of the
    policy.
    """

    by_appointment: ClassVar[bool] = True
    records_claim: ClassVar[bool] = False

    limit_name: str
    spacing: Millis
    burst: int
    tolerance: Millis = LATE_START
    rule: str = ""
    cycle: tuple[int, Millis] | None = None
    parts: int = 0
    aging: Millis = 0

    @property
    def order(self) -> tuple[int, int, str]:
        return (2, self.spacing, self.limit_name)

    @property
    def maximum(self) -> tuple[int | None, str]:
        return None, "starts"

    def used(self, state: LimitState, now: Instant) -> int | None:
        """None: a pace counts no permits."""
        return None

    def next_entry_at(self, state: LimitState, now: Instant) -> Instant | None:
        return max(state.head, now)

    def unhurried(self) -> Pace:
        return self

    def without_gap(self) -> Pace:
        return self

    def tightened_by(self, other: object) -> Pace:
        return self

    @property
    def slack(self) -> Millis:
        """How many ms ``head`` may lie ahead of ``now`` while the pace still has a permit."""
        return (self.burst - 1) * self.spacing

    def after(self, count: int) -> Millis:
        """How many ms after an appointment the one ``count`` permits later is, rounded up once for the whole distance.

        However many blocks of such permits follow each other, ``cycle[0] + 1`` appointments in a row span at least
        ``cycle[1]`` ms. The distance to the end of the first block is less than 1 ms short, and all others are not
        short. The sum is a whole number."""
        permits, span = self.cycle or (1, self.spacing)
        return -(-count * span // permits)

    @property
    def room(self) -> Millis:
        """How many ms ahead an appointment must lie, so that Sluice can prepare the start within the tolerance."""
        return max(0, PREPARATION - self.tolerance)


def next_head(ask: Pace, state: LimitState, now: Instant) -> Instant:
    """``head`` of the pace after one more permit."""
    return max(state.head, now) + ask.spacing
