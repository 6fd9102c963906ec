"""The rows of a limit: its state, and the waiters of its queue. `core/limits/permits.py` has the rules for permits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class LimitState:
    """The state of a limit. ``wake_at`` is set while jobs wait: at that instant Sluice serves the queue.

    ``starts`` maps a holder (run and attempt) to its start: of slots those of active runs, of a rate window the last
    ones. ``untracked_start`` is the latest start of active runs beyond `MAX_STARTS`. ``rev`` counts the changes of
    these fields. ``rates`` are the rate windows that count every start of this workflow. ``numbered`` is the number of
    the workflow's last start (H1). ``asked_at`` is when Sluice last polled the runs that hold slots, as jobs wait.
    ``edition`` is that of the workflow's definition: each start expects it as it was read. ``admits`` of a policy are
    the limits with whose permits jobs have queued for admission. ``block_at`` is the ``wake_at`` that the invocation of
    the last block has set. While both are equal, its hint serves the queue, and knows which jobs are on their way.
    ``parts`` is the number of parts into which the queue of a policy is divided, 0 if it never was.
    """

    limit_name: str
    active: int = 0
    waiters: int = 0
    head: Instant = 0
    wake_at: Instant | None = None
    rev: int = 0
    starts: Mapping[str, Instant] = field(default_factory=dict)
    untracked_start: Instant = 0
    last_start: Instant | None = None
    last_success_start: Instant | None = None
    last_success_at: Instant | None = None
    rates: tuple[str, ...] = ()
    numbered: int = 0
    asked_at: Instant = 0
    edition: int = 0
    admits: tuple[str, ...] = ()
    block_at: Instant | None = None
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Waiter(StoredRow):
    """A job or run in the queue of a limit. ``rank`` sorts by falling priority, latest start and age. ``job_sort_key``
    is that of the job's row; a claimed run that needs another permit has ``A#<attempt>`` there."""

    limit_name: str
    rank: str
    job_schedule: str
    job_generation: int
    job_sort_key: str
    job_id: str

    @property
    def run(self) -> tuple[str, int] | None:
        """The run and attempt that wait here; None if a job does."""
        return (self.job_id, int(self.job_sort_key[2:])) if self.job_sort_key.startswith("A#") else None
