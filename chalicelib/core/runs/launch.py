"""The decisions of the step *launch*: how Sluice records a start call, and the effect of each answer to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis
from chalicelib.core.limits import names, parts
from chalicelib.core.limits import permits as limit_permits
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.permits import Pace
from chalicelib.core.limits.route import Route
from chalicelib.core.limits.writes import AcquirePermit, AdvancePace, JoinQueue
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import follow, workers
from chalicelib.core.runs import queued as run_queued
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import NoAnswer, NotNow, Started
from chalicelib.core.targets.retries import backoff
from chalicelib.core.why import NONE, Mention, Why
from chalicelib.core.writes import Create, Replace, Write

# Longer than any start call takes: two reads and writes of rows before it, and the clients' timeouts (see `wiring.py`;
# for EMR 2 s to connect and 6 s to read, twice). Each tick hints the runs whose lease ends before the next one, so that
# they go on when it ends.
CALL_LEASE: Millis = 50 * SECOND
# Stopping an application takes a minute or two. IAM documents that a change may take some minutes to be visible.
UNREADY: Millis = 10 * MINUTE
FEWEST_CALLS = 6  # calls before a refusal is permanent: a run may have waited for other reasons since its first call


@dataclass(frozen=True, slots=True)
class Span:
    """The instants from which and until which a start call may begin with its permits."""

    since: Instant
    until: Instant


@dataclass(frozen=True, slots=True)
class Seen:
    """What the start of a run depends on, read in this order as far as it matters: what comes after a fact that decides
    the step has its default.

    ``is_open``: the schedule, and the backfill if the run has one, still let the run start. ``missing`` are the grants
    that the run lacks. ``serving`` is the pace whose queue serves the run. ``paces`` are those of which the run needs a
    permit, slowest last, with the ``states`` of their limits; None if it needs no permit.
    """

    schedule_state: ScheduleState | None = None
    is_open: bool = False
    missing: tuple[ForeignUse, ...] = ()
    serving: str | None = None
    paces: tuple[Pace, ...] | None = None
    states: Mapping[str, LimitState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leave:
    """Make no call now. ``waits``: the run waits in a queue or joins one. ``off_queue``: it leaves its queue, and is
    due again when the lease of its unanswered call ends."""

    waits: bool = False
    off_queue: bool = False


@dataclass(frozen=True, slots=True)
class Withdraw:
    """End the run: it was cancelled, its schedule was closed, or it has not begun in time."""


@dataclass(frozen=True, slots=True)
class Hold:
    """End the attempt, because grants are missing. The job of the next attempt waits for them."""

    missing: tuple[ForeignUse, ...]


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Give back permits with which no call was made in time, and decide again."""

    writes: list[Write]


