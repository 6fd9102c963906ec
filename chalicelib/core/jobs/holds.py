"""What holds a waiting job, in few kinds, by its row and its schedule: the stored reason names the constraints.

The decision itself needs many reads for each job. A view of thousands of jobs groups them by this instead, and shows
the reasons as they are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.core.access import grants
from chalicelib.core.constraints.constraint import keyed
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import Instant, iso
from chalicelib.core.limits import names
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stops import marks_of
from chalicelib.core.states import PAUSED_MODES, WaitReason, claimable
from chalicelib.core.why import Why

HoldKind = Literal["limit", "window", "approval", "data", "clock", "pause", "upstream", "probe", "grant", "condition"]
_KINDS: dict[WaitReason, HoldKind] = {
    "approval": "approval",
    "time": "window",
    "upstream": "upstream",
    "probe": "probe",
}


@dataclass(frozen=True, slots=True)
class Hold:
    """What holds a job: its kind, a name to group by, the same in words, and when time alone may end it."""

    kind: HoldKind
    name: str
    of: str
    changes_at: Instant | None = None


def by_row(job: Job, now: Instant) -> Hold | None:
    """What holds a waiting job, if its row alone says it; None if the answer also takes its schedule."""
    if job.queued_in is not None:
        return Hold("limit", names.whole(job.queued_in), names.describe(job.queued_in))
    if job.due_at is not None and job.due_at > now:
        return Hold("clock", "due", "its instant", job.due_at)
    if job.retry_at is not None and job.retry_at > now:
        return Hold("clock", "retry", "its next try", job.retry_at)
    if job.state == "PENDING_TRIGGER":
        return Hold("data", job.schedule, f"schedule {job.schedule}", job.wake_at)
    return None


def holds_of(job: Job, state: ScheduleState | None, schedule: Schedule | None, now: Instant) -> tuple[Hold, ...]:
    """What holds a waiting job, at least one: of several unmet constraints, or missing grants, each in its order."""
    alone = by_row(job, now)
    if alone is not None:
        return (alone,)
    own = f"schedule {job.schedule}"
    if state is not None and state.stops:
        of = marks_of(state)[0].of
        return (Hold("pause", str(of), of.said),)
    if state is not None and state.mode in PAUSED_MODES and state.mode not in claimable(job.kind, job.backfill):
        return (Hold("pause", job.schedule, own),)
    if job.reason.code == grants.MISSING:
        return tuple(Hold("grant", owner, f"a grant of {owner}") for owner in job.reason.named("namespace"))
    unmet = job.reason.named("constraint")
    found = [
        Hold(_KINDS.get(constraint.wait_reason, "condition"), constraint.type, constraint.describe(), job.wake_at)
        for key, constraint in keyed(schedule.constraints if schedule is not None else ()).items()
        if key in unmet
    ]
    if schedule is not None and schedule.workflow in job.reason.named("approval"):
        found.append(Hold("approval", "approval", f"approved for workflow {schedule.workflow}", job.wake_at))
    return tuple(found) or (Hold("condition", job.schedule, own, job.wake_at),)


def why(job: Job, now: Instant) -> Why:
    """The reason why a job waits, as its row has it. A fire that was prepared and not checked yet waits for its
    instant."""
    if job.due_at is not None and job.due_at > now:
        return Why.of("due_later", f"due at {iso(job.due_at)}")
    return job.reason
