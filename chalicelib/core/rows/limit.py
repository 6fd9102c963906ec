"""Lines: one mechanism for everything scarce. A line is a permit rule and a queue by priority (docs/design.md, Lines).

*Slots* hand out a permit while ``active < limit`` and get it back when the run ends. *Pace* hands out permits in time:
a leaky bucket in its virtual-scheduling form (ITU-T I.371), ``head`` being the instant at which the bucket is empty.

A *log* remembers the last starts, and has a permit when the n-th last is old enough.

A newcomer takes a permit when there is one **and** nobody waits; it joins the queue under the exact negation of that,
so no wake-up can fall between look and wait, and nobody overtakes. Lines have one order (logs, slots of the workflow,
of the next at a policy, of groups, of the pool, of the EMR application, then pace), and a job takes them in that order,
holding what it has while it queues for the next: so no two jobs can wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class LimitState:
    """A line as stored. ``wake_at`` is set whenever somebody waits: it is when the queue wants serving.

    ``starts`` holds, per run and attempt, when it started: on a slots line the living runs, on a log line the last
    ones. ``crowd`` is the latest start of living runs beyond `MOST_STARTS`. ``rev`` counts the changes of all these.
    ``rates`` are the log lines that every start of this workflow is to be counted in. ``numbered`` is the number of the
    workflow's last start (H1). ``asked_at`` is when the runs that hold its slots were last asked about, because jobs
    wait. ``edition`` is that of the workflow's definition: each start expects it as it was read.
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


@dataclass(frozen=True, slots=True)
class Waiter(StoredRow):
    """A place in a queue. ``rank`` sorts by inverse priority, latest start, age; ``job`` is where its job lives: for a
    run that has been claimed, and must take a permit anew, that is ``A#<attempt>``."""

    limit_name: str
    rank: str
    job_schedule: str
    job_generation: int
    job_sort_key: str
    job_id: str

    @property
    def run(self) -> tuple[str, int] | None:
        """The run and attempt that wait here, if it is no job."""
        return (self.job_id, int(self.job_sort_key[2:])) if self.job_sort_key.startswith("A#") else None
