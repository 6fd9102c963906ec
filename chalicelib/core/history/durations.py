"""How long an attempt waited and ran, and by how much it was late: one definition for the API, the console, the
command line and the lake (docs/history.md). All spans are in ms."""

from __future__ import annotations

from chalicelib.core import states
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.notices import deadlines
from chalicelib.core.rows.run import Run, RunSpan, ready_at

LATE: Millis = 1_000  # less than this late is on time


def waited(run: Run | RunSpan) -> Millis:
    """How long the job of a run waited for its claim. The run of a backfill or re-processing waits from the creation of
    its job, since its event is old."""
    if run.traits.replays:
        return max(0, run.claimed_at - run.created_at)
    begun = ready_at(run)
    return max(0, run.claimed_at - (begun if begun is not None else run.created_at))


def began(run: Run | RunSpan) -> Instant:
    """The instant from which the duration of an attempt counts: its start, as its target has told. A target that tells
    only the end, as that of a delivery, gives both the same instant; then it is the start request, or else the
    claim. The report of a day (`jobs/history_report.py`) has the same rule."""
    told = run.started_at
    if told is not None and (run.ended_at is None or told < run.ended_at):
        return told
    return run.start_requested_at if run.start_requested_at is not None else run.claimed_at


def took(run: Run | RunSpan) -> Millis | None:
    """How long an attempt ran; None while it goes on. One that is over without a known end has ended when Sluice
    recorded its state."""
    is_over = states.is_terminal(run.state) or run.state == "RETRYING"
    ended = run.ended_at if run.ended_at is not None else run.state_at
    return max(0, ended - began(run)) if is_over and ended is not None else None


def late_by(run: Run) -> Millis | None:
    """By how much an attempt was late: for its due instant, or for a deadline that it has missed, whichever is more.
    0: it was on time. None if nothing says when it was due, or if its start is not known yet."""
    begun = deadlines.began(run) if run.start_by is not None else None
    started = begun if begun is not None else run.ended_at
    deadlined = ((started, run.start_by), (run.ended_at, run.end_by))
    known = [at - by for at, by in deadlined if at is not None and by is not None]
    known += [run.lateness] if run.lateness is not None else []
    return max(0, *known) if known else None


def is_late(run: Run, now: Instant) -> bool:
    """Whether an attempt was late by a second or more, was claimed after the window of its spread, or has not met a
    deadline that is over."""
    open_by = (run.start_by if run.start_by is not None and deadlines.began(run) is None else None, run.end_by)
    overdue = run.ended_at is None and any(by is not None and by < now for by in open_by)
    return run.late or overdue or (late_by(run) or 0) >= LATE
