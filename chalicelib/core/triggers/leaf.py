"""The base classes of the leaves of a trigger: the interface that the rest of Sluice uses.

A leaf gathers events (T7, T9, T10, T11, T12), or a timer fires it (T1, T13, T18). Each kind has its own module, and
`core/triggers/registry.py` lists the kinds. Every kind implements the whole interface, so that no module outside this
package tests the class of a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from chalicelib.core import instants
from chalicelib.core.access.allowed import Named
from chalicelib.core.documents import Document
from chalicelib.core.instants import Instant, Millis, iso
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.rows.parts import Parts
from chalicelib.core.time.days import Days
from chalicelib.core.time.period_names import Names as PeriodNames
from chalicelib.core.time.periods import Calendar, Period, span_within
from chalicelib.core.triggers.patterns import Flattened

MAX_COUNT = 1_000_000  # the largest number of events that a leaf may require
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Moved = Literal["clock", "last_start", "last_arrival"]


@dataclass(frozen=True, slots=True)
class LeafState:
    """The state of one leaf: whether it is met, and sentences about the events that arrived and those that are missing.

    ``changes_at`` is the instant at which the leaf is met if no event arrives until then; None if time does not meet
    it. ``parts`` are the partitions that the leaf waits for, if these are certain ones."""

    met: bool
    arrived: tuple[str, ...]
    missing: tuple[str, ...]
    changes_at: Instant | None = None
    parts: Parts | None = None


@dataclass(frozen=True, slots=True)
class DatasetReference:
    """A dataset for which a leaf waits. ``iceberg``: it waits for snapshots, which only Iceberg tables have.
    ``by_period``: it waits for the partitions of a period, which only datasets with periods have."""

    name: str
    iceberg: bool = False
    by_period: bool = False


@dataclass(frozen=True, slots=True)
class Upstream:
    """The runs for which a leaf waits: those of a workflow that reach one of ``statuses``. With a ``schedule``, only
    the runs that it started count."""

    workflow: str
    schedule: str | None
    statuses: tuple[str, ...]

    def counts(self, workflow: str, starter: str) -> bool:
        """Whether runs of ``workflow`` that the schedule ``starter`` started are among them."""
        return self.workflow == workflow and self.schedule in (None, starter)


class Given(Document):
    """An event that a user gives to a dry run, which `core/jobs/dry_run.py` replays. The document of each kind is in
    the module of the leaf that counts its events. ``at`` is the instant at which the event is accepted, RFC 3339; by
    default that of the request."""

    at: str | None = None
    type: str

    timed: ClassVar[bool] = False  # as from a timer: the dry run finds its leaf by the type, not by an event key

    @field_validator("at")
    @classmethod
    def _is_an_instant(cls, at: str | None) -> str | None:
        if at is not None:
            instants.parse_instant(at, "")
        return at

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        """The event that Sluice would build from this document, accepted at ``at``."""
        raise NotImplementedError

    def describe(self) -> str:
        raise NotImplementedError


GivenType = type[Given]  # an alias, because the field `type` of a leaf hides the built-in in its class body


class GivenTime(Given):
    """A fire of a timed leaf: an instant of a time leaf, the end of an elapsed span, or the absence of events."""

    type: Literal["time", "elapsed", "absent"]

    timed: ClassVar[bool] = True

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        return Event(event_id, self.type, f"{self.type}:{names.namespace}", at, at)

    def describe(self) -> str:
        return self.type


class Leaf(Document):
    """A condition of a trigger that is no combination of others. The defaults here hold for most kinds."""

    type: str

    revocable: ClassVar[bool] = False  # a later event may undo its match
    spreads: ClassVar[bool] = False  # one event may begin a job for each listed value (T27)
    counts_starts: ClassVar[bool] = False  # it needs the count of the starts of the schedule's workflow
    internal: ClassVar[bool] = False  # Sluice alone makes it, for the nodes of DAGs
    given: ClassVar[GivenType | None] = None  # one of its events in a dry run; None: the leaf has none

    @property
    def needed(self) -> int:
        """How many events meet the leaf."""
        return 1

    @property
    def by_period(self) -> bool:
        """Whether it waits for the partitions of the period of a job (T25)."""
        return False

    @property
    def is_whole_period(self) -> bool:
        """Whether it waits for what the period itself has, and not for a window around it."""
        return False

    @property
    def needs_shorter(self) -> bool:
        """Whether the periods of its dataset may not be longer than those of the jobs (T27)."""
        return False

    def span_of(self, period: Period, calendar: Calendar) -> tuple[Instant, Instant]:
        """In which span the periods of a dataset begin that the leaf waits for, for the job of ``period``: from the
        first instant to before the second one. ``calendar`` is that of the dataset."""
        return span_within(period, calendar)

    def longest_span(self, per: Millis, each: Millis) -> Millis:
        """The length of this span at most, if jobs have periods of the length ``per``, and the dataset of ``each``."""
        return max(per, each)

    def event_keys(self) -> tuple[str, ...]:
        """The event keys under which the reverse index lists the leaf (T15); none if a timer alone meets it."""
        return ()

    def accepts(self, payload: Flattened, started_by: str | None = None) -> bool:
        """Whether an event with one of its keys counts, by its ``payload`` and the schedule that started its run."""
        return True

    @classmethod
    def event_fields(cls, event: Event) -> dict[str, Any]:
        """The fields of one event in the context of a run, besides its kind, id and instant (T17)."""
        return {}

    @classmethod
    def lacks(cls, event: Event) -> str:
        """Which of several partitions an event says are missing, in words: ``eu, us and 3 more``. Empty for others."""
        return ""

    def opposes(self, event_kind: str) -> bool:
        """Whether an event of this kind keeps the leaf from being met, or undoes its match."""
        return False

    def evaluate(self, progress: Progress | None, now: Instant) -> LeafState:
        """The state of the leaf at ``now``, with the events that it has gathered (``progress``; None: none yet)."""
        arrived = (self.arrived(progress),) if progress else ()
        met = progress is not None and self.is_enough(progress)
        return LeafState(met, arrived, () if met else (self.missing(progress),))

    def is_enough(self, progress: Progress) -> bool:
        return progress.count >= self.needed

    def amounts(self, progress: Progress | None) -> tuple[int, int]:
        """How much the leaf has gathered, and how much it needs: events, or bytes of a leaf that counts bytes."""
        return (progress.count if progress else 0, self.needed)

    @property
    def nothing(self) -> str:
        """What has not happened while nothing has met the leaf; empty if its next instant says that."""
        return "no event has arrived"

    def describe(self) -> str:
        """The leaf as a rule in plain words: ``2 partitions of demo.flights``."""
        return self.missing(None)

    def missing(self, progress: Progress | None) -> str:
        """The events or the time that the leaf still needs, in plain words."""
        raise NotImplementedError

    def arrived(self, progress: Progress) -> str:
        """The events that the leaf has gathered, in plain words."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises ``invalid`` for fields that are valid alone but not together. The put of a schedule calls this."""

    def resolve(self, names: Names) -> Self:
        """The same leaf with full names, zones and instants."""
        return self

    def datasets(self) -> tuple[DatasetReference, ...]:
        """The datasets that have to exist."""
        return ()

    def calendars(self) -> tuple[str, ...]:
        """The holiday calendars that have to exist."""
        return ()

    def learn(self, calendar: str, holidays: Days | None) -> None:
        """Take over the holidays of a calendar that the leaf names; None if there is no such calendar. They are no part
        of the document: code that computes instants reads them first."""

    def periodic(self) -> tuple[str, ...]:
        """The datasets whose periods it has to know."""
        return ()

    def learn_periods(self, dataset: str, names: PeriodNames | None) -> None:
        """Take over how a dataset names its periods; None if it has none. As for `learn`, that is no part of the
        document."""

    def ends_by(self, event: Event, progress: Progress | None) -> bool:
        """Whether an event that `opposes` the leaf ends what the leaf has gathered."""
        return True

    def named(self) -> tuple[Named, ...]:
        """What it names that an allow-list may limit."""
        return ()

    def upstreams(self) -> tuple[Upstream, ...]:
        """The workflows, and the schedules if it names any, that have to exist."""
        return ()

    def lacking(self, progress: Progress | None) -> int:
        """How many events are missing, for the texts; at least 1."""
        return max(self.needed - (progress.count if progress else 0), 1)


