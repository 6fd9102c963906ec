"""What is stored, as values. One class per kind of row; `aws/tables/keys.py` says under which key each one lives.

Instants are ints (ms). ``rev`` counts the writes of a row that is replaced whole: a write names the revision it read,
and loses if another came first. ``wake_at`` puts a row into the sparse wake index: it wants attention from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.instants import DAY, Instant, Millis
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.states import Mode

WAKE = "~"  # the leaf of an index row that gathers nothing


HISTORY: Millis = 180 * DAY  # how long runs and records are kept (H1)


@dataclass(frozen=True, slots=True)
class ScheduleState(StoredRow):
    """The small row that every claim checks: may this generation and version of a schedule be launched from?

    ``rev`` counts its changes. ``since`` is when the generation began to gather, ``mode_at`` when the mode began.
    ``pauses`` are the spans in which timeouts stood still, the last one open-ended while it lasts; ``skips`` the
    nominal instants that are left out. ``wake_at`` makes it an outbox: the jobs of the generation are to be looked at.
    ``expires_at``: a message's that is gone passes with its history. ``former``: earlier generations of a DAG's node.
    ``uncounted``: living runs may lack a permit of a group or pool that this version names (`core/runs/counting.py`).
    """

    schedule: str
    generation: int
    version: int
    mode: Mode
    updated_at: Instant
    by: str = ""
    rev: int = 1
    since: Instant = 0
    pauses: tuple[tuple[Instant, Instant | None], ...] = ()
    skips: tuple[Instant, ...] = ()
    reason: str = ""
    mode_at: Instant = 0
    former: tuple[int, ...] = ()
    uncounted: bool = False
    wake_at: Instant | None = None
    expires_at: Instant | None = None

    @property
    def exists(self) -> bool:
        """Whether the schedule is there. The row of a deleted schedule stays, so that its name keeps its history."""
        return self.mode != "deleted"


@dataclass(frozen=True, slots=True)
class Version(StoredRow):
    """One version of a schedule's definition. Never changed once written, so it may be cached for ever."""

    schedule: str
    version: int
    definition: Mapping[str, Any]
    created_at: Instant
    by: str = ""
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Subscription(StoredRow):
    """A row of the reverse index: events of this key, accepted at ``since`` or later, touch this leaf.

    The leaf `WAKE` gathers nothing: the event may meet a constraint, so the waiting jobs are looked at. ``apart``:
    a job whose trigger is met makes room for the next at once (C11: ``coalesce: false``, and the mode ``backlog``).
    """

    event_key: str
    schedule: str
    generation: int
    version: int
    leaf: str
    since: Instant
    detached: bool = False


@dataclass(frozen=True, slots=True)
class Timer(StoredRow):
    """The next nominal instant of each timed leaf, and the anchor that ``@every`` counts from. A leaf that has none
    any more (its repeats are used up) is left out.
    ``fired`` is how often each leaf with ``repeats`` has fired. ``begun`` are the fires of which not every event is
    written yet (E2): nominal instant, the instant at which the first is due, and how many are written.
    """

    schedule: str
    generation: int
    version: int
    anchor: Instant
    next: Mapping[str, Instant]
    fired: Mapping[str, int] = field(default_factory=dict)
    begun: tuple[tuple[Instant, Instant, int], ...] = ()
    rev: int = 1
    wake_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Failures(StoredRow):
    """How many runs of a schedule have failed in a row (L19)."""

    schedule: str
    count: int
