"""How far a job gets through its lines: permits to take, and the line to queue at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chalicelib.core.instants import Instant
from chalicelib.core.limits.pace import SERVED_EARLY, Pace
from chalicelib.core.limits.permits import PermitRequest, admits, has_permit, horizon, is_held, next_look
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
    turn: str | None,
) -> Route:
    """Walk the lines in order. ``turn`` names the line whose queue serves this job: there a permit is enough.

    A pace's permit cannot be kept while a job queues elsewhere, for it is one to start now. So all paces are taken
    together, and the queue is at the last one, the slowest; of the others a free permit is enough.
    """
    take: list[PermitRequest] = []
    for ask in asks:
        if is_held(ask, held) or isinstance(ask, Pace):
            continue
        taken = _taken(ask, states, now, turn)
        if taken is None:
            return Route(tuple(take), ask)
        take.append(taken)
    paces = paces_of(asks)
    if not paces:
        return Route(tuple(take), None)
    *others, last = paces
    if not _lets_go(last, states, now, turn):
        return Route(tuple(take), last)
    busy = [
        pace for pace in others if not has_permit(pace, _state(pace, states), horizon(pace, now, last.line == turn))
    ]
    if busy:
        return Route(tuple(take), last, behind=max(busy, key=lambda pace: next_look(pace, _state(pace, states), now)))
    return Route((*take, *paces), None, appointment=appointment(paces, states, now))


def appointment(paces: tuple[Pace, ...], states: Mapping[str, LimitState], now: Instant) -> Instant:
    """The first instant at which each of these paces has a permit, and a start that is prepared from now on is ready.
    The head of a pace goes on from there: a permit that is taken before its instant loses no time."""
    ready = now + max(pace.room for pace in paces)
    return max(ready, *(next_look(pace, _state(pace, states), now) for pace in paces))


def prepared(route: Route, now: Instant) -> Route:
    """The same with an appointment that can be kept: reading the facts took its time."""
    paces = paces_of(route.take)
    if route.appointment is None or not paces:
        return route
    return replace(route, appointment=max(route.appointment, now + max(pace.room for pace in paces)))


def queue_looks_at(route: Route, states: Mapping[str, LimitState], now: Instant) -> Instant:
    """When who queues by this route wants to be looked at if nothing happens before."""
    if route.blocked is None:
        raise ValueError("expected a route that is blocked, got one that is free")
    ask = route.behind or route.blocked
    return _early(ask, next_look(ask, _state(ask, states), now), now)


def paces_of(asks: tuple[PermitRequest, ...]) -> tuple[Pace, ...]:
    """The paces among the lines, slowest last."""
    return tuple(ask for ask in asks if isinstance(ask, Pace))


def looks_again(
    asks: tuple[PermitRequest, ...], line: str, states: Mapping[str, LimitState], now: Instant
) -> Instant | None:
    """When the queue of a line wants serving if nothing happens before, by what its head asks; None if that asks
    nothing of it. At a pace, a while before all of its paces have a permit."""
    asked = next((ask for ask in asks if ask.line == line), None)
    if asked is None:
        return None
    wanted = paces_of(asks) if isinstance(asked, Pace) else (asked,)
    return _early(asked, max(next_look(ask, _state(ask, states), now) for ask in wanted), now)


def _early(ask: PermitRequest, look: Instant, now: Instant) -> Instant:
    """A start at a pace is prepared before its permit comes."""
    return max(now, look - SERVED_EARLY) if isinstance(ask, Pace) else look


def passes(ask: PermitRequest, asks: tuple[PermitRequest, ...]) -> bool:
    """Whether a permit is taken in passing: of a pace that is not the last one, whoever queues there."""
    paces = paces_of(asks)
    return isinstance(ask, Pace) and ask.line != paces[-1].line


def _taken(
    ask: PermitRequest, states: Mapping[str, LimitState], now: Instant, turn: str | None
) -> PermitRequest | None:
    """The permit that a job gets by this ask, if it gets one: beyond its share of a pool one that nobody waits for."""
    if _lets_go(ask, states, now, turn):
        return ask
    spare = ask.spare if isinstance(ask, Slots) else None
    in_turn = ask.line == turn or _state(ask, states).waiters == 0
    return spare if spare is not None and in_turn and admits(spare, _state(spare, states), now) else None


def _lets_go(ask: PermitRequest, states: Mapping[str, LimitState], now: Instant, turn: str | None) -> bool:
    state, in_turn = _state(ask, states), ask.line == turn
    latest = horizon(ask, now, in_turn)
    return has_permit(ask, state, latest) if in_turn else admits(ask, state, latest)


def _state(ask: PermitRequest, states: Mapping[str, LimitState]) -> LimitState:
    return states.get(ask.line) or LimitState(ask.line)
