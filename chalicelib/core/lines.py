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

from collections.abc import Mapping
from dataclasses import dataclass, field

from chalicelib.core.calendar import SECOND, Instant, Millis, iso, spell_duration
from chalicelib.core.line_names import EMR_STARTS as EMR_STARTS
from chalicelib.core.line_names import application_line as application_line
from chalicelib.core.line_names import gives_back as gives_back
from chalicelib.core.line_names import group_line as group_line
from chalicelib.core.line_names import is_log as is_log
from chalicelib.core.line_names import is_of_workflow as is_of_workflow
from chalicelib.core.line_names import is_pace as is_pace
from chalicelib.core.line_names import is_pool as is_pool
from chalicelib.core.line_names import is_shared as is_shared
from chalicelib.core.line_names import is_target_pace as is_target_pace
from chalicelib.core.line_names import is_turn as is_turn
from chalicelib.core.line_names import names_starts as names_starts
from chalicelib.core.line_names import numbers as numbers
from chalicelib.core.line_names import place_of_slots as place_of_slots
from chalicelib.core.line_names import policy_line as policy_line
from chalicelib.core.line_names import pool_line as pool_line
from chalicelib.core.line_names import pool_of as pool_of
from chalicelib.core.line_names import rate_line as rate_line
from chalicelib.core.line_names import rate_rule as rate_rule
from chalicelib.core.line_names import share_line as share_line
from chalicelib.core.line_names import spell as spell
from chalicelib.core.line_names import turn_line as turn_line
from chalicelib.core.line_names import workflow_line as workflow_line
from chalicelib.core.stored_row import StoredRow

# Living runs whose starts are remembered one by one; a row with more would cost every start of the workflow.
MOST_STARTS = 100
# A queue for slots is due again so soon after a look that the very next tick finds it.
SLOTS_LOOK: Millis = 5 * SECOND
# How often the runs that hold the slots of a queue are asked about: at each tick.
ASK_HOLDERS: Millis = 50 * SECOND

# How long a line is its server's alone. The server renews it while it goes on; if it dies, another one takes over.
SERVER_LEASE: Millis = 5 * SECOND
# How far ahead of its instant a permit of a pace may be taken: the start is prepared before it may begin.
LEAD: Millis = SECOND
# What comes between a permit and its start call: the claim, the context, the record of the call, the gate once more.
PREPARATION: Millis = 250
# How long before its next permit the queue of a pace is served: a hint takes its time, and so do reading and deciding.
SERVED_EARLY: Millis = 600

# How often a job is looked at that asks for more than its pool has.
TOO_LARGE: Millis = 600 * SECOND
# How long after its appointment a start may begin. At EMR the part of the burst that is left unused covers these.
LATE_START: Millis = 2 * SECOND


@dataclass(frozen=True, slots=True)
class Slots:
    """What a job asks of a slots line: one of at most ``limit`` places (None: counted, but not limited), and that the
    last start is at least ``gap`` ms ago (C4): of a successful or living run, or of any run with ``any_run``.

    Of a pool it takes ``units`` at once, called ``unit``. ``spare``: where they are taken if none are left here and
    nobody waits there, for a share of a pool; the queue is here. ``owed``: so many of the places are in use elsewhere,
    since the pool was cut otherwise (W3)."""

    line: str
    limit: int | None
    gap: Millis | None = None
    any_run: bool = False
    units: int = 1
    unit: str = "slot"
    spare: Slots | None = None
    owed: int = 0

    @property
    def order(self) -> tuple[int, int, str]:
        return (1, place_of_slots(self.line), self.line)

    @property
    def below(self) -> int | None:
        """The permit in one comparison: there is one while fewer than so many are in use."""
        return None if self.limit is None else self.limit - self.owed - self.units + 1


@dataclass(frozen=True, slots=True)
class Log:
    """What a job asks of a log line: fewer than ``limit`` claims in the last ``span`` ms (C5). ``binding`` False: its
    start is counted there, for the sake of others, but not limited."""

    line: str
    limit: int
    span: Millis
    binding: bool = True

    @property
    def order(self) -> tuple[int, int, str]:
        return (0, self.span, self.line)


