"""The decision of the step *sweep*: which overdue rows are looked at, and for how long one is left alone afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.core.instants import HOUR, MINUTE, SECOND, Instant, Millis
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.event import Outbox
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.notice import DeadlineWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import costs, follow
from chalicelib.core.targets import backoff

# A hint needs a moment to arrive: what became due within it is not lost yet.
GRACE: Millis = 5 * SECOND


# How many overdue rows of a table one tick looks at; the rest is older work for the next tick.
MAX_ROWS = 500


# Rows that are hinted and then leased in one go. A tick that dies in between leaves so many to be hinted once more.
SLICE = 25


# The sweep begins no further slice so long after its tick began: the Lambda has 60 s, and prepares fires first.
MAX_TICK: Millis = 45 * SECOND


PARKED_AFTER = 12


# A lease ends so long before a tick that the tick finds its row overdue, grace included.
BEFORE_TICK: Millis = 10 * SECOND


# EMR answers 10 GetJobRun a second, and 50 in a burst: so many questions are hinted at once, the next ones later.
POLL_BATCH = 50


ASK_EVERY: Millis = 5 * SECOND


def is_question(row: object, now: Instant) -> bool:
    """Whether a look at a row is a question to EMR and nothing else: what became of a run, or what it was billed."""
    return isinstance(row, Run) and (follow.is_silent(row, now) or costs.is_due(row, now))


def in_slices(refs: Sequence[Ref], now: Instant, before: int = 0) -> list[tuple[Instant, Sequence[Ref]]]:
    """When which of those runs are asked about, so that all of a tick together keep EMR's rate (W7). ``before``: how
    many this tick has asked about already."""
    slices: dict[int, list[Ref]] = {}
    for number, ref in enumerate(refs, start=before):
        slices.setdefault(number // POLL_BATCH, []).append(ref)
    return [(now + slice_number * ASK_EVERY, together) for slice_number, together in slices.items()]


@dataclass(frozen=True, slots=True)
class Lease:
    """Leave the row alone until then: it has been hinted, and a backlog is hinted once, not every minute."""

    until: Instant
    parked: bool


def overdue(wake_at: Instant | None, now: Instant, grace: Millis = GRACE) -> bool:
    return wake_at is not None and wake_at <= now - grace


def grace_of(row: object) -> Millis:
    """The lease of a worker is followed by no hint: the first tick after its end notices who died (W5)."""
    return 0 if isinstance(row, Run) and row.target_id is not None and row.wake_at == row.lease_until else GRACE


def lease(
    row: NoticeWindow | Backfill | DagRun | Job | PendingNotice | Run | DeadlineWatch | Outbox, now: Instant
) -> Lease:
    """Half a minute, then up to just before the next tick, the second, the fourth, and so on up to an hour. ``leases``
    counts the hints that led to nothing. A row that keeps failing is parked, and told, and blocks nobody."""
    span = backoff.doubled(MINUTE, row.leases) - BEFORE_TICK if row.leases > 0 else 30 * SECOND
    return Lease(now + min(span, HOUR), parked=row.leases >= PARKED_AFTER)
