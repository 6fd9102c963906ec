"""Routes: which permits a job acquires now, and the limit in whose queue it then waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chalicelib.core.instants import Instant
from chalicelib.core.limits import names, parts
from chalicelib.core.limits.permits import (
    SERVED_EARLY,
    Pace,
    PermitRequest,
    Slots,
    admits,
    has_permit,
    horizon,
    is_held,
    next_service,
)
from chalicelib.core.rows.limit import LimitState


@dataclass(frozen=True, slots=True)
class Route:
    """The permits that a job acquires now, and the request for which it queues (None: it acquires all permits).

    ``behind`` is another pace that has no permit yet while ``blocked``, the pace where the job queues, has one.
    ``appointment`` is the instant before which the start may not begin; None if the job needs no permit of a pace.
    """

    take: tuple[PermitRequest, ...]
    blocked: PermitRequest | None
    behind: Pace | None = None
    appointment: Instant | None = None


def route(
    asks: tuple[PermitRequest, ...],
    held: tuple[str, ...],
    states: Mapping[str, LimitState],
    now: Instant,
    serving: str | None,
) -> Route:
    """The permits that a job acquires now, in the order of limits, up to the first limit that blocks it. ``serving``
    names the limit whose queue serves this job: there the job needs a free permit, but no empty queue.

    A job cannot keep a permit of a pace while it queues for another limit, since the permit is for one instant. So a
    job acquires those of all paces together. It queues at the last pace, the slowest; of the others it needs a free
    permit, but no empty queue.
    """
    serving = names.whole(serving) if serving is not None else None
    take: list[PermitRequest] = []
    for ask in asks:
        if is_held(ask, held) or isinstance(ask, Pace):
            continue
        taken = _taken(ask, states, now, serving)
        if taken is None:
            return Route(tuple(take), ask)
        take.append(taken)
    paces = paces_of(asks)
    if not paces:
        return Route(tuple(take), None)
    *others, last = paces
    if not _grants(last, states, now, serving):
        return Route(tuple(take), last)
    is_served = last.limit_name == serving
    busy = [pace for pace in others if not has_permit(pace, _state(pace, states), horizon(pace, now, is_served))]
    if busy:
        behind = max(busy, key=lambda pace: next_service(pace, _state(pace, states), now))
        return Route(tuple(take), last, behind)
    return Route((*take, *paces), None, appointment=appointment(paces, states, now))


def appointment(paces: tuple[Pace, ...], states: Mapping[str, LimitState], now: Instant) -> Instant:
    """The first instant at which each of these paces has a permit, and a start that is prepared from now on is ready.
    The head of a pace moves on from this instant, so a permit that is acquired ahead loses no time."""
    ready = now + max(pace.room for pace in paces)
    return max(ready, *(next_service(pace, _state(pace, states), now) for pace in paces))


def prepared(route: Route, now: Instant) -> Route:
    """The same route, with its appointment moved so that the start can be ready: reading the facts took time."""
    paces = paces_of(route.take)
    if route.appointment is None or not paces:
        return route
    return replace(route, appointment=max(route.appointment, now + max(pace.room for pace in paces)))


def queue_served_at(route: Route, states: Mapping[str, LimitState], now: Instant) -> Instant:
    """When the queue that a job joins by this route is served at the latest. Raises ValueError if no limit blocks
    it."""
    if route.blocked is None:
        raise ValueError("expected a route that a limit blocks, got one without")
    ask = route.behind or route.blocked
    return _early(ask, next_service(ask, _state(ask, states), now), now)


def paces_of(asks: tuple[PermitRequest, ...]) -> tuple[Pace, ...]:
    """The paces among these requests, slowest last."""
    return tuple(ask for ask in asks if isinstance(ask, Pace))


def served_again_at(
    asks: tuple[PermitRequest, ...], limit_name: str, states: Mapping[str, LimitState], now: Instant
) -> Instant | None:
    """When the queue of a limit is served next at the latest, given the requests of its first waiter; None if that job
    requests no permit of the limit. For a pace: `SERVED_EARLY` before all paces of the job have a permit."""
    request = next((ask for ask in asks if ask.limit_name == limit_name), None)
    if request is None:
        return None
    wanted = paces_of(asks) if isinstance(request, Pace) else (request,)
    return _early(request, max(next_service(ask, _state(ask, states), now) for ask in wanted), now)


def _early(ask: PermitRequest, served_at: Instant, now: Instant) -> Instant:
    """Earlier for a pace, since Sluice prepares the start before its permit comes."""
    return max(now, served_at - SERVED_EARLY) if isinstance(ask, Pace) else served_at


def passes(ask: PermitRequest, asks: tuple[PermitRequest, ...]) -> bool:
    """Whether a permit is acquired in spite of a queue: of a pace that is not the last one of the job."""
    paces = paces_of(asks)
    return isinstance(ask, Pace) and ask.limit_name != paces[-1].limit_name


def _taken(
    ask: PermitRequest, states: Mapping[str, LimitState], now: Instant, serving: str | None
) -> PermitRequest | None:
    """The request that is granted now: this one, or else its fallback, if no job waits there. None: the job queues."""
    if _grants(ask, states, now, serving):
        return ask
    fallback = ask.fallback if isinstance(ask, Slots) else None
    is_served = ask.limit_name == serving or _state(ask, states).waiters == 0
    return fallback if fallback is not None and is_served and admits(fallback, _state(fallback, states), now) else None


def _grants(ask: PermitRequest, states: Mapping[str, LimitState], now: Instant, serving: str | None) -> bool:
    state, is_served = _state(ask, states), ask.limit_name == serving
    latest = horizon(ask, now, is_served)
    if is_served:
        return has_permit(ask, state, latest)
    return not parts.count(ask, state) and admits(ask, state, latest)


def _state(ask: PermitRequest, states: Mapping[str, LimitState]) -> LimitState:
    return states.get(ask.limit_name) or LimitState(ask.limit_name)