@dataclass(frozen=True, slots=True)
class Queue:
    """Wait in the queue of the slowest pace."""

    route: Route


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer the run to the workers of its pool; ``again``: no worker has claimed it yet."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """Make the start call."""


Step = Leave | Withdraw | Hold | GiveBack | Queue | Offer | Call


def next_step(run: Run, seen: Seen, now: Instant) -> Step:
    """What to do with a run that is STARTING and has no target id (C13)."""
    if is_being_called(run, now):
        return Leave()
    # An unanswered call may still reach the target, so search for its run only after the lease.
    leased = _is_leased(run, now)
    if is_to_end(run, now) or not seen.is_open:
        return Leave(off_queue=True) if leased else Withdraw()
    if seen.missing:
        return Leave(off_queue=True) if leased else Hold(seen.missing)
    if waits_elsewhere(run, seen.serving):
        return Leave(waits=True)
    if workers.is_offered(run):
        return Offer(again=True)
    paces = seen.paces or ()
    if unused := unused_permits(run, paces, seen.states, now):
        return GiveBack(unused)
    route = limit_route.route(paces, (), seen.states, now, seen.serving)
    if route.blocked is not None:
        return Queue(route)
    return Offer() if workers.is_pulled(run) else Call()


def is_to_end(run: Run, now: Instant) -> bool:
    """Whether a run that is STARTING is to be ended: a user cancelled it, or it does not begin in time (W21)."""
    return follow.ends(run) or follow.has_not_begun(run, now)


def still_going(
    run: Run, seen: Seen, newest: Run, span: Span | None, now: Instant
) -> Literal["call", "withdraw", "restart"]:
    """What becomes of a call that is on record, by what was read after the record. ``newest`` is the run as a start
    would prepare it now; another one than ``run`` means that an update was acknowledged since, which the run must
    use."""
    if not seen.is_open:
        return "withdraw"
    # Without a grant, the new start holds the run. A call that is too late needs another permit.
    if seen.missing or newest != run or (span is not None and now > span.until):
        return "restart"
    return "call"


def is_being_called(run: Run, now: Instant) -> bool:
    """Whether an invocation is making the start call, or has crashed and its lease has not expired. Without a token,
    a call that is repeated meanwhile would start another run."""
    return _is_leased(run, now) and not (run.unknown_answer and registry.of_run(run).has_token)


def _is_leased(run: Run, now: Instant) -> bool:
    return run.lease_until is not None and run.lease_until > now


def waits_elsewhere(run: Run, serving: str | None) -> bool:
    """Whether the run waits in another queue than the one that serves it."""
    return run.queued_in is not None and run.queued_in != serving


def calling(run: Run, now: Instant) -> Run:
    """The run as it is recorded before a start call: one more call, and a lease that outlasts the call."""
    lease = now + CALL_LEASE
    first = run.start_requested_at if run.start_requested_at is not None else now
    return replace(
        run,
        calls=run.calls + 1,
        lease_until=lease,
        # A lease without an answer means that the caller crashed during its call: the run may have started.
        unknown_answer=run.unknown_answer or run.lease_until is not None,
        start_requested_at=first,
        paced_from=None,
        paced_until=None,
        queued_in=None,
        rank=None,
        rev=run.rev + 1,
        wake_at=lease,
    )


def is_on_record(run: Run) -> bool:
    """Whether the row waits for the answer to a start call: only the end of the lease of the call wakes it."""
    waits = run.state == "STARTING" and run.target_id is None
    return waits and run.lease_until is not None and run.wake_at == run.lease_until


def paced_until(paces: Sequence[Pace], appointment: Instant) -> Instant | None:
    """Until when a start call may begin with permits for the instant ``appointment``; None without paces."""
    return min((appointment + pace.tolerance for pace in paces), default=None)


def granted(run: Run) -> Span | None:
    """When the start call may begin with the pace permits that a run has; None if it has none."""
    if run.paced_until is None:
        return None
    return Span(run.claimed_at if run.paced_from is None else run.paced_from, run.paced_until)


def span_of(run: Run, seen: Seen, now: Instant) -> Span | None:
    """When the start call may begin, with the permits that the run has or acquires now; None without a pace."""
    return granted(run) if seen.paces is None else next_span(seen.paces, seen.states, now)


def next_span(paces: tuple[Pace, ...], states: Mapping[str, LimitState], now: Instant) -> Span | None:
    """When the start call may begin with permits of these paces acquired now; None without paces."""
    if not paces:
        return None
    appointment = limit_route.appointment(paces, states, now)
    return Span(appointment, appointment + min(pace.tolerance for pace in paces))


def needs_permit(run: Run, now: Instant) -> bool:
    """Whether the next start call needs new permits of its paces: the earlier ones are used or too old (E3, E8)."""
    paced = any(names.is_pace(limit_name) for limit_name in run.permits)
    return paced and (run.paced_until is None or now > run.paced_until)


def unused_permits(run: Run, paces: Sequence[Pace], states: Mapping[str, LimitState], now: Instant) -> list[Write]:
    """The writes of one transaction that give back the permits with which a run made no call in time. Empty if there
    are none, or if jobs have acquired later ones.

    A permit of a pace without a burst ends one spacing before its ``head``, unless a later one was acquired. Then the
    next permit may be for the same instant as the unused one, because no start began with that. The run keeps no trace
    of them, so it gives them back once."""
    unused = granted(run)
    if unused is None or now <= unused.until:
        return []
    back = [
        AdvancePace(pace.limit_name, state, unused.since)
        for pace in paces
        if pace.burst == 1
        and (state := states.get(pace.limit_name)) is not None
        and state.head == unused.since + pace.spacing
    ]
    return [Replace(replace(run, paced_from=None, paced_until=None, rev=run.rev + 1)), *back] if back else []


def queued_rank(run: Run, aging: Millis) -> str:
    """The sort key of a run in the queue of a pace."""
    return limit_permits.rank(run.priority, run.latest_start, run.created_at, run.run_id, aging, run.created_at)


def queue(run: Run, route: Route, states: Mapping[str, LimitState], now: Instant) -> list[Write]:
    """The writes of one transaction: a run that may not call yet queues at its slowest pace, by priority and age. It
    leaves the queue in which it waits, if the slowest pace was another one then.

    Raises ValueError if the route is not blocked."""
    blocked = route.blocked
    if blocked is None:
        raise ValueError("expected a route that a limit blocks, got one without")
    ask, state = route.behind or blocked, states.get(blocked.limit_name) or LimitState(blocked.limit_name)
    rank = queued_rank(run, blocked.aging)
    cause = limit_permits.why(ask, states.get(ask.limit_name) or LimitState(ask.limit_name))
    # After a refused call, the reason begins with the answer of the target, and ends with what the run waits for.
    said = next((each for each in run.reason.names if each.kind == "answer"), None)
    why = Why.of(run.reason.code, said, "; ", cause) if run.calls and said is not None else cause
    # The limit wakes the run. If its waiter row is lost, its own wake_at does.
    queued = replace(
        run,
        queued_in=blocked.limit_name,
        rank=rank,
        reason=why,
        rev=run.rev + 1,
        wake_at=follow.by_start(run, now + follow.SILENT_LATER, now),
    )
    served_at = limit_route.queue_served_at(route, states, now)
    behind = route.behind is not None or parts.count(blocked, state) > 0
    join = JoinQueue(blocked, limit_permits.horizon(blocked, now), served_at, state.rev, behind)
    waiter = run_queued.waiter_of(queued)
    return [Replace(queued), *run_queued.leave(run), join, *([Create(waiter)] if waiter is not None else [])]


def take_permits(
    run: Run, called: Run, paces: tuple[Pace, ...], states: Mapping[str, LimitState], appointment: Instant
) -> list[Write]:
    """The writes of one transaction: record the call, with a permit of each pace for the instant ``appointment``."""
    permits = [
        AcquirePermit(
            pace,
            appointment,
            states.get(pace.limit_name) or LimitState(pace.limit_name),
            from_queue=pace.limit_name == run.queued_in,
            passing=limit_route.passes(pace, paces),
        )
        for pace in paces
    ]
    return [Replace(called), *permits, *run_queued.leave(run, [pace.limit_name for pace in paces])]


def uncalled(before: Run, called: Run, span: Span | None, now: Instant) -> Run:
    """The run without a call that was recorded but is not made. ``before`` is the run before the record, ``called`` the
    current row, which other writes may have changed. ``span`` is when the run may call with the permits that it has;
    None: they are used up, or it needs none."""
    waited = before.queued_in is not None and called.reason == before.reason
    return replace(
        called,
        calls=before.calls,
        lease_until=before.lease_until,
        unknown_answer=before.unknown_answer,
        start_requested_at=before.start_requested_at,
        reason=NONE if waited else called.reason,
        paced_from=span.since if span is not None else None,
        paced_until=span.until if span is not None else None,
        rev=called.rev + 1,
        wake_at=now,
    )


def answered(run: Run, answer: NotNow | NoAnswer | Started, now: Instant) -> Run:
    """The run after an answer that leaves it STARTING. After `Started` it leaves its queue and is polled; after other
    answers the call is repeated after a pause."""
    later = replace(run, rev=run.rev + 1, leases=0)
    if isinstance(answer, Started):
        later = replace(later, queued_in=None, rank=None, state_at=now)
        if run.cancel:
            return replace(later, target_id=answer.target_id, lease_until=None, wake_at=now)
        polled_at = follow.next_poll(later, now, first=True)
        return replace(later, target_id=answer.target_id, lease_until=None, reason=NONE, wake_at=polled_at)
    delay = answer.retry_after if answer.retry_after is not None else backoff(run.calls, run.run_id)
    again = follow.by_start(run, now + delay, now)
    if isinstance(answer, NotNow):
        return replace(later, lease_until=None, reason=_of("target_busy", answer.why), wake_at=again)
    # An unknown answer stays on record after later calls, too: the client token makes a repeated call harmless,
    # but to release the slot while the run may exist would exceed the limit.
    later = replace(later, unknown_answer=True, reason=_of("no_answer", answer.why), wake_at=again)
    if registry.of_run(run).has_token:
        return later
    # Without a token the next call needs a search, which shows what this call has started only after the delay.
    return replace(later, lease_until=now + delay, wake_at=now + delay, queued_in=None, rank=None)


def _of(code: str, answer: str) -> Why:
    return Why.of(code, Mention(answer, "answer", ""))


def may_pass(run: Run) -> bool:
    """Whether a refusal that may pass by itself counts as one for now: until ten minutes after the first call, and for
    the first calls."""
    if run.start_requested_at is None or run.lease_until is None or run.calls < FEWEST_CALLS:
        return True
    return run.lease_until - CALL_LEASE - run.start_requested_at < UNREADY


def surely_not_started(run: Run) -> bool:
    """Whether no start call can have succeeded: none was made, or each one was answered with a refusal."""
    return not run.unknown_answer and run.target_id is None and run.lease_until is None