@dataclass(frozen=True, slots=True)
class Pace:
    """What a job asks of a pace line: the next start, ``spacing`` ms apart, ``burst`` of them at once at most.

    A permit is an appointment. Its start begins at that instant or at most ``tolerance`` ms after it, or takes another
    permit. ``rule`` is the pace in words.
    """

    line: str
    spacing: Millis
    burst: int
    tolerance: Millis = LATE_START
    rule: str = ""

    @property
    def order(self) -> tuple[int, int, str]:
        return (2, self.spacing, self.line)

    @property
    def slack(self) -> Millis:
        """How far ahead of ``now`` the head may run while there is still a permit."""
        return (self.burst - 1) * self.spacing

    @property
    def room(self) -> Millis:
        """How far ahead an appointment must lie at least, so that the start can be prepared within its tolerance."""
        return max(0, PREPARATION - self.tolerance)


Ask = Slots | Log | Pace


@dataclass(frozen=True, slots=True)
class LineState:
    """A line as stored. ``wake_at`` is set whenever somebody waits: it is when the queue wants serving.

    ``starts`` holds, per run and attempt, when it started: on a slots line the living runs, on a log line the last
    ones. ``crowd`` is the latest start of living runs beyond `MOST_STARTS`. ``rev`` counts the changes of all these.
    ``rates`` are the log lines that every start of this workflow is to be counted in. ``numbered`` is the number of the
    workflow's last start (H1). ``asked_at`` is when the runs that hold its slots were last asked about, because jobs
    wait. ``edition`` is that of the workflow's definition: each start expects it as it was read.
    """

    line: str
    active: int = 0
    waiters: int = 0
    head: Instant = 0
    wake_at: Instant | None = None
    rev: int = 0
    starts: Mapping[str, Instant] = field(default_factory=dict)
    crowd: Instant = 0
    last_start: Instant | None = None
    last_success_start: Instant | None = None
    last_success_at: Instant | None = None
    rates: tuple[str, ...] = ()
    numbered: int = 0
    asked_at: Instant = 0
    edition: int = 0


@dataclass(frozen=True, slots=True)
class Waiter(StoredRow):
    """A place in a queue. ``rank`` sorts by inverse priority, latest start, age; ``job`` is where its job lives: for a
    run that has been claimed, and must take a permit anew, that is ``A#<attempt>``."""

    line: str
    rank: str
    job_schedule: str
    job_generation: int
    job_place: str
    job_id: str

    @property
    def run(self) -> tuple[str, int] | None:
        """The run and attempt that wait here, if it is no job."""
        return (self.job_id, int(self.job_place[2:])) if self.job_place.startswith("A#") else None


def in_order(asks: tuple[Ask, ...]) -> tuple[Ask, ...]:
    """The one order in which every job takes its lines: logs (who waits for a rate keeps no slot), slots, then pace."""
    return tuple(sorted(asks, key=lambda ask: ask.order))


def has_permit(ask: Ask, state: LineState, now: Instant) -> bool:
    match ask:
        case Slots():
            return ask.below is None or state.active < ask.below
        case Log():
            return not ask.binding or frees_at(ask, state) <= now
        case Pace():
            return state.head <= now + ask.slack


def admits(ask: Ask, state: LineState, now: Instant) -> bool:
    """Whether a newcomer may take a permit: there is one and nobody waits for it. No limit, no queue."""
    return is_unlimited(ask) or (has_permit(ask, state, now) and state.waiters == 0)


def is_unlimited(ask: Ask) -> bool:
    """Whether a line only counts this job, and never holds it up."""
    return (isinstance(ask, Slots) and ask.limit is None) or (isinstance(ask, Log) and not ask.binding)


def frees_at(ask: Log, state: LineState) -> Instant:
    """When a log line has its next permit: as soon as its ``limit``-th last start is ``span`` old."""
    newest = sorted(state.starts.values(), reverse=True)
    return newest[ask.limit - 1] + ask.span if len(newest) >= ask.limit else 0


def outdated(ask: Log, state: LineState) -> tuple[str, ...]:
    """The starts that a log line need not remember once there is one more.

    Of the last ``limit`` each may be that of a job which is dropped before it starts, so as many before them are kept.
    """
    oldest_first = sorted(state.starts.items(), key=lambda start: (start[1], start[0]))
    return tuple(holder for holder, _ in oldest_first[: max(len(oldest_first) - 2 * ask.limit + 1, 0)])


def gap_ends(ask: Slots, state: LineState) -> Instant | None:
    """When ``gap`` after the last start is over (C4); None if nothing has started that counts."""
    if ask.gap is None:
        return None
    known = [*state.starts.values(), *([state.crowd] if state.active > len(state.starts) and state.crowd else [])]
    last = state.last_start if ask.any_run else state.last_success_start
    latest = max(known + ([last] if last is not None else []), default=None)
    return None if latest is None else latest + ask.gap


