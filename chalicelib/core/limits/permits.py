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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from chalicelib.core.instants import SECOND, Instant, Millis, format_duration, iso
from chalicelib.core.limits.names import describe, is_admission, is_pool, order_of_slots, rate_limit, returns_permit
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.text import count_of
from chalicelib.core.why import Mention, Why

# How many active runs a limit lists with their starts. A longer row would make every start of the workflow costlier.
MAX_STARTS = 100
# How soon a queue for slots is due again after it was served: soon enough for the next tick to find it.
SLOTS_RECHECK: Millis = 5 * SECOND
# How often Sluice polls the runs that hold slots for which jobs wait: at each tick.
POLL_HOLDERS_EVERY: Millis = 50 * SECOND
# How often Sluice checks a job that requests more units than its pool has.
TOO_LARGE: Millis = 600 * SECOND
MAX_RATES = 20  # different rates of one workflow that definitions may have: a claim writes an entry of each
# As many as a claim has room for besides its other writes. Puts that are made at the same time may pass the first
# number, and no write passes this one.
MOST_RATES = 22
# How far ahead of its instant a job may acquire a permit of a pace: Sluice prepares the start before it may begin.
LEAD: Millis = SECOND
# The time between a permit and its start call: for the claim, the context, the record of the call, and another read of
# the schedule state.
PREPARATION: Millis = 250
# How long before its next permit the queue of a pace is served: the hint, the reads and the decision take time.
SERVED_EARLY: Millis = 600
# How long after its appointment a start may begin. At EMR the unused part of the burst covers late starts.
LATE_START: Millis = 2 * SECOND
# How long one invocation alone serves the queue of a limit. It renews the lease while it serves. If it crashes,
# another invocation serves the queue once the lease is over.
SERVER_LEASE: Millis = 5 * SECOND
AGED = "A"  # the first letter of a rank with aging; it sorts behind those without


class _Request:
    """What the requests for permits of all limits have in common. Most of it concerns slots alone."""

    __slots__ = ()

    by_appointment: ClassVar[bool] = False  # whether its permit is for one instant
    records_claim: ClassVar[bool] = False  # whether the claim enters the start, not the start itself

    def unhurried(self) -> Self:
        """The request of a job of a backfill: without what bounds how often the present is processed."""
        return self

    def without_gap(self) -> Self:
        return self

    def tightened_by(self, other: object) -> Self:
        """Both requests in one: the lower limit, and the wider gap, which counts failed runs if one of the two does."""
        return self


@dataclass(frozen=True, slots=True)
class Slots(_Request):
    """A request for one of at most ``limit`` slots (None: counted, but not limited).

    The last start must be at least ``gap`` ms ago (C4). The starts of successful and live runs count; with ``any_run``
    those of all runs do.

    Of a pool a job acquires ``units`` at once; ``unit`` is the word for one. ``fallback`` is where a job with a share
    acquires them if its share is used up and no job waits at the fallback. The job queues at the share. ``overdrawn``
    units are withheld here, because other parts of the pool have more units in use than belongs to them now (W3).
    ``aging`` is that of the pool, or of the policy of an admission."""

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
        return self.without_gap()

    def without_gap(self) -> Slots:
        return replace(self, gap=None)

    def tightened_by(self, other: object) -> Slots:
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


@dataclass(frozen=True, slots=True)
class RateWindow(_Request):
    """A request for an entry in a rate window: fewer than ``limit`` claims in the last ``span`` ms (C5). With
    ``binding`` False the start is counted, because the rule limits other schedules, but not limited."""

    records_claim: ClassVar[bool] = True
    aging: ClassVar[Millis] = 0

    limit_name: str
    limit: int
    span: Millis
    binding: bool = True

    @property
    def order(self) -> tuple[int, int, str]:
        return (0, self.span, self.limit_name)

    @property
    def maximum(self) -> tuple[int | None, str]:
        return self.limit, "starts"

    def used(self, state: LimitState, now: Instant) -> int | None:
        """How many starts count at ``now``; None if the rule does not bind this job."""
        return sum(at > now - self.span for at in state.starts.values()) if self.binding else None

    def next_entry_at(self, state: LimitState, now: Instant) -> Instant | None:
        return max(now, frees_at(self, state))

    def unhurried(self) -> RateWindow:
        """Its start is counted, and never waits."""
        return replace(self, binding=False)


