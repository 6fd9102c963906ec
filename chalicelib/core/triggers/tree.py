"""Triggers: the rule that starts a job, as a tree of leaves under ``all``, ``any`` and ``at_least`` (T14, T19).

`evaluate` alone decides whether a tree is met. The decision carries its own explanation, which ``why`` shows. Leaves
are numbered in reading order; the number of a leaf is its id in every stored row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import Field, model_validator

from chalicelib.core.documents import Document, Duration, tagged
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant, Millis, duration, format_duration
from chalicelib.core.names import Names
from chalicelib.core.rows.job import Progress
from chalicelib.core.rows.parts import Parts
from chalicelib.core.time.days import Days
from chalicelib.core.time.period_names import Names as PeriodNames
from chalicelib.core.triggers import patterns
from chalicelib.core.triggers.event import EventTrigger
from chalicelib.core.triggers.gathering import NestedLeaf
from chalicelib.core.triggers.leaf import Leaf, TimedLeaf, Upstream
from chalicelib.core.triggers.nodes import NodesTrigger
from chalicelib.core.triggers.registry import LEAVES
from chalicelib.core.triggers.time import TimeTrigger
from chalicelib.core.why import Why

L = TypeVar("L", bound=Leaf, covariant=True)

# One transaction of at most 100 items writes a schedule, its schedule state and its index rows.
MAX_LEAVES = 45


class AllTrigger(Document):
    """Met when each of its triggers is met. A partial match older than ``within`` is dropped, with a record."""

    type: Literal["all"]
    triggers: tuple[AnyTrigger, ...] = Field(min_length=1)
    within: Duration | None = None


class AnyOfTrigger(Document):
    """Met when one of its triggers is met."""

    type: Literal["any"]
    triggers: tuple[AnyTrigger, ...] = Field(min_length=1)


class AtLeastTrigger(Document):
    """Met when ``count`` of its triggers are met. ``within`` is as for ``all``."""

    type: Literal["at_least"]
    count: int = Field(ge=1)
    triggers: tuple[AnyTrigger, ...] = Field(min_length=1)
    within: Duration | None = None

    @model_validator(mode="after")
    def _can_be_met(self) -> AtLeastTrigger:
        if self.count > len(self.triggers):
            hint = "lower the count, or add triggers"
            raise invalid("count", f"at most {len(self.triggers)}, the number of its triggers", self.count, hint)
        return self


Composite = AllTrigger | AnyOfTrigger | AtLeastTrigger

if TYPE_CHECKING:
    AnyTrigger = Leaf | Composite
else:
    AnyTrigger = tagged((*LEAVES, AllTrigger, AnyOfTrigger, AtLeastTrigger), hidden=(NodesTrigger,))


@dataclass(frozen=True, slots=True)
class NumberedLeaf(Generic[L]):
    """A leaf and its ``id``, the number of the leaf in reading order."""

    id: str
    trigger: L


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a trigger, or a ``part`` of one, is met, and why: ``arrived`` and ``missing`` are phrases about its
    leaves. A leaf needs events, of a ``size`` leaf bytes; a combination needs ``need`` of its ``children``.

    ``changes_at`` is the first instant at which the part may be met without a further event (by a quiet leaf). ``have``
    may exceed ``need``. ``leaf`` is the number of a leaf; None for a combination. ``parts`` are the partitions
    that a leaf waits for, if these are certain ones.
    """

    part: AnyTrigger
    met: bool
    arrived: tuple[str, ...]
    missing: tuple[str, ...]
    changes_at: Instant | None
    have: int
    need: int
    leaf: str | None = None
    children: tuple[Verdict, ...] = ()
    parts: Parts | None = None

    @property
    def type(self) -> str:
        return self.part.type

    @property
    def text(self) -> str:
        return describe(self.part)

    @property
    def why(self) -> Why:
        arrived = "; ".join(self.arrived) or "no event has arrived"
        if self.met:
            return Why.of("trigger_met", f"trigger met: {arrived}")
        return Why.of("trigger_unmet", f"waits for {'; '.join(self.missing)} ({arrived})")


def leaves(trigger: AnyTrigger) -> tuple[NumberedLeaf[Leaf], ...]:
    """The leaves of a tree in reading order, numbered."""
    return tuple(NumberedLeaf(str(number), leaf) for number, leaf in enumerate(_walk(trigger)))


def nothing_came(trigger: AnyTrigger, ran: bool, next_fire: str | None) -> str:
    """What has not happened while nothing has met any leaf, since the last run if it ``ran``; then the next fire, if
    a clock may start it."""
    phrases = dict.fromkeys(leaf.trigger.nothing for leaf in leaves(trigger))
    lacks = " and ".join(filter(None, phrases))
    since = f"{lacks} {'since the last run' if ran else 'yet'}" if lacks else ""
    fires = f"the next fire is at {next_fire}" if next_fire is not None else "no fire is left"
    return "; ".join(filter(None, (since, fires if "" in phrases else "")))


