"""How Sluice follows an active run (W6, W7): when it polls a silent run next, and when a run has timed out (W12).

With *ping*, the target reports the state of a run by itself. EMR and Step Functions send events, which are best effort;
so Sluice also polls a silent run, at growing intervals. A worker sends heartbeats; when they stop, the worker counts as
lost. With *poll*, Sluice also polls the target at a fixed interval.
"""

from __future__ import annotations

from chalicelib.core.changes import replace
from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis, duration, format_duration
from chalicelib.core.rows.run import Run
from chalicelib.core.states import RunState
from chalicelib.core.targets import registry
from chalicelib.core.why import Why, joined

# Sluice polls a run whose state event did not arrive after the first pause, and from then on after the second.
SILENT_FIRST: Millis = 2 * MINUTE
SILENT_LATER: Millis = 10 * MINUTE
FRESH_FOR: Millis = 30 * SECOND  # a run whose last update is younger than this needs no poll


def next_poll(run: Run, now: Instant, first: bool = False) -> Instant:
    """When Sluice polls an active run next, or finds its lease or its time over. ``first``: it has just started."""
    if run.lease_until is not None and run.target_id is not None:
        next_poll = run.lease_until
    else:
        next_poll = now + (_interval(run) or (SILENT_FIRST if first else SILENT_LATER))
    end = times_out_at(run)
    return by_start(run, next_poll if end is None else min(next_poll, max(end, now)), now)


def times_out_at(run: Run) -> Instant | None:
    """When a run times out; None if it has no timeout, is not RUNNING, or is to be ended already."""
    if not run.run_timeout or run.started_at is None or run.state != "RUNNING" or ends(run):
        return None
    return run.started_at + run.run_timeout


def must_run_by(run: Run) -> Instant | None:
    """By when a run must be RUNNING (W21); None if it need not, is RUNNING, or is to be ended already."""
    if not run.start_timeout or run.start_requested_at is None or run.state != "STARTING" or ends(run):
        return None
    return run.start_requested_at + run.start_timeout


def by_start(run: Run, at: Instant, now: Instant) -> Instant:
    """The instant ``at``, at which Sluice looks at a run again, or that by which the run must be RUNNING, if sooner."""
    end = must_run_by(run)
    return at if end is None else min(at, max(end, now))


def has_not_begun(run: Run, now: Instant) -> bool:
    """Whether a run was requested and is not RUNNING in time (W21)."""
    end = must_run_by(run)
    return end is not None and end <= now


def ends(run: Run) -> bool:
    """Whether Sluice has to end the run: a user cancelled it, or it timed out."""
    return run.cancel or run.outcome == "timed_out"


def has_run_out(run: Run, now: Instant) -> bool:
    end = times_out_at(run)
    return end is not None and end <= now


def timed_out(run: Run, now: Instant) -> Run:
    """The run marked as timed out, and due at once, so that Sluice cancels it at its target. It ends as FAILED."""
    why = why_not_begun(run) if has_not_begun(run, now) else why_run_out(run)
    return replace(run, outcome="timed_out", reason=why, wake_at=now, leases=0, rev=run.rev + 1)


def why_run_out(run: Run) -> Why:
    took = format_duration(run.run_timeout or 0)
    return Why.of("run_timed_out", f"timed out: the run took longer than {took} and was cancelled")


def why_not_begun(run: Run) -> Why:
    """The reason of a run that is ended because it is not RUNNING in time, with what it waits for."""
    within = format_duration(run.start_timeout or 0)
    said = f"not started: the run was requested and did not begin to run within {within}"
    return Why.of("start_timed_out", joined([said, run.reason], "; "))


def is_silent(run: Run, now: Instant) -> bool:
    """Whether a poll is all that a run needs, and its target answers for many runs in one call. Such a run has nothing
    to announce and is not to be ended."""
    going = run.state in ("STARTING", "RUNNING") and run.target_id is not None and not run.announce
    over = ends(run) or has_run_out(run, now) or has_not_begun(run, now)
    return going and registry.of_run(run).listed and not over


def may_have_ended(run: Run, now: Instant) -> bool:
    """Whether to poll a run that holds a slot: the run is silent, and its last update is at least `FRESH_FOR` old."""
    updated_at = run.state_at if run.state_at is not None else run.claimed_at
    return is_silent(run, now) and now - updated_at >= FRESH_FOR


def counts_as(run: Run, state: RunState) -> RunState:
    """The state that Sluice gives a run. A run cancelled because of its timeout has failed (W12); the target type
    interprets all other states."""
    if run.outcome == "timed_out" and not run.cancel and state == "CANCELLED":
        return "FAILED"
    return registry.of_run(run).interpret(run, state)


def _interval(run: Run) -> Millis | None:
    """The interval in ms at which the target is polled; None if it is not."""
    every = run.request.target.get("poll_every")
    return duration(str(every)) if every else None
