"""The decisions of a deadline: from when it counts, and whether a start or an end was in time (H5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import DAY, Instant, Millis, iso
from chalicelib.core.jobs.deadlines import due_by
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.notice import DeadlineWatch
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs.workers import heartbeat_of, is_pulled
from chalicelib.core.states import is_terminal

REMEMBERED: Millis = 45 * DAY  # how long after its last instant a watch says that it was judged


@dataclass(frozen=True, slots=True)
class Judged:
    """A watch after a look, and what is to be told: pairs of what was missed, and why."""

    deadline: DeadlineWatch
    missed: tuple[tuple[str, str], ...] = ()


def begun(job: Job, schedule: Schedule, workflow: Workflow | None, now: Instant) -> DeadlineWatch | None:
    """The watch over a job, None if there is none to be kept: what is tried again has been watched since it was new."""
    start_by, end_by = due_by(job, schedule, workflow)
    if (start_by is None and end_by is None) or job.kind == "retry":
        return None
    last = max(at for at in (start_by, end_by) if at is not None)
    if now > last + REMEMBERED:
        return None  # it was judged long ago, and has waited since
    made = DeadlineWatch(job.job_id, schedule.workflow, job.schedule, start_by, end_by)
    return replace(made, wake_at=_next(made))


def judge(
    deadline: DeadlineWatch, job: Job | None, attempts: Sequence[Run], record: Record | None, now: Instant
) -> Judged:
    """What has become due of a watch. Work that left without a run is told as aborted, or dropped on purpose; a run
    that failed is told as that: neither is missed besides. Its first attempt is its start, its last one its end."""
    run = attempts[-1] if attempts else None
    over = run is not None and is_terminal(run.state) and run.state not in ("SUCCEEDED", "RETRYING")
    if record is not None or (over and (run is None or run.start_requested_at is None)):
        return Judged(_closed(deadline, None, None, now))
    missed: list[tuple[str, str]] = []
    start_by, end_by = deadline.start_by, deadline.end_by
    if start_by is not None and now >= start_by:
        at = began(attempts[0]) if attempts else None
        if at is None or at > start_by:
            missed.append(("missed_start", f"not started by {iso(start_by)}{_why(job, run)}"))
        start_by = None
    if end_by is not None and now >= end_by:
        at = run.ended_at if run is not None and is_terminal(run.state) and run.state != "RETRYING" else None
        if not over and (at is None or at > end_by):
            missed.append(("missed_end", f"not ended by {iso(end_by)}{_why(job, run)}"))
        end_by = None
    return Judged(_closed(deadline, start_by, end_by, now), tuple(missed))


def began(run: Run) -> Instant | None:
    """When its target was asked to start it. Work on offer is started when a pull worker has it in hands: that took it
    one heartbeat before its lease ends, or, if it has been heard of since, when it began."""
    if not is_pulled(run):
        return run.start_requested_at
    if run.running_seen_at is not None or run.target_id is None:
        return run.running_seen_at
    return run.claimed_at if run.lease_until is None else run.lease_until - heartbeat_of(run)


def _next(deadline: DeadlineWatch) -> Instant | None:
    return min((at for at in (deadline.start_by, deadline.end_by) if at is not None), default=None)


def _closed(deadline: DeadlineWatch, start_by: Instant | None, end_by: Instant | None, now: Instant) -> DeadlineWatch:
    """The watch with what is still to be judged. Once that is nothing, it is kept for so long after its last instant
    that nothing is watched, and told, a second time."""
    last = max(now, *(at for at in (deadline.start_by, deadline.end_by) if at is not None), 0)
    after = replace(deadline, start_by=start_by, end_by=end_by, rev=deadline.rev + 1, leases=0)
    judged = start_by is None and end_by is None
    return replace(after, wake_at=_next(after), expires_at=last + REMEMBERED + DAY if judged else None)


def _why(job: Job | None, run: Run | None) -> str:
    """What it waits for, in its own words."""
    if job is not None:
        return f": {job.reason or job.state}"
    if run is None:
        return ""
    return f": its run is {run.state}{f', {run.reason}' if run.reason and not is_terminal(run.state) else ''}"