def timed_leaves(trigger: AnyTrigger) -> tuple[NumberedLeaf[TimedLeaf], ...]:
    """The leaves that a timer fires: time, elapsed and absent leaves."""
    return tuple(NumberedLeaf(leaf.id, leaf.trigger) for leaf in leaves(trigger) if isinstance(leaf.trigger, TimedLeaf))


def recurrences(trigger: AnyTrigger) -> tuple[TimeTrigger, ...]:
    """Its time leaves, which are rules of instants."""
    return tuple(leaf for leaf in _walk(trigger) if isinstance(leaf, TimeTrigger))


def calendars(trigger: AnyTrigger) -> tuple[str, ...]:
    """The holiday calendars that its leaves name, each once."""
    return tuple(dict.fromkeys(name for leaf in _walk(trigger) for name in leaf.calendars()))


def periodic(trigger: AnyTrigger) -> tuple[str, ...]:
    """The datasets whose periods its leaves have to know, each once."""
    return tuple(dict.fromkeys(name for leaf in _walk(trigger) for name in leaf.periodic()))


def learn_periods(trigger: AnyTrigger, dataset: str, names: PeriodNames | None) -> None:
    """Tell each leaf how a dataset names its periods."""
    for leaf in _walk(trigger):
        leaf.learn_periods(dataset, names)


def learn(trigger: AnyTrigger, calendar: str, holidays: Days | None) -> None:
    """Tell each leaf that names a calendar its holidays."""
    for leaf in _walk(trigger):
        leaf.learn(calendar, holidays)


def upstreams(trigger: AnyTrigger) -> tuple[Upstream, ...]:
    """The runs for which its leaves wait."""
    return tuple(upstream for leaf in _walk(trigger) for upstream in leaf.upstreams())


def datasets(trigger: AnyTrigger) -> tuple[str, ...]:
    """The datasets whose data it counts, each once. An absence counts none."""
    counting = (leaf for leaf in _walk(trigger) if not leaf.opposes("partition"))
    return tuple(dict.fromkeys(dataset.name for leaf in counting for dataset in leaf.datasets()))


def waits_for(trigger: AnyTrigger, workflow: str, starter: str, status: str) -> bool:
    """Whether a leaf counts the runs of ``workflow`` that ``starter`` starts, when they reach this status."""
    return any(status in upstream.statuses and upstream.counts(workflow, starter) for upstream in upstreams(trigger))


def is_single_time(trigger: AnyTrigger) -> bool:
    """Whether a trigger is one time leaf. It needs no gathering: each of its fires becomes a job of its own."""
    return isinstance(trigger, TimeTrigger)


def is_one_shot(trigger: AnyTrigger) -> bool:
    """Whether a trigger is a single instant."""
    return isinstance(trigger, TimeTrigger) and trigger.expression is None


def is_revocable(trigger: AnyTrigger) -> bool:
    """Whether an event may undo a match: another chunk ends a quiet span, a late feed ends an absence."""
    return any(leaf.revocable for leaf in _walk(trigger))


def window_of(trigger: AnyTrigger) -> Millis | None:
    """How old a partial match may become, in ms (T14); None: it is never dropped."""
    within = trigger.within if isinstance(trigger, AllTrigger | AtLeastTrigger) else None
    return duration(within) if within else None


def expires_at(trigger: AnyTrigger, progress: Mapping[str, Progress]) -> Instant | None:
    """When a partial match is dropped: its window after its oldest event. None without a window or events."""
    window = window_of(trigger)
    if window is None or not progress:
        return None
    return min(gathered.first_at for gathered in progress.values()) + window


def evaluate(trigger: AnyTrigger, progress: Mapping[str, Progress], now: Instant) -> Verdict:
    """The verdict on a tree and on each part of it at ``now``, given the events that its leaves have gathered. ``why``
    shows its texts."""
    return _evaluate(trigger, progress, now, iter(leaves(trigger)))


def _evaluate(
    trigger: AnyTrigger, progress: Mapping[str, Progress], now: Instant, numbered: Iterator[NumberedLeaf[Leaf]]
) -> Verdict:
    if not isinstance(trigger, Composite):
        number = next(numbered).id
        gathered = progress.get(number)
        state = trigger.evaluate(gathered, now)
        amounts = trigger.amounts(gathered)
        return Verdict(
            trigger, state.met, state.arrived, state.missing, state.changes_at, *amounts, number, parts=state.parts
        )
    children = tuple(_evaluate(child, progress, now, numbered) for child in trigger.triggers)
    # An event that several leaves count is named once.
    arrived = tuple(dict.fromkeys(text for child in children for text in child.arrived))
    unmet = [child for child in children if not child.met]
    need, have = needed(trigger), len(children) - len(unmet)
    missing = _missing(trigger, need - have, unmet) if need > have else ()
    changes_at = min((child.changes_at for child in unmet if child.changes_at is not None), default=None)
    return Verdict(trigger, have >= need, arrived, missing, changes_at, have, need, children=children)


