"""The complete state machines of jobs and runs, as tables. A run makes no move that is not in its table.

A **job** is work that waits to become a run. It gathers events (PENDING_TRIGGER), then waits for its constraints
(PENDING_CONSTRAINTS), then for a permit of a limit (PENDING_LAUNCH). In one transaction, the claim deletes the job and
creates a run with the same id. If a job can never become a run, Sluice deletes it with a record of the reason.

A **run** is one execution. STARTING is the outbox: Sluice may repeat the start call until it has an answer. RETRYING
is a failed attempt that another attempt will follow; it is not announced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# The mode of a schedule (L2-L4). In `drain` and `completed`, existing jobs are launched; in `hold` and `backlog`, not.
Mode = Literal["enabled", "hold", "backlog", "drain", "completed", "disabled", "deleted"]
JobKind = Literal["gathering", "fire", "detached", "run_now", "retry", "redrive", "backfill", "element"]
JobState = Literal["PENDING_TRIGGER", "PENDING_CONSTRAINTS", "PENDING_LAUNCH"]
RunState = Literal["STARTING", "RUNNING", "SUCCEEDED", "FAILED", "RETRYING", "CANCELLED", "ABORTED"]
# How an attempt may fail (W1): the target reports it; the run timed out (W12); its worker sent no heartbeat (W5).
FailureKind = Literal["failed", "timed_out", "lost"]
# Why jobs wait, in few classes: AWS bills each value of a dimension as a metric of its own.
WaitReason = Literal["slots", "pool", "rate", "emr_start", "time", "upstream", "probe", "approval", "paused", "grant"]

# In these modes the reverse index lists the schedule, so it gathers events.
GATHERING_MODES: tuple[Mode, ...] = ("enabled", "hold", "backlog")
HOLDING_MODES: tuple[Mode, ...] = ("hold", "backlog")
PAUSED_MODES: tuple[Mode, ...] = ("hold", "backlog", "drain")
# In these modes, prepared fires and met triggers are launched.
_OPEN: tuple[Mode, ...] = ("enabled", "drain", "completed")
# The modes of a schedule in which a job may be claimed. A pause does not hold a run-now, a retry, a redrive or a
# backfill. Work that a user requested is claimed even if the schedule is disabled.
CLAIMABLE: dict[JobKind, tuple[Mode, ...]] = {
    "gathering": _OPEN,
    "fire": _OPEN,
    "detached": _OPEN,
    "element": _OPEN,
    "retry": ("enabled", "hold", "backlog", "drain", "completed"),
    "redrive": ("enabled", "hold", "backlog", "drain", "completed", "disabled"),
    "run_now": ("enabled", "hold", "backlog", "drain", "completed", "disabled"),
    "backfill": ("enabled", "hold", "backlog", "drain", "completed", "disabled"),
}


@dataclass(frozen=True, slots=True)
class Traits:
    """In what the jobs of a kind, and the runs that they become, differ. Nothing else asks for their kind.

    What makes the job: events of its trigger (``of_events``), which it still ``gathers``; an instant of a timer
    (``timed``); the failure of a run, which it continues (``retries``); a dead letter (``redelivers``); a backfill
    (``replays``); the run of a node, for an element of its list (``of_elements``). ``requested``: a user, so nobody
    need have enabled the schedule.

    ``keeps_request``: no update of its schedule changes it. ``met_before``: its conditions were met once, so it may
    wait as long as it takes. ``has_deadline``: that of its schedule counts for it. ``makes_room``: it may cancel older
    runs. ``leaves_record``: if it is dropped; otherwise its run, or its dead letter, shows that.
    """

    of_events: bool = False
    gathers: bool = False
    timed: bool = False
    retries: bool = False
    redelivers: bool = False
    replays: bool = False
    of_elements: bool = False
    requested: bool = False
    keeps_request: bool = False
    met_before: bool = False
    has_deadline: bool = True
    makes_room: bool = True
    leaves_record: bool = True


TRAITS: dict[JobKind, Traits] = {
    "gathering": Traits(of_events=True, gathers=True),
    "detached": Traits(of_events=True),
    "fire": Traits(timed=True),
    "element": Traits(of_elements=True, keeps_request=True),
    "run_now": Traits(requested=True, keeps_request=True),
    "retry": Traits(retries=True, keeps_request=True, met_before=True, makes_room=False, leaves_record=False),
    "redrive": Traits(
        redelivers=True, requested=True, keeps_request=True, met_before=True, has_deadline=False, leaves_record=False
    ),
    "backfill": Traits(
        replays=True, requested=True, keeps_request=True, met_before=True, has_deadline=False, makes_room=False
    ),
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

# The program status that a run in this state announces to other schedules (T10); other states are not announced.
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
    """The modes in which a job may be claimed. A retry of a backfill's run may be in those of a backfill."""
    return CLAIMABLE["backfill" if backfill is not None else kind]


def may_start(kind: JobKind, mode: Mode, backfill: str | None = None) -> bool:
    """Whether a claimed run may still make its start call. A pause holds jobs, but no run that was claimed before."""
    return mode in claimable(kind, backfill) or mode in PAUSED_MODES


def is_terminal(state: RunState) -> bool:
    """Whether the attempt has ended and its permits were released."""
    return state not in ("STARTING", "RUNNING")


def may_move(old: RunState, new: RunState) -> bool:
    """Whether a run may move to a state. States only move forward, so not to the same or an earlier one."""
    return new in RUN_MOVES[old]
