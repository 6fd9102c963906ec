"""Permits: whether a limit has one for a job, when it will, in which order jobs acquire them, and why a job waits.

A limit is a permit rule and a queue by priority (docs/internals/design.md, Limits). *Slots* have a permit while
``active < limit``; the run releases it when it ends. A *pace* has permits at instants. A *rate window* remembers the
last starts, and has a permit when the n-th last is old enough.

A job that does not queue acquires a permit if there is one **and** the queue is empty; else it queues. One conditional
write decides, so no wake-up is lost between the read and the write, and no job overtakes another.

Limits have one order: rate windows, slots of the workflow, admissions to a policy, slots of groups, the pool and the
EMR application, then paces. Every job acquires permits in that order and keeps them while it queues for the next, so no
two jobs can wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable

from chalicelib.core.instants import SECOND, Instant, Millis, format_duration, iso
from chalicelib.core.limits.names import describe, is_admission, is_pool
from chalicelib.core.limits.pace import LEAD, Pace
from chalicelib.core.limits.rate_window import RateWindow, frees_at
from chalicelib.core.limits.slots import SLOTS_RECHECK, Slots
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.why import Mention, Why

# How long one invocation alone serves the queue of a limit. It renews the lease while it serves. If it crashes,
# another invocation serves the queue once the lease is over.
SERVER_LEASE: Millis = 5 * SECOND


AGED = "A"  # the first letter of a rank with aging; it sorts behind those without


PermitRequest = Slots | RateWindow | Pace


def in_order(asks: tuple[PermitRequest, ...]) -> tuple[PermitRequest, ...]:
    """The requests in the order in which every job acquires permits: rate windows, then slots, then paces. A job that
    waits for a rate should hold no slot."""
    return tuple(sorted(asks, key=lambda ask: ask.order))


def has_permit(ask: PermitRequest, state: LimitState, now: Instant) -> bool:
    """Whether the limit has a permit for this request at ``now``, whether or not jobs queue for it."""
    match ask:
        case Slots():
            return ask.below is None or state.active < ask.below
        case RateWindow():
            return not ask.binding or frees_at(ask, state) <= now
        case Pace():
            return state.head <= now + ask.slack


def admits(ask: PermitRequest, state: LimitState, now: Instant) -> bool:
    """Whether a job that does not queue may acquire a permit: there is one, and the queue is empty. Without a bound the
    queue does not matter."""
    return is_unlimited(ask) or (has_permit(ask, state, now) and state.waiters == 0)


def is_unlimited(ask: PermitRequest) -> bool:
    """Whether the limit only counts this job and never makes it wait."""
    return (isinstance(ask, Slots) and ask.limit is None) or (isinstance(ask, RateWindow) and not ask.binding)


def without_appointments(asks: Iterable[PermitRequest]) -> list[Slots | RateWindow]:
    """The requests whose permits are for no instant."""
    return [ask for ask in asks if not isinstance(ask, Pace)]


def next_service(ask: PermitRequest, state: LimitState, now: Instant) -> Instant:
    """When Sluice serves the queue of this limit at the latest: when a permit comes, or, of slots, for a recheck."""
    match ask:
        case Slots():
            return now + SLOTS_RECHECK
        case RateWindow():
            return max(now, frees_at(ask, state))
        case Pace():
            return max(now, state.head - ask.slack)


def horizon(ask: PermitRequest, now: Instant, is_served: bool = False) -> Instant:
    """The latest instant for which a permit of this limit may be acquired at ``now``.

    Only a job that is served from the queue may acquire one up to `LEAD` ahead. Any other job that waited for its
    instant would overtake more urgent jobs that arrive before it, and delay the rest of its batch."""
    if not isinstance(ask, Pace):
        return now
    return now + (LEAD if is_served else ask.room)


def is_timed(ask: PermitRequest | None) -> bool:
    """Whether a permit comes by the passing of time alone, so that a hint for that instant is useful."""
    return isinstance(ask, RateWindow | Pace)


def rank(
    priority: int,
    latest_start: Instant | None,
    created_at: Instant,
    job_id: str,
    aging: Millis = 0,
    since: Instant = 0,
) -> str:
    """The sort key of a waiter: by falling priority, then by latest start, then by age.

    With ``aging`` each such span of waiting, from ``since`` on, raises the priority by one step. Of two waiters, the
    one whose ``since - priority * aging`` is earlier is the more urgent one at every instant. So the key never changes.
    """
    latest = iso(latest_start) if latest_start is not None else "~"
    rest = f"{9 - priority}#{latest}#{iso(created_at)}#{job_id}"
    return f"{AGED}{since - priority * aging:015d}#{rest}" if aging else rest


def urgency(rank: str) -> str:
    """The part of a rank that sorts before the latest start: of two waiters, the more urgent one has the lower one."""
    return rank.partition("#")[0]


def priority_in(rank: str) -> int:
    """The priority in a rank."""
    first, second, *_ = rank.split("#")
    return 9 - int(second if first.startswith(AGED) else first)


def why(ask: PermitRequest, state: LimitState) -> Why:
    """Why a job queues for this limit, as ``sluice why`` shows it: state, cause, and what changes it.

    Not how many jobs wait: a row keeps this text for as long as it queues. The views add the present place."""
    limit = Mention(describe(ask.limit_name), "limit", ask.limit_name)
    match ask:
        case Slots() if is_admission(ask.limit_name):
            return Why.of("limit", "waits for admission to ", limit, ": other jobs are next")
        case Slots():
            fit = "; more than the whole pool: request less, or enlarge the pool" if never_fits(ask) else ""
            if ask.overdrawn:
                fit += f"; {ask.overdrawn} more are still in use in parts that were made smaller"
            in_use = f"{state.active} of {ask.limit} in use"
            code = "limit_too_small" if never_fits(ask) else "limit"
            return Why.of(code, f"waits for {_wanted(ask)} of ", limit, f": {in_use}{fit}")
        case RateWindow():
            rule = f"at most {ask.limit} runs claimed per {format_duration(ask.span)}"
            frees = iso(frees_at(ask, state))
            return Why.of("limit", "waits for the rate limit of ", limit, f": {rule}, the next at {frees}")
        case Pace():
            rule = ask.rule or f"one start every {format_duration(ask.spacing)}, burst {ask.burst}"
            return Why.of("limit", "waits for a permit of ", limit, f": {rule}")


def _wanted(ask: Slots) -> str:
    if ask.unit == "slot":
        return "a slot" if ask.units == 1 else f"{ask.units} slots"
    return f"{ask.units} {ask.unit}"


def with_fallbacks(asks: tuple[PermitRequest, ...]) -> tuple[PermitRequest, ...]:
    """These requests, each followed by its fallback: all limits of which a permit may be acquired."""
    return tuple(
        candidate
        for ask in asks
        for candidate in (ask, ask.fallback if isinstance(ask, Slots) else None)
        if candidate is not None
    )


def never_fits(ask: PermitRequest) -> bool:
    """Whether a request is for more units than the limit has, and than its fallback has."""
    if not isinstance(ask, Slots) or ask.limit is None or ask.limit >= ask.units:
        return False
    return ask.fallback is None or never_fits(ask.fallback)


def is_held(ask: PermitRequest, held: tuple[str, ...]) -> bool:
    """Whether a job holds the permit that it requests, of the limit itself or of its fallback."""
    return ask.limit_name in held or (
        isinstance(ask, Slots) and ask.fallback is not None and ask.fallback.limit_name in held
    )


def holds_other_units(asks: tuple[PermitRequest, ...], held: tuple[str, ...], units: int) -> bool:
    """Whether a job holds units of a pool that it would not acquire now: of another pool, or another number of them."""
    pool = next((ask for ask in asks if isinstance(ask, Slots) and is_pool(ask.limit_name)), None)
    if not any(is_pool(limit_name) for limit_name in held):
        return False
    return pool is None or not is_held(pool, held) or pool.units != units
