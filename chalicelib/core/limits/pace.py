"""Lines: one mechanism for everything scarce. A line is a permit rule and a queue by priority (docs/design.md, Lines).

*Slots* hand out a permit while ``active < limit`` and get it back when the run ends. *Pace* hands out permits in time:
a leaky bucket in its virtual-scheduling form (ITU-T I.371), ``head`` being the instant at which the bucket is empty.

A *log* remembers the last starts, and has a permit when the n-th last is old enough.

A newcomer takes a permit when there is one **and** nobody waits; it joins the queue under the exact negation of that,
so no wake-up can fall between look and wait, and nobody overtakes. Lines have one order (logs, slots of the workflow,
of the next at a policy, of groups, of the pool, of the EMR application, then pace), and a job takes them in that order,
holding what it has while it queues for the next: so no two jobs can wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows.limit import LimitState

# How far ahead of its instant a permit of a pace may be taken: the start is prepared before it may begin.
LEAD: Millis = SECOND


# What comes between a permit and its start call: the claim, the context, the record of the call, the gate once more.
PREPARATION: Millis = 250


# How long before its next permit the queue of a pace is served: a hint takes its time, and so do reading and deciding.
SERVED_EARLY: Millis = 600


# How long after its appointment a start may begin. At EMR the part of the burst that is left unused covers these.
LATE_START: Millis = 2 * SECOND


@dataclass(frozen=True, slots=True)
class Pace:
    """What a job asks of a pace line: the next start, ``spacing`` ms apart, ``burst`` of them at once at most.

    A permit is an appointment. Its start begins at that instant or at most ``tolerance`` ms after it, or takes another
    permit. ``rule`` is the pace in words.
    """

    limit_name: str
    spacing: Millis
    burst: int
    tolerance: Millis = LATE_START
    rule: str = ""

    @property
    def order(self) -> tuple[int, int, str]:
        return (2, self.spacing, self.limit_name)

    @property
    def slack(self) -> Millis:
        """How far ahead of ``now`` the head may run while there is still a permit."""
        return (self.burst - 1) * self.spacing

    @property
    def room(self) -> Millis:
        """How far ahead an appointment must lie at least, so that the start can be prepared within its tolerance."""
        return max(0, PREPARATION - self.tolerance)


def next_head(ask: Pace, state: LimitState, now: Instant) -> Instant:
    return max(state.head, now) + ask.spacing
