"""How a living run is followed (W6, W7): when it is looked at next if nothing is heard of it, and when it has run for
too long (W12).

*ping*: the target says by itself what becomes of a run. EMR does so by events, which are best effort, so a silent run
is asked about, ever less often; a worker does so by heartbeats, and its silence is its death. *poll*: the target is
asked at an interval.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis, duration, format_duration
from chalicelib.core.rows.run import Run
from chalicelib.core.states import RunState
from chalicelib.core.targets import registry

# A run whose state event never came is asked about after this long, then ever less often.
SILENT_FIRST: Millis = 2 * MINUTE
SILENT_LATER: Millis = 10 * MINUTE
JUST_HEARD: Millis = 30 * SECOND  # what was heard of a run so lately is believed


def next_poll(run: Run, now: Instant, first: bool = False) -> Instant:
    """When a living run is looked at next. ``first``: it has just been started."""
    if run.lease_until is not None and run.target_id is not None:
        next_poll = run.lease_until
    else:
        next_poll = now + (_interval(run) or (SILENT_FIRST if first else SILENT_LATER))
    end = times_out_at(run)
    return next_poll if end is None else min(next_poll, max(end, now))


def times_out_at(run: Run) -> Instant | None:
    """When it will have run for too long; None if it has no timeout, does not run yet, or its end is wanted already."""
    if not run.run_timeout or run.started_at is None or run.state != "RUNNING" or ends(run):
        return None
    return run.started_at + run.run_timeout


def ends(run: Run) -> bool:
    """Whether its end is wanted: somebody cancels it, or it has run for too long."""
    return run.cancel or run.outcome == "timed_out"


def has_run_out(run: Run, now: Instant) -> bool:
    end = times_out_at(run)
    return end is not None and end <= now


def timed_out(run: Run, now: Instant) -> Run:
    """The run whose end is wanted because of its timeout. It will have failed, and not been cancelled."""
    why = f"timed out: it ran longer than {format_duration(run.run_timeout or 0)}, and was cancelled"
    return replace(run, outcome="timed_out", reason=why, wake_at=now, leases=0, rev=run.rev + 1)


def is_silent(run: Run, now: Instant) -> bool:
    """Whether all that a look at a run is for is a question to a target that is asked about many runs at a time:
    nothing is owed of it, and nobody wants its end."""
    going = run.state in ("STARTING", "RUNNING") and run.target_id is not None and not run.announce
    return going and registry.of_run(run).listed and not ends(run) and not has_run_out(run, now)


def may_have_ended(run: Run, now: Instant) -> bool:
    """Whether a run that keeps a slot is worth a question: it is silent, and what it told last is not quite new."""
    heard = run.state_at if run.state_at is not None else run.claimed_at
    return is_silent(run, now) and now - heard >= JUST_HEARD


def counts_as(run: Run, state: RunState) -> RunState:
    """What an end means. Who was cancelled for its timeout has failed (W12); the rest is for the target to say."""
    if run.outcome == "timed_out" and not run.cancel and state == "CANCELLED":
        return "FAILED"
    return registry.of_run(run).interpret(run, state)


def _interval(run: Run) -> Millis | None:
    """How often a target that is polled is asked."""
    every = run.request.target.get("poll_every")
    return duration(str(every)) if every else None
