"""Deadline watches: which job has one, and whether a start or an end missed its deadline (H5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import DAY, Instant, Millis, iso
from chalicelib.core.jobs.timeout import due_by
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.notice import DeadlineWatch
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs.workers import heartbeat_of, is_pulled
from chalicelib.core.states import is_terminal
from chalicelib.core.why import readers_of

REMEMBERED: Millis = 45 * DAY  # how long a watch stays after its last instant, to show that it was judged


@dataclass(frozen=True, slots=True)
class Judged:
    """A watch after a check, and the missed deadlines: pairs of ``missed_start`` or ``missed_end``, and why."""

    deadline: DeadlineWatch
    missed: tuple[tuple[str, str], ...] = ()


def begun(job: Job, schedule: Schedule, workflow: Workflow | None, now: Instant) -> DeadlineWatch | None:
    """The watch of a job; None if the job has no deadline, is a retry (which the watch of its first attempt covers), or
    was judged long ago."""
    start_by, end_by = due_by(job, schedule, workflow)
    if (start_by is None and end_by is None) or job.traits.retries:
        return None
    last = max(at for at in (start_by, end_by) if at is not None)
    if now > last + REMEMBERED:
        return None  # the deadline was judged long ago, and the job still waits
    watch = DeadlineWatch(job.job_id, schedule.workflow, job.schedule, start_by, end_by)
    return replace(watch, wake_at=_next(watch))


def judge(
    deadline: DeadlineWatch, job: Job | None, attempts: Sequence[Run], record: Record | None, now: Instant
) -> Judged:
    """The watch after ``now``, and the deadlines that were missed. The first attempt counts as the start of the work,
    the last one as its end.

    A job that left with a record, or a run that failed, misses no deadline as well: other notices report it."""
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
    """When a run counts as started; None if it has not. The start of a run is its first start call. The start of a
    worker's run is its first heartbeat, or, before that, its claim: one heartbeat interval before its lease ends."""
    if not is_pulled(run):
        return run.start_requested_at
    if run.running_seen_at is not None or run.target_id is None:
        return run.running_seen_at
    return run.claimed_at if run.lease_until is None else run.lease_until - heartbeat_of(run)


def _next(deadline: DeadlineWatch) -> Instant | None:
    return min((at for at in (deadline.start_by, deadline.end_by) if at is not None), default=None)


def _closed(deadline: DeadlineWatch, start_by: Instant | None, end_by: Instant | None, now: Instant) -> DeadlineWatch:
    """The watch with the deadlines that are still to be judged. After the last one, the row stays until no second watch
    of the same job, and so no second notice, is possible."""
    last = max(now, *(at for at in (deadline.start_by, deadline.end_by) if at is not None), 0)
    after = replace(deadline, start_by=start_by, end_by=end_by, rev=deadline.rev + 1, leases=0)
    judged = start_by is None and end_by is None
    return replace(after, wake_at=_next(after), expires_at=last + REMEMBERED + DAY if judged else None)


def _why(job: Job | None, run: Run | None) -> str:
    """The reason of the job or run, appended to the text about a missed deadline. It names no other namespace."""
    if job is not None:
        return f": {job.reason.seen(readers_of(job.schedule)) or job.state}"
    if run is None:
        return ""
    shown = "" if is_terminal(run.state) else run.reason.seen(readers_of(run.schedule))
    reason = f", {shown}" if shown else ""
    return f": the run is {run.state}{reason}"