class GatheringLeaf(Leaf):
    """A leaf that counts events, of which it may need a ``count``. A quiet or an absent leaf may contain it."""

    @property
    def needed(self) -> int:
        count: int = getattr(self, "count", 1)
        return count

    def noun(self) -> str:
        """The name of one of its events: ``partition of demo.flights``."""
        raise NotImplementedError

    @property
    def wants_one(self) -> bool:
        """Whether a single event of any size meets the leaf."""
        return self.needed == 1


class TimedLeaf(Leaf):
    """A leaf that a timer fires. ``moved_by`` is what may postpone it when due. That is nothing (``clock``), the last
    start of the schedule's workflow, or the last arrival of an event of its inner leaf."""

    type: Literal["time", "elapsed", "absent"]

    given: ClassVar[GivenType | None] = GivenTime
    moved_by: ClassVar[Moved]

    @property
    def span(self) -> Millis | None:
        """The span in ms that the leaf measures; None if it fires at instants of the clock."""
        return None

    @property
    def counts_from_put(self) -> bool:
        """Whether the leaf measures a span that begins with the put that begins the trigger."""
        return self.span is not None

    @property
    def wall_zone(self) -> str | None:
        """The zone whose rules decide when the leaf is due; None if no rules do."""
        return None

    @property
    def has_walls(self) -> bool:
        """Whether the leaf names wall times of that zone, and not instants of which the zone leaves some out."""
        return True

    @property
    def correlates(self) -> bool:
        """Whether its fires have the values of a partition, so that ``by`` may group them."""
        return False

    def period_due_at(self, due: Instant) -> Period | None:
        """The period about whose partition the leaf is, when it is due at this instant; None if it is about none, or
        the dataset has no periods."""
        return None

    def told(self, due: Instant) -> dict[str, Any] | None:
        """What an event of the leaf that is due at this instant tells a run, besides its partition."""
        return None

    def is_due_at(self, instant: Instant) -> bool:
        """Whether the leaf names exactly this instant, so that a schedule that is enabled then fires at once."""
        return False

    def next_due(self, anchor: Instant, after: Instant, until: Instant | None = None) -> Instant | None:
        """The next due instant strictly after ``after``; None if there is none by ``until``. Intervals count from
        ``anchor``, the instant at which the schedule began to gather. By default it is the end of the span."""
        due = self.due_after(after)
        return due if until is None or due <= until else None

    def due_after(self, instant: Instant) -> Instant:
        """When a leaf that always comes again is due after an instant."""
        return instant + (self.span or 0)

    def past_field(self, now: Instant) -> str | None:
        """The field because of which no fire is left from ``now`` on; None if one is."""
        return None

    def postponed_to(self, since: Instant, happened: Instant | None, due: Instant) -> Instant | None:
        """The instant to which the leaf moves from ``due``; None if it stays due. ``happened`` is the last start or
        arrival, as ``moved_by`` says; ``since`` is the instant at which the schedule began to gather."""
        if self.span is None:
            return None
        later = max(since, happened or since) + self.span
        return later if later > due else None


def timed(leaf: Leaf) -> TimedLeaf:
    """The leaf, typed as a timed leaf. Raises TypeError for any other."""
    if not isinstance(leaf, TimedLeaf):
        raise TypeError(f"expected a timed leaf, got {type(leaf).__name__}")
    return leaf


def since(progress: Progress) -> str:
    """When the events of a leaf arrived: ``at <instant>`` for one event, ``since <instant>`` for several."""
    first = iso(progress.first_at)
    return f"since {first}" if progress.count > 1 else f"at {first}"
