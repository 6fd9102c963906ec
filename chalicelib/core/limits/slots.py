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
from chalicelib.core.limits.names import is_admission, order_of_slots, returns_permit
from chalicelib.core.rows.limit import LimitState

# Living runs whose starts are remembered one by one; a row with more would cost every start of the workflow.
MAX_STARTS = 100


# A queue for slots is due again so soon after a look that the very next tick finds it.
SLOTS_RECHECK: Millis = 5 * SECOND


# How often the runs that hold the slots of a queue are asked about: at each tick.
ASK_HOLDERS: Millis = 50 * SECOND


# How often a job is looked at that asks for more than its pool has.
TOO_LARGE: Millis = 600 * SECOND


@dataclass(frozen=True, slots=True)
class Slots:
    """What a job asks of a slots line: one of at most ``limit`` places (None: counted, but not limited), and that the
    last start is at least ``gap`` ms ago (C4): of a successful or living run, or of any run with ``any_run``.

    Of a pool it takes ``units`` at once, called ``unit``. ``spare``: where they are taken if none are left here and
    nobody waits there, for a share of a pool; the queue is here. ``owed``: so many of the places are in use elsewhere,
    since the pool was cut otherwise (W3)."""

    limit_name: str
    limit: int | None
    gap: Millis | None = None
    any_run: bool = False
    units: int = 1
    unit: str = "slot"
    fallback: Slots | None = None
    overdrawn: int = 0

    @property
    def order(self) -> tuple[int, int, str]:
        return (1, order_of_slots(self.limit_name), self.limit_name)

    @property
    def below(self) -> int | None:
        """The permit in one comparison: there is one while fewer than so many are in use."""
        return None if self.limit is None else self.limit - self.overdrawn - self.units + 1


def gap_ends(ask: Slots, state: LimitState) -> Instant | None:
    """When ``gap`` after the last start is over (C4); None if nothing has started that counts."""
    if ask.gap is None:
        return None
    known = [
        *state.starts.values(),
        *([state.untracked_start] if state.active > len(state.starts) and state.untracked_start else []),
    ]
    last = state.last_start if ask.any_run else state.last_success_start
    latest = max(known + ([last] if last is not None else []), default=None)
    return None if latest is None else latest + ask.gap


def asks_holders(state: LimitState, now: Instant) -> bool:
    """Whether the runs that hold the slots of a line are to be asked about: jobs wait for one, and the event of an end
    may have been lost (W7)."""
    if not returns_permit(state.limit_name) or is_admission(state.limit_name) or state.waiters == 0:
        return False
    return state.active > 0 and now - state.asked_at >= ASK_HOLDERS
