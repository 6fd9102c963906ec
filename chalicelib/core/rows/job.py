"""What a leaf has gathered, whether that is enough, and the words that tell it.

`stand` is a pure question of a leaf, its progress and ``now``; the words that ``why`` shows are made here.

What is stored, as values. One class per kind of row; `aws/tables/keys.py` says under which key each one lives.

Instants are ints (ms). ``rev`` counts the writes of a row that is replaced whole: a write names the revision it read,
and loses if another came first. ``wake_at`` puts a row into the sparse wake index: it wants attention from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.states import JobKind, JobState


@dataclass(frozen=True, slots=True)
class Progress:
    """What one leaf has gathered: how many events, the instants of the first and last (when accepted), and bytes.

    ``unknown`` are numbers that newer code has stored behind these; they are stored again as they were (O11).
    """

    count: int
    first_at: Instant
    last_at: Instant
    amount: int = 0
    unknown: tuple[int, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Progress:
        """As it is stored: its numbers in order. Rows of the first layout may have no ``amount``."""
        count, first_at, last_at, *rest = numbers
        return cls(count, first_at, last_at, rest[0] if rest else 0, tuple(rest[1:]))

    @property
    def numbers(self) -> list[int]:
        return [self.count, self.first_at, self.last_at, self.amount, *self.unknown]

    def plus(self, more: int, at: Instant, amount: int = 0) -> Progress:
        """Progress with ``more`` events, the last of them accepted at ``at``."""
        first, last = min(self.first_at, at), max(self.last_at, at)
        return Progress(self.count + more, first, last, self.amount + amount, self.unknown)


@dataclass(frozen=True, slots=True)
class Job(StoredRow):
    """Work that wants to become a run. ``place`` is its sort key; ``held`` are permits it keeps while it queues;
    ``backfill`` is the one that it is a part of, ``rerun_of`` the run whose arguments it carries, ``number`` that of
    the run which a retry goes on with (H1).
    ``tries`` counts the deliveries that were tried, from ``first_try_at`` on; the next is not made before ``retry_at``.
    ``units`` is what it holds of its pool. ``priority`` is what it has beyond its own, and ``lent`` says from whom.
    ``measured`` are the loads as they were seen last, ``approvals`` who approved of it, and when; ``probed`` is what
    its probe said last. A fire is called by ``nominal_at`` (None: ``due_at``) and, of several events, by its ``index``;
    ``window_end`` is when the window ends of its events, ``prepared_at`` when it was written, if that was too late.
    """

    schedule: str
    generation: int
    sort_key: str
    job_id: str
    kind: JobKind
    state: JobState
    created_at: Instant
    rev: int = 1
    due_at: Instant | None = None
    nominal_at: Instant | None = None
    index: int = 0
    window_end: Instant | None = None
    prepared_at: Instant | None = None
    leaves: Mapping[str, Progress] = field(default_factory=dict)
    met_at: Instant | None = None
    accepted_at: Instant | None = None
    correlation: Mapping[str, str] | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 1
    leaf: str | None = None
    event: Event | None = None
    held: tuple[str, ...] = ()
    units: int = 0
    queued_in: str | None = None
    rank: str | None = None
    reason: str = ""
    closed: bool = False
    backfill: str | None = None
    rerun_of: str | None = None
    number: int = 0
    leases: int = 0
    tries: int = 0
    first_try_at: Instant | None = None
    retry_at: Instant | None = None
    probed: Mapping[str, Any] = field(default_factory=dict)
    priority: int | None = None
    inherited: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)
    approvals: Mapping[str, Any] = field(default_factory=dict)
    wake_at: Instant | None = None
    expires_at: Instant | None = None