def next_head(ask: Pace, state: LineState, now: Instant) -> Instant:
    return max(state.head, now) + ask.spacing


def next_look(ask: Ask, state: LineState, now: Instant) -> Instant:
    """When the queue of this line wants serving if nothing happens before."""
    match ask:
        case Slots():
            return now + SLOTS_LOOK
        case Log():
            return max(now, frees_at(ask, state))
        case Pace():
            return max(now, state.head - ask.slack)


def asks_holders(state: LineState, now: Instant) -> bool:
    """Whether the runs that hold the slots of a line are to be asked about: jobs wait for one, and the event of an end
    may have been lost (W7)."""
    if not gives_back(state.line) or is_turn(state.line) or state.waiters == 0:
        return False
    return state.active > 0 and now - state.asked_at >= ASK_HOLDERS


def horizon(ask: Ask, now: Instant, in_turn: bool = False) -> Instant:
    """Up to which instant a permit of this line may be taken now, ahead from the queue alone. A newcomer that waits for
    its instant would pass who is more urgent and comes meanwhile, and keep the rest of its batch waiting."""
    if not isinstance(ask, Pace):
        return now
    return now + (LEAD if in_turn else ask.room)


def is_timed(ask: Ask | None) -> bool:
    """Whether a permit comes with time alone, so that the instant is worth a hint."""
    return isinstance(ask, Log | Pace)


def rank(priority: int, latest_start: Instant | None, created_at: Instant, job_id: str) -> str:
    """The sort key of a waiter: urgent first, then the earliest latest start, then the oldest."""
    latest = iso(latest_start) if latest_start is not None else "~"
    return f"{9 - priority}#{latest}#{iso(created_at)}#{job_id}"


def why(ask: Ask, state: LineState) -> str:
    """Why a job waits at this line, in the words that ``why`` shows."""
    ahead = f", {state.waiters} waiting" if state.waiters else ""
    match ask:
        case Slots() if is_turn(ask.line):
            return f"waits for its turn at {spell(ask.line)}: others are next{ahead}"
        case Slots():
            short = f"; it has {ask.limit}, so take less or make it larger" if never_fits(ask) else ""
            short += f"; {ask.owed} more are to come back from parts that were made smaller" if ask.owed else ""
            return f"waits for {_wanted(ask)} of {spell(ask.line)}: {state.active} of {ask.limit} in use{ahead}{short}"
        case Log():
            rule = f"at most {ask.limit} runs claimed per {spell_duration(ask.span)}"
            return f"waits for the rate of {spell(ask.line)}: {rule}, the next at {iso(frees_at(ask, state))}{ahead}"
        case Pace():
            rule = ask.rule or f"one start every {spell_duration(ask.spacing)}, burst {ask.burst}"
            return f"waits for its turn at {spell(ask.line)}: {rule}{ahead}"


def _wanted(ask: Slots) -> str:
    if ask.unit == "slot":
        return "a slot" if ask.units == 1 else f"{ask.units} slots"
    return f"{ask.units} {ask.unit}"


def with_spares(asks: tuple[Ask, ...]) -> tuple[Ask, ...]:
    """Every line that these may take a permit of, in their order."""
    return tuple(
        each for ask in asks for each in (ask, ask.spare if isinstance(ask, Slots) else None) if each is not None
    )


def never_fits(ask: Ask) -> bool:
    """Whether a job asks for more than there is, here and where it may be taken instead."""
    if not isinstance(ask, Slots) or ask.limit is None or ask.limit >= ask.units:
        return False
    return ask.spare is None or never_fits(ask.spare)


def is_held(ask: Ask, held: tuple[str, ...]) -> bool:
    """Whether a job has the permit that it asks for, here or where it may be taken instead."""
    return ask.line in held or (isinstance(ask, Slots) and ask.spare is not None and ask.spare.line in held)


def holds_other_units(asks: tuple[Ask, ...], held: tuple[str, ...], units: int) -> bool:
    """Whether a job holds units of a pool that it would not take now: of another one, or not as many."""
    pool = next((ask for ask in asks if isinstance(ask, Slots) and is_pool(ask.line)), None)
    if not any(is_pool(line) for line in held):
        return False
    return pool is None or not is_held(pool, held) or pool.units != units


def log_of(workflow: str, rule: str, binding: bool) -> Log:
    limit, _, span = rule.partition("/")
    return Log(rate_line(workflow, rule), int(limit), int(span), binding)
