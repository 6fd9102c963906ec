"""The decisions of the step *sweep*: which overdue rows get a hint, and for how long they are leased afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.core.instants import HOUR, MINUTE, SECOND, Instant, Millis
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import costs, follow
from chalicelib.core.targets import retries

# A hint takes a moment to arrive, so a row that is due for a shorter time is not overdue yet.
GRACE: Millis = 5 * SECOND


# The number of runs that one tick asks EMR about; the next tick asks about the others.
MAX_POLLS = 500


# Rows that are first hinted and then leased together. If a tick crashes in between, Sluice hints these rows again.
SLICE = 25


# The sweep begins no slice later than this after its tick began: the Lambda has 60 s, and prepares fires first.
MAX_TICK: Millis = 45 * SECOND


# How long one invocation sweeps a part of a shard that was handed on.
MAX_PART: Millis = 40 * SECOND


PARKED_AFTER = 12  # hints without effect


# A lease ends this long before a tick, so that the tick finds its row overdue, including the grace.
BEFORE_TICK: Millis = 10 * SECOND


# EMR allows 10 GetJobRun calls a second, with a burst of 50. So this number of polls is hinted at once, others later.
POLL_BATCH = 50


POLL_EVERY: Millis = 5 * SECOND


def is_question(row: object, now: Instant) -> bool:
    """Whether a row only needs a call to EMR: a poll of a run, or a check of an ended one."""
    return isinstance(row, Run) and (follow.is_silent(row, now) or costs.is_due(row, now))


def in_slices(refs: Sequence[Ref], now: Instant, before: int = 0) -> list[tuple[Instant, Sequence[Ref]]]:
    """The runs to poll, in slices with the instants of their hints, so that one tick keeps the call rate of EMR (W7).
    ``before``: how many runs this tick has hinted already."""
    slices: dict[int, list[Ref]] = {}
    for number, ref in enumerate(refs, start=before):
        slices.setdefault(number // POLL_BATCH, []).append(ref)
    return [(now + number * POLL_EVERY, part) for number, part in slices.items()]


class Leased(Protocol):
    """A row that wakes, and that the sweep leases."""

    @property
    def leases(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Lease:
    """Until when the sweep sends no further hint for a row, so that it does not hint a backlog every minute."""

    until: Instant
    parked: bool


def overdue(wake_at: Instant | None, now: Instant, grace: Millis = GRACE) -> bool:
    return wake_at is not None and wake_at <= now - grace


def grace_of(row: object) -> Millis:
    """The grace in ms of a row. 0 for the lease of a worker, which has no hint: the first tick after its end detects a
    lost worker (W5)."""
    return 0 if isinstance(row, Run) and row.target_id is not None and row.wake_at == row.lease_until else GRACE


def lease(row: Leased, now: Instant) -> Lease:
    """The next lease of a row. The first is half a minute. The later ones end just before the next, the second, the
    fourth tick, and so on, up to one hour. ``row.leases`` counts the hints without effect. After `PARKED_AFTER` of them
    the row is parked and logged, so that it does not delay other rows."""
    span = retries.doubled(MINUTE, row.leases) - BEFORE_TICK if row.leases > 0 else 30 * SECOND
    return Lease(now + min(span, HOUR), parked=row.leases >= PARKED_AFTER)
