"""How far a job gets through its lines: permits to take, and the line to queue at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chalicelib.core.instants import Instant
from chalicelib.core.limits.pace import SERVED_EARLY, Pace
from chalicelib.core.limits.permits import PermitRequest, admits, has_permit, horizon, is_held, next_service
from chalicelib.core.limits.slots import Slots
from chalicelib.core.rows.limit import LimitState


@dataclass(frozen=True, slots=True)
class Route:
    """How far a job gets through its lines now: permits to take, and the line to queue at (None: through).

    ``behind`` is another pace that holds it up while the line where it queues would let it go. ``appointment`` is the
    instant before which the start may not begin, None if no pace is among the lines.
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
    """Walk the lines in order. ``turn`` names the line whose queue serves this job: there a permit is enough.

    A pace's permit cannot be kept while a job queues elsewhere, for it is one to start now. So all paces are taken
    together, and the queue is at the last one, the slowest; of the others a free permit is enough.
    """
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
    if not _lets_go(last, states, now, serving):
        return Route(tuple(take), last)
    busy = [
        pace
        for pace in others
        if not has_permit(pace, _state(pace, states), horizon(pace, now, last.limit_name == serving))
    ]
    if busy:
        return Route(
            tuple(take), last, behind=max(busy, key=lambda pace: next_service(pace, _state(pace, states), now))
        )
    return Route((*take, *paces), None, appointment=appointment(paces, states, now))


def appointment(paces: tuple[Pace, ...], states: Mapping[str, LimitState], now: Instant) -> Instant:
    """The first instant at which each of these paces has a permit, and a start that is prepared from now on is ready.
    The head of a pace goes on from there: a permit that is taken before its instant loses no time."""
    ready = now + max(pace.room for pace in paces)
    return max(ready, *(next_service(pace, _state(pace, states), now) for pace in paces))


def prepared(route: Route, now: Instant) -> Route:
    """The same with an appointment that can be kept: reading the facts took its time."""
    paces = paces_of(route.take)
    if route.appointment is None or not paces:
        return route
    return replace(route, appointment=max(route.appointment, now + max(pace.room for pace in paces)))


def queue_served_at(route: Route, states: Mapping[str, LimitState], now: Instant) -> Instant:
    """When who queues by this route wants to be looked at if nothing happens before."""
    if route.blocked is None:
        raise ValueError("expected a route that is blocked, got one that is free")
    ask = route.behind or route.blocked
    return _early(ask, next_service(ask, _state(ask, states), now), now)


def paces_of(asks: tuple[PermitRequest, ...]) -> tuple[Pace, ...]:
    """The paces among the lines, slowest last."""
    return tuple(ask for ask in asks if isinstance(ask, Pace))


def served_again_at(
    asks: tuple[PermitRequest, ...], limit_name: str, states: Mapping[str, LimitState], now: Instant
) -> Instant | None:
    """When the queue of a line wants serving if nothing happens before, by what its head asks; None if that asks
    nothing of it. At a pace, a while before all of its paces have a permit."""
    asked = next((ask for ask in asks if ask.limit_name == limit_name), None)
    if asked is None:
        return None
    wanted = paces_of(asks) if isinstance(asked, Pace) else (asked,)
    return _early(asked, max(next_service(ask, _state(ask, states), now) for ask in wanted), now)


def _early(ask: PermitRequest, served_at: Instant, now: Instant) -> Instant:
    """A start at a pace is prepared before its permit comes."""
    return max(now, served_at - SERVED_EARLY) if isinstance(ask, Pace) else served_at


def passes(ask: PermitRequest, asks: tuple[PermitRequest, ...]) -> bool:
    """Whether a permit is taken in passing: of a pace that is not the last one, whoever queues there."""
    paces = paces_of(asks)
    return isinstance(ask, Pace) and ask.limit_name != paces[-1].limit_name


def _taken(
    ask: PermitRequest, states: Mapping[str, LimitState], now: Instant, serving: str | None
) -> PermitRequest | None:
    """The permit that a job gets by this ask, if it gets one: beyond its share of a pool one that nobody waits for."""
    if _lets_go(ask, states, now, serving):
        return ask
    fallback = ask.fallback if isinstance(ask, Slots) else None
    is_served = ask.limit_name == serving or _state(ask, states).waiters == 0
    return fallback if fallback is not None and is_served and admits(fallback, _state(fallback, states), now) else None


def _lets_go(ask: PermitRequest, states: Mapping[str, LimitState], now: Instant, serving: str | None) -> bool:
    state, is_served = _state(ask, states), ask.limit_name == serving
    latest = horizon(ask, now, is_served)
    return has_permit(ask, state, latest) if is_served else admits(ask, state, latest)


def _state(ask: PermitRequest, states: Mapping[str, LimitState]) -> LimitState:
    return states.get(ask.limit_name) or LimitState(ask.limit_name)