def frees_at(ask: RateWindow, state: LimitState) -> Instant:
    """When a rate window has its next permit: when its ``limit``-th last start is ``span`` ms old; 0 for at once."""
    newest = sorted(state.starts.values(), reverse=True)
    return newest[ask.limit - 1] + ask.span if len(newest) >= ask.limit else 0


def outdated(ask: RateWindow, state: LimitState) -> tuple[str, ...]:
    """The holders of the starts that a rate window can drop once it has one more.

    Each of the last ``limit`` entries may belong to a job that is dropped before it starts. So the window keeps as many
    entries before them.
    """
    oldest_first = sorted(state.starts.items(), key=lambda start: (start[1], start[0]))
    return tuple(holder for holder, _ in oldest_first[: max(len(oldest_first) - 2 * ask.limit + 1, 0)])


def with_known_starts(asks: Iterable[object], states: Mapping[str, LimitState], holder: str) -> dict[str, LimitState]:
    """The windows of a workflow that have counted nothing yet, with the starts that its other windows remember.

    So a rule whose numbers have changed keeps its starts, as far as they are known. The first start that a window
    counts is stored with them. The entry of ``holder``, the job that asks, does not count against itself."""
    windows = {ask.limit_name: ask for ask in asks if isinstance(ask, RateWindow)}
    known = {other: at for name in windows for other, at in states[name].starts.items() if other != holder}
    oldest_first = sorted(known.items(), key=lambda start: (start[1], start[0]))
    new = {name: ask for name, ask in windows.items() if known and states[name].rev == 0}
    return {name: replace(states[name], starts=dict(oldest_first[1 - 2 * ask.limit :])) for name, ask in new.items()}


def rate_window_of(workflow: str, rule: str, binding: bool) -> RateWindow:
    """The request of a workflow's job for a rule, ``<limit>/<span in ms>``."""
    limit, _, span = rule.partition("/")
    return RateWindow(rate_limit(workflow, rule), int(limit), int(span), binding)


@dataclass(frozen=True, slots=True)
class Pace(_Request):
    """A request for the next permit of a pace. Permits are ``spacing`` ms apart; at most ``burst`` of them at once.

    A permit is an appointment. Its start begins at that instant or at most ``tolerance`` ms later; else it needs
    another permit. ``rule`` describes the pace to users. ``cycle`` is a number of permits and the ms that these take
    together: ``spacing`` is rounded up to a whole ms, and permits in a block are not rounded one by one (`after`).
    ``parts``: the queue is divided into so many (`core/limits/parts.py`); 0 if it is not. ``aging`` is that of the
    policy.
    """

    by_appointment: ClassVar[bool] = True

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


def rule(ask: PermitRequest) -> str:
    """What a limit allows, as text for users, whether or not a job waits for it: ``at most 2 runs at a time``."""
    match ask:
        case Slots():
            most, unit = ask.maximum
            gap = f"{format_duration(ask.gap)} between two starts" if ask.gap is not None else ""
            return ", ".join(text for text in (_at_a_time(most, unit), gap) if text) or "counted, not limited"
        case RateWindow():
            return f"at most {count_of(ask.limit, 'run')} claimed per {format_duration(ask.span)}"
        case Pace():
            return ask.rule or f"one start every {format_duration(ask.spacing)}, burst {ask.burst}"


def _at_a_time(most: int | None, unit: str) -> str:
    if most is None:
        return ""
    return f"at most {count_of(most, unit.removesuffix('s'))} at a time" if unit != "vcpu" else f"at most {most} vCPU"


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
            frees = iso(frees_at(ask, state))
            return Why.of("limit", "waits for the rate limit of ", limit, f": {rule(ask)}, the next at {frees}")
        case Pace():
            return Why.of("limit", "waits for a permit of ", limit, f": {rule(ask)}")


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
