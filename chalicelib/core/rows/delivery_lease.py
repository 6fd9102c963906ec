"""Delivery leases: which jobs an invocation delivers at present, so that no other invocation sends them too.

One row covers a batch of jobs that are due at one instant, or a single job. The invocation writes it before the first
send and renews it during the batch. If the invocation crashes, its jobs are free again when the lease expires.
`ClosingCount` counts the changes after which something that was to be sent must not be sent any more (C13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.core import ids
from chalicelib.core.instants import HOUR, SECOND, Instant, Millis
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.stored import StoredRow

# A lease outlives the longest call by this much. It is renewed when the longest call and three seconds are left of it:
# a call may begin two seconds after that look at the lease, and clocks may differ by one. So there are at least three
# seconds between two renewals. A batch to SQS takes less, and never renews it.
MARGIN: Millis = 6 * SECOND


KEPT: Millis = HOUR  # after its end, until DynamoDB deletes the row


# Sorts behind the ids of batches, which are hexadecimal.
SINGLE = "~"


# Hexadecimal digits for a job. Of 5,000 jobs two get the same mark once in 40,000 batches; then one waits for a lease.
_MARK = 10


@dataclass(frozen=True, slots=True)
class DeliveryLease(StoredRow):
    """``marks`` identify the jobs, each at its next try. ``id`` is their digest, so the same batch has the same row.
    That of a single job is `SINGLE` and its mark: the leases of single jobs need not be read to find those of batches.

    ``holder`` is random and identifies the invocation. Without it, two invocations with the same batch could write
    equal rows, and each would take the stored row for its own.
    """

    due_at: Instant
    id: str
    marks: str
    leased_until: Instant
    expires_at: Instant
    holder: str
    taken_at: Instant

    @property
    def covered(self) -> frozenset[str]:
        """The marks of the jobs that the lease covers."""
        return frozenset(self.marks[start : start + _MARK] for start in range(0, len(self.marks), _MARK))


def due_of(job: Job) -> Instant:
    """The instant that is part of the key of a job's lease. For a fire it is when the fire is due, for any other job
    the hour in which it was created. Many fires are due at one instant, but each of the others has an instant of its
    own."""
    return job.due_at if job.traits.timed and job.due_at is not None else job.created_at // HOUR * HOUR


def mark(job: Job) -> str:
    """The mark of a job at its next try: a lease of an earlier try does not cover a later one."""
    return ids.digest(job.job_id, job.attempt, job.tries, length=_MARK)


def lease_of(jobs: Sequence[Job], until: Instant, holder: str, now: Instant) -> DeliveryLease:
    """A lease from ``now`` until ``until`` for jobs that are all due at one instant."""
    marks = "".join(sorted(mark(job) for job in jobs))
    lease_id = single_id(marks) if len(jobs) == 1 else ids.digest(marks)
    return DeliveryLease(due_of(jobs[0]), lease_id, marks, until, until + KEPT, holder, now)


def single_id(mark_of_job: str) -> str:
    """The id of the lease of a single job."""
    return f"{SINGLE}{mark_of_job}"


def renewed(lease: DeliveryLease, until: Instant) -> DeliveryLease:
    return replace(lease, leased_until=until, expires_at=until + KEPT)


def without(lease: DeliveryLease, given_up: frozenset[str]) -> DeliveryLease:
    """The lease without the jobs that have these marks. It stays the same row."""
    return replace(lease, marks="".join(sorted(lease.covered - given_up)))


@dataclass(frozen=True, slots=True)
class ClosingCount(StoredRow):
    """The number of closings in a namespace so far, and the instant at which the last one was counted. Another number
    says that a schedule or a fire may have been closed since; it does not say which."""

    namespace: str
    closings: int
    at: Instant
