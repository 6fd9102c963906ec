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

from chalicelib.core.instants import SECOND, Instant, Millis, format_duration, iso
from chalicelib.core.limits.names import describe, is_admission, is_pool
from chalicelib.core.limits.pace import LEAD, Pace
from chalicelib.core.limits.rate_window import RateWindow, frees_at
from chalicelib.core.limits.slots import SLOTS_RECHECK, Slots
from chalicelib.core.rows.limit import LimitState

# How long a line is its server's alone. The server renews it while it goes on; if it dies, another one takes over.
SERVER_LEASE: Millis = 5 * SECOND


PermitRequest = Slots | RateWindow | Pace


def in_order(asks: tuple[PermitRequest, ...]) -> tuple[PermitRequest, ...]:
    """The one order in which every job takes its lines: logs (who waits for a rate keeps no slot), slots, then pace."""
    return tuple(sorted(asks, key=lambda ask: ask.order))


def has_permit(ask: PermitRequest, state: LimitState, now: Instant) -> bool:
    match ask:
        case Slots():
            return ask.below is None or state.active < ask.below
        case RateWindow():
            return not ask.binding or frees_at(ask, state) <= now
        case Pace():
            return state.head <= now + ask.slack


def admits(ask: PermitRequest, state: LimitState, now: Instant) -> bool:
    """Whether a newcomer may take a permit: there is one and nobody waits for it. No limit, no queue."""
    return is_unlimited(ask) or (has_permit(ask, state, now) and state.waiters == 0)


def is_unlimited(ask: PermitRequest) -> bool:
    """Whether a line only counts this job, and never holds it up."""
    return (isinstance(ask, Slots) and ask.limit is None) or (isinstance(ask, RateWindow) and not ask.binding)


def next_service(ask: PermitRequest, state: LimitState, now: Instant) -> Instant:
    """When the queue of this line wants serving if nothing happens before."""
    match ask:
        case Slots():
            return now + SLOTS_RECHECK
        case RateWindow():
            return max(now, frees_at(ask, state))
        case Pace():
            return max(now, state.head - ask.slack)


def horizon(ask: PermitRequest, now: Instant, is_served: bool = False) -> Instant:
    """Up to which instant a permit of this line may be taken now, ahead from the queue alone. A newcomer that waits for
    its instant would pass who is more urgent and comes meanwhile, and keep the rest of its batch waiting."""
    if not isinstance(ask, Pace):
        return now
    return now + (LEAD if is_served else ask.room)


def is_timed(ask: PermitRequest | None) -> bool:
    """Whether a permit comes with time alone, so that the instant is worth a hint."""
    return isinstance(ask, RateWindow | Pace)


def rank(priority: int, latest_start: Instant | None, created_at: Instant, job_id: str) -> str:
    """The sort key of a waiter: urgent first, then the earliest latest start, then the oldest."""
    latest = iso(latest_start) if latest_start is not None else "~"
    return f"{9 - priority}#{latest}#{iso(created_at)}#{job_id}"


def why(ask: PermitRequest, state: LimitState) -> str:
    """Why a job waits at this line, in the words that ``why`` shows."""
    ahead = f", {state.waiters} waiting" if state.waiters else ""
    match ask:
        case Slots() if is_admission(ask.limit_name):
            return f"waits for its turn at {describe(ask.limit_name)}: others are next{ahead}"
        case Slots():
            short = f"; it has {ask.limit}, so take less or make it larger" if never_fits(ask) else ""
            short += (
                f"; {ask.overdrawn} more are to come back from parts that were made smaller" if ask.overdrawn else ""
            )
            in_use = f"{state.active} of {ask.limit} in use"
            return f"waits for {_wanted(ask)} of {describe(ask.limit_name)}: {in_use}{ahead}{short}"
        case RateWindow():
            rule = f"at most {ask.limit} runs claimed per {format_duration(ask.span)}"
            frees = iso(frees_at(ask, state))
            return f"waits for the rate of {describe(ask.limit_name)}: {rule}, the next at {frees}{ahead}"
        case Pace():
            rule = ask.rule or f"one start every {format_duration(ask.spacing)}, burst {ask.burst}"
            return f"waits for its turn at {describe(ask.limit_name)}: {rule}{ahead}"


def _wanted(ask: Slots) -> str:
    if ask.unit == "slot":
        return "a slot" if ask.units == 1 else f"{ask.units} slots"
    return f"{ask.units} {ask.unit}"


def with_fallbacks(asks: tuple[PermitRequest, ...]) -> tuple[PermitRequest, ...]:
    """Every line that these may take a permit of, in their order."""
    return tuple(
        each for ask in asks for each in (ask, ask.fallback if isinstance(ask, Slots) else None) if each is not None
    )


def never_fits(ask: PermitRequest) -> bool:
    """Whether a job asks for more than there is, here and where it may be taken instead."""
    if not isinstance(ask, Slots) or ask.limit is None or ask.limit >= ask.units:
        return False
    return ask.fallback is None or never_fits(ask.fallback)


def is_held(ask: PermitRequest, held: tuple[str, ...]) -> bool:
    """Whether a job has the permit that it asks for, here or where it may be taken instead."""
    return ask.limit_name in held or (
        isinstance(ask, Slots) and ask.fallback is not None and ask.fallback.limit_name in held
    )


def holds_other_units(asks: tuple[PermitRequest, ...], held: tuple[str, ...], units: int) -> bool:
    """Whether a job holds units of a pool that it would not take now: of another one, or not as many."""
    pool = next((ask for ask in asks if isinstance(ask, Slots) and is_pool(ask.limit_name)), None)
    if not any(is_pool(limit_name) for limit_name in held):
        return False
    return pool is None or not is_held(pool, held) or pool.units != units
