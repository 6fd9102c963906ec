"""What every leaf of a trigger has in common: the questions that the rest of Sluice asks of it.

A leaf gathers events (T7, T9, T10, T11, T12), or a timer tells it that its instant has come (T1, T13, T18). Each kind
has a file of its own, and `core/triggers/registry.py` lists them. What is asked here has an answer for every kind, so
that no module outside this package tests the class of a leaf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from chalicelib.core.documents import Document
from chalicelib.core.instants import Instant, Millis, iso
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers.given import GivenTime, GivenType
from chalicelib.core.triggers.occurrences import Recurrence

MOST = 1_000_000  # events that one leaf may count


@dataclass(frozen=True, slots=True)
class LeafState:
    """How one leaf stands: ``changes_at`` is when the passing of time alone would meet it."""

    met: bool
    arrived: tuple[str, ...]
    missing: tuple[str, ...]
    changes_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class DatasetReference:
    """A dataset that a leaf waits for. ``iceberg``: it waits for snapshots, which only a table of that format has."""

    name: str
    iceberg: bool = False


@dataclass(frozen=True, slots=True)
class Upstream:
    """Runs that a leaf waits for: those of a workflow that reach one of ``statuses``, of any schedule or of one."""

    workflow: str
    schedule: str | None
    statuses: tuple[str, ...]

    def counts(self, workflow: str, starter: str) -> bool:
        """Whether the runs of this workflow that ``starter`` began are among them."""
        return self.workflow == workflow and self.schedule in (None, starter)


class Leaf(Document):
    """One thing that a trigger waits for. The answers here are those of most kinds."""

    type: str

    revocable: ClassVar[bool] = False  # an event may undo what was met
    counts_starts: ClassVar[bool] = False  # it needs the starts of the schedule's workflow to be counted
    given: ClassVar[GivenType | None] = None  # one of its events, as a dry run is given it; None: it has no own

    @property
    def needed(self) -> int:
        """How many events it wants."""
        return 1

    def event_keys(self) -> tuple[str, ...]:
        """The keys under which the reverse index finds it (T15). Timed leaves are found through their timer."""
        return ()

    def accepts(self, payload: Mapping[str, Any] | None, started_by: str | None = None) -> bool:
        """Whether an event found under one of its keys is meant: by its payload, and the schedule of its run."""
        return True

    @classmethod
    def event_fields(cls, event: Event) -> dict[str, Any]:
        """What a run is told of one of its events, besides kind, id and instant (T17)."""
        return {}

    def opposes(self, event_kind: str) -> bool:
        """Whether an event of this kind speaks against it."""
        return False

    def evaluate(self, progress: Progress | None, now: Instant) -> LeafState:
        """Is it met by what it has gathered, at ``now``?"""
        arrived = (self.arrived(progress),) if progress else ()
        met = progress is not None and self.is_enough(progress)
        return LeafState(met, arrived, () if met else (self.missing(progress),))

    def is_enough(self, progress: Progress) -> bool:
        return progress.count >= self.needed

    def describe(self) -> str:
        """It in words, as a rule: ``2 partitions of demo.flights``."""
        return self.missing(None)

    def missing(self, progress: Progress | None) -> str:
        """What it still lacks, in words."""
        raise NotImplementedError

    def arrived(self, progress: Progress) -> str:
        """What it has gathered, in words."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse what its fields allow one by one and do not together; asked when a schedule is put."""

    def resolve(self, names: Names) -> Self:
        """The same with full names, zones and instants."""
        return self

    def datasets(self) -> tuple[DatasetReference, ...]:
        """The datasets that have to be there."""
        return ()

    def upstreams(self) -> tuple[Upstream, ...]:
        """The workflows, and perhaps schedules, that have to be there."""
        return ()

    def recurrence(self) -> Recurrence | None:
        """The instants that it names, if it fires at instants that are known in advance."""
        return None

    def lacking(self, progress: Progress | None) -> int:
        """How many events it lacks, for its words: at least one."""
        return max(self.needed - (progress.count if progress else 0), 1)


class GatheringLeaf(Leaf):
    """A leaf that counts events of its own, so that a quiet or an absent leaf may be about it."""

    def noun(self) -> str:
        """One of its events: ``partition of demo.flights``."""
        raise NotImplementedError

    @property
    def wants_one(self) -> bool:
        """Whether a single event, of whatever size, meets it."""
        return self.needed == 1


class TimedLeaf(Leaf):
    """A leaf that a timer tells. ``moved_by`` is what may put it off when it is due: nothing but the clock, the last
    start of the schedule's workflow, or the last event that it speaks of."""

    type: Literal["time", "elapsed", "absent"]

    given: ClassVar[GivenType | None] = GivenTime
    moved_by: ClassVar[Literal["clock", "last_start", "last_arrival"]]

    @property
    def span(self) -> Millis | None:
        """The span that it measures; None if it goes by the clock."""
        return None

    def is_due_at(self, instant: Instant) -> bool:
        """Whether it names this very instant, so that one who enables its schedule then means now."""
        return False

    def next_due(self, anchor: Instant, after: Instant, until: Instant | None = None) -> Instant | None:
        """When it is due next, strictly after ``after``; None if never again by ``until``. Intervals count from
        ``anchor``, at which its schedule began to gather."""
        raise NotImplementedError

    def postponed_to(self, since: Instant, happened: Instant | None, due: Instant) -> Instant | None:
        """The instant to which it moved because of what ``happened`` meanwhile, as ``moved_by`` says; None if it
        holds. ``since``: when its schedule began to gather."""
        return None


def timed(leaf: Leaf) -> TimedLeaf:
    """The leaf as one that a timer tells."""
    if not isinstance(leaf, TimedLeaf):
        raise TypeError(f"expected a timed leaf, got {type(leaf).__name__}")
    return leaf


def since(progress: Progress) -> str:
    """From when on events came, in words."""
    first = iso(progress.first_at)
    return f"since {first}" if progress.count > 1 else f"at {first}"
