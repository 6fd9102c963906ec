"""The state machines of jobs and runs, whole, as tables. An illegal move raises and changes nothing.

A **job** is a schedule whose trigger was touched by an event. It gathers (PENDING_TRIGGER), then waits for its
constraints (PENDING_CONSTRAINTS), then for a permit of a line (PENDING_LAUNCH). Claimed, it leaves the queue and a
run takes its place under the same id, in one transaction; refused for good, it leaves with a record that says why.

A **run** is one execution. STARTING is the outbox: its start call may be repeated until an answer is known. RETRYING
is a failed attempt that another will follow; it is announced to nobody.
"""

from __future__ import annotations

from typing import Literal

# How a schedule stands (L2-L4). `drain` and `completed` let existing jobs go on; `hold` and `backlog` keep them.
Mode = Literal["enabled", "hold", "backlog", "drain", "completed", "disabled", "deleted"]
JobKind = Literal["gathering", "fire", "detached", "run_now", "retry", "redrive", "backfill"]
JobState = Literal["PENDING_TRIGGER", "PENDING_CONSTRAINTS", "PENDING_LAUNCH"]
RunState = Literal["STARTING", "RUNNING", "SUCCEEDED", "FAILED", "RETRYING", "CANCELLED", "ABORTED"]
# How an attempt may fail (W1): the target says so; it ran longer than it may (W12); nothing was heard of it (W5).
Outcome = Literal["failed", "timed_out", "lost"]
# Why jobs wait, in few classes: each value of a dimension is a metric of its own, and is paid for.
WaitReason = Literal["slots", "pool", "rate", "emr_start", "time", "upstream", "probe", "approval", "paused"]

# In these modes the index leads to the schedule: events gather.
GATHERING_MODES: tuple[Mode, ...] = ("enabled", "hold", "backlog")
PAUSED_MODES: tuple[Mode, ...] = ("hold", "backlog", "drain")
# In these, what was prepared or met goes on to be launched.
_OPEN: tuple[Mode, ...] = ("enabled", "drain", "completed")
# Which jobs may be claimed from a schedule in which mode. A run-now, a retry, a redrive and a backfill were decided on
# by themselves; what a person asked for goes even where the schedule is disabled.
CLAIMABLE: dict[JobKind, tuple[Mode, ...]] = {
    "gathering": _OPEN,
    "fire": _OPEN,
    "detached": _OPEN,
    "retry": ("enabled", "hold", "backlog", "drain", "completed"),
    "redrive": ("enabled", "hold", "backlog", "drain", "completed", "disabled"),
    "run_now": ("enabled", "hold", "backlog", "drain", "completed", "disabled"),
    "backfill": ("enabled", "hold", "backlog", "drain", "completed", "disabled"),
}

RUN_MOVES: dict[RunState, tuple[RunState, ...]] = {
    "STARTING": ("RUNNING", "SUCCEEDED", "FAILED", "RETRYING", "CANCELLED", "ABORTED"),
    "RUNNING": ("SUCCEEDED", "FAILED", "RETRYING", "CANCELLED"),
    "SUCCEEDED": (),
    "FAILED": (),
    "RETRYING": ("FAILED",),  # when the job of the next attempt is dropped
    "CANCELLED": (),
    "ABORTED": (),
}

# What a run's state means to the triggers of other schedules (T10); the rest is announced to nobody.
PROGRAM_STATUS: dict[RunState, Literal["STARTED", "COMPLETED", "FAILED", "KILLED"]] = {
    "RUNNING": "STARTED",
    "SUCCEEDED": "COMPLETED",
    "FAILED": "FAILED",
    "CANCELLED": "KILLED",
}

# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-states.html
EMR_STATE: dict[str, RunState] = {
    "SUBMITTED": "STARTING",
    "PENDING": "STARTING",
    "SCHEDULED": "STARTING",
    "QUEUED": "STARTING",
    "RUNNING": "RUNNING",
    "CANCELLING": "RUNNING",
    "SUCCESS": "SUCCEEDED",
    "FAILED": "FAILED",
    "CANCELLED": "CANCELLED",
}


def claimable(kind: JobKind, backfill: str | None = None) -> tuple[Mode, ...]:
    """In which modes a job may be claimed. The retry of a backfill's run goes on wherever the backfill does."""
    return CLAIMABLE["backfill" if backfill is not None else kind]


def may_start(kind: JobKind, mode: Mode, backfill: str | None = None) -> bool:
    """Whether a claimed run may still make its start call. A pause holds jobs, never a run that was claimed before."""
    return mode in claimable(kind, backfill) or mode in PAUSED_MODES


def is_terminal(state: RunState) -> bool:
    """Whether the attempt is over (its permits have been given back)."""
    return state not in ("STARTING", "RUNNING")


def may_move(old: RunState, new: RunState) -> bool:
    """States only move forward; the same state again, or an earlier one, is old news."""
    return new in RUN_MOVES[old]


def move(old: RunState, new: RunState) -> RunState:
    if not may_move(old, new):
        raise ValueError(f"a run cannot go from {old} to {new}; from {old} it may go to {RUN_MOVES[old] or 'nothing'}")
    return new
