"""Lines: one mechanism for everything scarce. A line is a permit rule and a queue by priority (DESIGN section 4).

*Slots* hand out a permit while ``active < limit`` and get it back when the run ends. *Pace* hands out permits in time:
a leaky bucket in its virtual-scheduling form (ITU-T I.371), ``head`` being the instant at which the bucket is empty.

A newcomer takes a permit when there is one **and** nobody waits; it joins the queue under the exact negation of that,
so no wake-up can fall between look and wait, and nobody overtakes. Lines have one order (slots by name, then pace),
and a job takes them in that order, holding what it has while it queues for the next: so no two jobs can wait for each
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chalicelib.core.calendar import SECOND, Instant, Millis, iso, spell_duration

# How long a server of a slots line may hold it before another tries; also when a missed wake-up is noticed at worst.
SLOTS_LEASE: Millis = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Slots:
    """What a job asks of a slots line: one of at most ``limit`` places (None: counted, but not limited)."""

    line: str
    limit: int | None

    @property
    def order(self) -> tuple[int, int, str]:
        return (0, 0, self.line)


@dataclass(frozen=True, slots=True)
class Pace:
    """What a job asks of a pace line: the next start, ``spacing`` ms apart, ``burst`` of them at once at most."""

    line: str
    spacing: Millis
    burst: int

    @property
    def order(self) -> tuple[int, int, str]:
        return (1, self.spacing, self.line)

    @property
    def slack(self) -> Millis:
        """How far ahead of ``now`` the head may run while there is still a permit."""
        return (self.burst - 1) * self.spacing


Ask = Slots | Pace


@dataclass(frozen=True, slots=True)
class LineState:
    """A line as stored. ``wake_at`` is set whenever somebody waits: it is when the queue wants serving."""

    line: str
    active: int = 0
    waiters: int = 0
    head: Instant = 0
    wake_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Waiter:
    """A place in a queue. ``rank`` sorts by inverse priority, latest start, age; ``job`` is where its job lives."""

    line: str
    rank: str
    job_schedule: str
    job_generation: int
    job_place: str
    job_id: str


def in_order(asks: tuple[Ask, ...]) -> tuple[Ask, ...]:
    """The one order in which every job takes its lines: slots by name, then pace, the widest spacing last."""
    return tuple(sorted(asks, key=lambda ask: ask.order))


def has_permit(ask: Ask, state: LineState, now: Instant) -> bool:
    if isinstance(ask, Slots):
        return ask.limit is None or state.active < ask.limit
    return state.head <= now + ask.slack


def admits(ask: Ask, state: LineState, now: Instant) -> bool:
    """Whether a newcomer may take a permit: there is one and nobody waits for it. No limit, no queue."""
    unlimited = isinstance(ask, Slots) and ask.limit is None
    return unlimited or (has_permit(ask, state, now) and state.waiters == 0)


def next_head(ask: Pace, state: LineState, now: Instant) -> Instant:
    return max(state.head, now) + ask.spacing


def next_look(ask: Ask, state: LineState, now: Instant) -> Instant:
    """When the queue of this line wants serving if nothing happens before."""
    if isinstance(ask, Slots):
        return now + SLOTS_LEASE
    return max(now, state.head - ask.slack)


def rank(priority: int, latest_start: Instant | None, created_at: Instant, job_id: str) -> str:
    """The sort key of a waiter: urgent first, then the earliest latest start, then the oldest."""
    latest = iso(latest_start) if latest_start is not None else "~"
    return f"{9 - priority}#{latest}#{iso(created_at)}#{job_id}"


def why(ask: Ask, state: LineState) -> str:
    """Why a job waits at this line, in the words that ``why`` shows."""
    ahead = f", {state.waiters} waiting" if state.waiters else ""
    if isinstance(ask, Slots):
        return f"waits for a slot of {spell(ask.line)}: {state.active} of {ask.limit} in use{ahead}"
    rate = spell_duration(ask.spacing)
    return f"waits for its turn at {spell(ask.line)}: one start every {rate}, burst {ask.burst}{ahead}"


def spell(line: str) -> str:
    kind, _, name = line.partition(":")
    return {"workflow": f"workflow {name}", "emr": f"the start rate of EMR application {name}"}.get(kind, line)


def gives_back(line: str) -> bool:
    """Whether a permit of this line comes back when the run ends. A pace permit is spent."""
    return not line.startswith("emr:")


def workflow_line(workflow: str) -> str:
    return f"workflow:{workflow}"


def emr_line(application_id: str) -> str:
    return f"emr:{application_id}"


@dataclass(frozen=True, slots=True)
class Route:
    """How far a job gets through its lines now: permits to take, and the line to queue at (None: through)."""

    take: tuple[Ask, ...]
    blocked: Ask | None


def route(
    asks: tuple[Ask, ...], held: tuple[str, ...], states: Mapping[str, LineState], now: Instant, turn: str | None
) -> Route:
    """Walk the lines in order. ``turn`` names the line whose queue serves this job: there a permit is enough."""
    take: list[Ask] = []
    for ask in asks:
        if ask.line in held:
            continue
        state = states.get(ask.line) or LineState(ask.line)
        free = has_permit(ask, state, now) if ask.line == turn else admits(ask, state, now)
        if not free:
            return Route(tuple(take), ask)
        take.append(ask)
    return Route(tuple(take), None)
