"""The rows of a schedule: its state, versions, subscriptions, timer, and failures in a row; the rules of time zones.

Instants are ints (ms). ``rev`` counts the writes of a row that is replaced whole. A write expects the revision that was
read, and fails if another write came first. ``wake_at`` puts a row into the sparse wake index: the row needs attention
from that instant on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.instants import DAY, Instant, Millis
from chalicelib.core.rows.authors import Authors
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.states import Mode

WAKE = "~"  # the leaf of a subscription that gathers nothing


HISTORY: Millis = 180 * DAY  # how long runs and records are kept (H1)


@dataclass(frozen=True, slots=True)
class ScheduleState(StoredRow):
    """The small row that every claim checks: whether jobs of this generation and version of a schedule may launch.

    ``rev`` counts its changes. ``since`` is when the generation began to gather, ``mode_at`` when the mode began.
    ``pauses`` are the spans in which timeouts were stopped; the last one has no end while it lasts. ``skips`` are the
    nominal instants to skip, and ``skip_offsets`` the offsets of the zone there, for those at a wall time. ``wake_at``
    makes the row an outbox: Sluice has to check the jobs of the generation.
    ``wake_cursor`` is how far it has come, `woken_to`.
    ``expires_at`` is set for a deleted message, whose state expires with its history. ``former`` are the earlier
    generations whose trigger goes on in this one; of a DAG's node, all earlier ones. ``held_from`` is when the hold or
    backlog began that lasts, or that ended with the resume at ``mode_at``; None without one. ``uncounted``: active runs
    may lack a permit of a group or pool that this version names (`core/runs/counting.py`). ``enabled_by`` has who
    enabled the generation, and who resumed it last. ``stops`` has the mark of each stop that holds the schedule
    (`core/schedules/stops.py`). ``resumed`` has the generations that a resume after a drain began again, with its
    instant (`fire.is_left`).
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
    held_from: Instant | None = None
    wake_at: Instant | None = None
    expires_at: Instant | None = None
    wake_cursor: str | None = None
    skip_offsets: Mapping[str, Millis] = field(default_factory=dict)
    enabled_by: tuple[str, ...] = ()
    stops: tuple[tuple[Any, ...], ...] = ()
    resumed: Mapping[str, Instant] = field(default_factory=dict)

    @property
    def woken_to(self) -> str | None:
        """The cursor of the first page of jobs that has not been woken; None for the first page. The cursor of an
        earlier revision does not count: since then there is another reason to wake the jobs."""
        rev, _, cursor = (self.wake_cursor or "").partition("|")
        return cursor if rev == str(self.rev) else None

    @property
    def exists(self) -> bool:
        """Whether the schedule exists. The row of a deleted schedule stays, so that its name keeps its history."""
        return self.mode != "deleted"


@dataclass(frozen=True, slots=True)
class Version(StoredRow):
    """One version of a schedule's definition. It never changes, so it may be cached without expiry.

    ``trigger_from`` and ``ttl_from`` are the instants from which the spans in the trigger and in the ``ttl`` were
    counted, if an earlier version began them; None: from ``created_at``. ``authors`` has who wrote which fields
    (`core/rows/authors.py`)."""

    schedule: str
    version: int
    definition: Mapping[str, Any]
    created_at: Instant
    by: str = ""
    expires_at: Instant | None = None
    trigger_from: Instant | None = None
    ttl_from: Instant | None = None
    authors: Authors = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subscription(StoredRow):
    """A row of the reverse index: events of this key, accepted at ``since`` or later, count for this leaf.

    The leaf `WAKE` gathers nothing: the event may meet a constraint, so Sluice checks the waiting jobs. ``detached``: a
    job is detached as soon as its trigger is met (C11: ``coalesce: false``, and the mode ``backlog``).
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
    """The next nominal instant of each timed leaf, and the anchor from which ``@every`` counts. ``next`` leaves out a
    leaf whose repeats are used up.

    ``fired`` is how often each leaf with ``repeats`` has fired. ``begun`` are the fires whose events are not all
    written yet (E2), each with the numbers of `core/fires/fire.py::Begun`.

    ``arrived`` is the last arrival for each absent leaf in former generations with the same trigger. ``rules`` is the
    version of the rules of time zones by which ``next`` was computed. ``walls`` has, for each leaf that depends on a
    zone, its next instant and the offset there, then the same for the instant before it (`core/fires/walls.py`).
    ``bundled``: the events of the fires that it prepared last may be in bundles. ``shapes`` has the former shapes of
    begun fires: the nominal instant of the last fire of each, the number of events, and their window in ms
    (`core/fires/fire.py::Shape`). Later fires have the shape of the definition.
    """

    schedule: str
    generation: int
    version: int
    anchor: Instant
    next: Mapping[str, Instant]
    fired: Mapping[str, int] = field(default_factory=dict)
    begun: tuple[tuple[int, ...], ...] = ()
    rules: str = ""
    walls: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rev: int = 1
    wake_at: Instant | None = None
    arrived: Mapping[str, Instant] = field(default_factory=dict)
    bundled: bool = False
    shapes: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Failures(StoredRow):
    """How many runs of a schedule have failed in a row (L19)."""

    schedule: str
    count: int


@dataclass(frozen=True, slots=True)
class ZoneRules(StoredRow):
    """The rules of time zones by which the stored instants of an installation were computed. The ticks bring them to
    those of ``version``, from ``since`` on. A pass over all of them began at ``began``, and has come to the shard
    number ``part`` and to ``cursor`` in it; None: the next pass has not begun. ``done``: all follow these rules."""

    version: str
    since: Instant
    began: Instant | None = None
    part: int = 0
    cursor: str | None = None
    done: bool = False