def needed(trigger: Composite) -> int:
    """How many of its triggers a composite needs to be met."""
    if isinstance(trigger, AtLeastTrigger):
        return trigger.count
    return len(trigger.triggers) if isinstance(trigger, AllTrigger) else 1


def can_be_met(trigger: AnyTrigger, without: Collection[str]) -> bool:
    """Whether a tree can be met if the leaves with the ids ``without`` never are."""
    return _can_be_met(trigger, without, iter(leaves(trigger)))


def _can_be_met(trigger: AnyTrigger, without: Collection[str], numbered: Iterator[NumberedLeaf[Leaf]]) -> bool:
    if not isinstance(trigger, Composite):
        return next(numbered).id not in without
    return sum([_can_be_met(child, without, numbered) for child in trigger.triggers]) >= needed(trigger)


def _missing(trigger: Composite, lacking: int, unmet: list[Verdict]) -> tuple[str, ...]:
    if isinstance(trigger, AllTrigger):
        return tuple(text for verdict in unmet for text in verdict.missing)
    choices = " or ".join(" and ".join(verdict.missing) for verdict in unmet if verdict.missing)
    return (choices,) if lacking == 1 else (f"{lacking} more of: {choices}",)


def describe(trigger: AnyTrigger) -> str:
    """The trigger in plain words: ``1 partition of demo.flights and (...)``."""
    if not isinstance(trigger, Composite):
        return trigger.describe()
    parts = [f"({describe(child)})" if isinstance(child, Composite) else describe(child) for child in trigger.triggers]
    if isinstance(trigger, AtLeastTrigger):
        text = f"at least {trigger.count} of: {', '.join(parts)}"
    else:
        text = (" and " if isinstance(trigger, AllTrigger) else " or ").join(parts)
    window = window_of(trigger)
    return f"{text}, within {format_duration(window)}" if window else text


def check_size(trigger: AnyTrigger, more: int = 0, field: str = "trigger") -> None:
    """Raises ``invalid`` if a trigger needs more index rows than one transaction can change (L5). ``more`` is the
    number of index rows of constraints."""
    count = sum(max(1, len(leaf.event_keys())) for leaf in _walk(trigger)) + more
    if count > MAX_LEAVES:
        hint = "split the schedule in two, or trigger on an intermediate workflow; each status of a leaf counts"
        raise invalid(field, f"at most {MAX_LEAVES} leaves in one trigger", f"{count} leaves", hint)


def check_work(trigger: AnyTrigger, field: str = "trigger") -> None:
    """Raises ``invalid`` if the patterns of all leaves together cost too much for each event."""
    counting = (leaf.of if isinstance(leaf, NestedLeaf) else leaf for leaf in _walk(trigger))
    work = [patterns.work(leaf.pattern) for leaf in counting if isinstance(leaf, EventTrigger) and leaf.pattern]
    for most, count, noun in (
        (patterns.MAX_TRIGGER_LEAVES, sum(part.leaves for part in work), "leaves"),
        (patterns.MAX_OPERATORS, sum(part.operators for part in work), "operators"),
    ):
        if count > most:
            message = f"at most {most} {noun} in all patterns of a trigger"
            raise invalid(field, message, count, patterns.MANY_OPERATORS_HINT)


def check_windows(trigger: AnyTrigger) -> None:
    """Raises ``invalid`` for an inner window: Sluice drops a partial match as a whole."""
    for child in trigger.triggers if isinstance(trigger, Composite) else ():
        for node in _nodes(child):
            if window_of(node) is not None:
                hint = "put within on the outermost trigger, or use two schedules"
                raise invalid(
                    "trigger.within", "within on the outermost trigger only", "within on an inner trigger", hint
                )


def past_fields(trigger: AnyTrigger, now: Instant, field: str = "trigger") -> Iterator[tuple[str, Any]]:
    """The fields because of which a timed leaf has no fire left from ``now`` on, each with its value."""
    if isinstance(trigger, Composite):
        for number, child in enumerate(trigger.triggers):
            yield from past_fields(child, now, f"{field}.triggers.{number}")
    elif isinstance(trigger, TimedLeaf) and (name := trigger.past_field(now)) is not None:
        yield f"{field}.{name}", getattr(trigger, name)


def resolve(trigger: AnyTrigger, names: Names) -> AnyTrigger:
    """The same tree with full names, zones and instants in each leaf."""
    if isinstance(trigger, Composite):
        return trigger.model_copy(update={"triggers": tuple(resolve(child, names) for child in trigger.triggers)})
    return trigger.resolve(names)


def _nodes(trigger: AnyTrigger) -> Iterator[AnyTrigger]:
    yield trigger
    for child in trigger.triggers if isinstance(trigger, Composite) else ():
        yield from _nodes(child)


def _walk(trigger: AnyTrigger) -> Iterator[Leaf]:
    for node in _nodes(trigger):
        if not isinstance(node, Composite):
            yield node
