"""Triggers: the rule that starts a job, as a tree of leaves under ``all`` and ``any`` (T1, T7, T10, T14, T19).

A leaf gathers events; what it has gathered is its `Progress`. `evaluate` is the one function that says whether a tree
is met, and it explains itself in the same breath: the words that ``why`` shows are the words of the decision.
Leaves are numbered in reading order; a leaf's number is its id in every stored row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, Tag, field_validator, model_validator

from chalicelib.core import calendar
from chalicelib.core.calendar import Instant
from chalicelib.core.documents import Document, Reference, by_type
from chalicelib.core.errors import invalid

MAX_LEAVES = 45  # a schedule, its gate and its index rows are written in one transaction of at most 100 items
Status = Literal["STARTED", "COMPLETED", "FAILED", "KILLED"]


class TimeTrigger(Document):
    """Fires at the instants of ``expression``, read in ``zone``."""

    type: Literal["time"]
    expression: str
    zone: str = "UTC"

    @model_validator(mode="after")
    def _can_fire(self) -> TimeTrigger:
        calendar.check_expression(self.expression, self.zone)
        return self


class PartitionTrigger(Document):
    """``count`` new partitions of a dataset, each counted once."""

    type: Literal["partition"]
    dataset: Reference
    count: int = Field(default=1, ge=1, le=1_000_000)


class ProgramStatusTrigger(Document):
    """A workflow reached one of ``statuses``, ``count`` times."""

    type: Literal["program_status"]
    workflow: Reference
    statuses: tuple[Status, ...] = Field(default=("COMPLETED",), min_length=1)
    count: int = Field(default=1, ge=1, le=1_000_000)

    @field_validator("statuses")
    @classmethod
    def _once_each(cls, statuses: tuple[Status, ...]) -> tuple[Status, ...]:
        return tuple(dict.fromkeys(statuses))


class AllTrigger(Document):
    """Met when each of its triggers is."""

    type: Literal["all"]
    triggers: tuple[AnyTrigger, ...] = Field(min_length=1)


class AnyOfTrigger(Document):
    """Met when one of its triggers is."""

    type: Literal["any"]
    triggers: tuple[AnyTrigger, ...] = Field(min_length=1)


AnyTrigger = Annotated[
    Annotated[TimeTrigger, Tag("@time")]
    | Annotated[PartitionTrigger, Tag("@partition")]
    | Annotated[ProgramStatusTrigger, Tag("@program_status")]
    | Annotated[AllTrigger, Tag("@all")]
    | Annotated[AnyOfTrigger, Tag("@any")],
    by_type(("time", "partition", "program_status", "all", "any")),
]
LeafTrigger = TimeTrigger | PartitionTrigger | ProgramStatusTrigger
AllTrigger.model_rebuild()
AnyOfTrigger.model_rebuild()


@dataclass(frozen=True, slots=True)
class Leaf:
    id: str
    trigger: LeafTrigger


@dataclass(frozen=True, slots=True)
class Progress:
    """What one leaf has gathered: how many events, and the instants of the first and last (when they were accepted)."""

    count: int
    first_at: Instant
    last_at: Instant

    def plus(self, more: int, at: Instant) -> Progress:
        return Progress(self.count + more, min(self.first_at, at), max(self.last_at, at))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a trigger is met, and why: ``came`` and ``missing`` are sentences about its leaves."""

    met: bool
    came: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def why(self) -> str:
        came = "; ".join(self.came) or "nothing has come"
        return f"trigger met: {came}" if self.met else f"waits for {'; '.join(self.missing)} ({came})"


def leaves(trigger: AnyTrigger) -> tuple[Leaf, ...]:
    """The leaves of a tree in reading order, numbered."""
    return tuple(Leaf(str(number), leaf) for number, leaf in enumerate(_walk(trigger)))


def time_leaves(trigger: AnyTrigger) -> tuple[Leaf, ...]:
    return tuple(leaf for leaf in leaves(trigger) if isinstance(leaf.trigger, TimeTrigger))


def is_single_time(trigger: AnyTrigger) -> bool:
    """A trigger that is one time leaf needs no gathering: each of its fires is a job of its own."""
    return isinstance(trigger, TimeTrigger)


def event_keys(leaf: LeafTrigger) -> tuple[str, ...]:
    """The keys under which the reverse index finds this leaf (T15). Time leaves are found through their timer."""
    if isinstance(leaf, PartitionTrigger):
        return (partition_key(leaf.dataset),)
    if isinstance(leaf, ProgramStatusTrigger):
        return tuple(status_key(leaf.workflow, status) for status in leaf.statuses)
    return ()


def partition_key(dataset: str) -> str:
    return f"partition:{dataset}"


def status_key(workflow: str, status: str) -> str:
    return f"status:{workflow}:{status}"


def evaluate(trigger: AnyTrigger, progress: Mapping[str, Progress]) -> Verdict:
    """Is the tree met by what its leaves have gathered? Pure, total, and the source of the words of ``why``."""
    numbered = iter(leaves(trigger))
    return _evaluate(trigger, progress, numbered)


def _evaluate(trigger: AnyTrigger, progress: Mapping[str, Progress], numbered: Iterator[Leaf]) -> Verdict:
    if isinstance(trigger, AllTrigger | AnyOfTrigger):
        verdicts = [_evaluate(child, progress, numbered) for child in trigger.triggers]
        came = tuple(text for verdict in verdicts for text in verdict.came)
        if isinstance(trigger, AllTrigger):
            missing = tuple(text for verdict in verdicts if not verdict.met for text in verdict.missing)
            return Verdict(all(verdict.met for verdict in verdicts), came, missing)
        choices = " or ".join(" and ".join(verdict.missing) for verdict in verdicts if verdict.missing)
        met = any(verdict.met for verdict in verdicts)
        return Verdict(met, came, () if met else (choices,))
    return _leaf_verdict(trigger, progress.get(next(numbered).id))


def _leaf_verdict(leaf: LeafTrigger, progress: Progress | None) -> Verdict:
    needed = 1 if isinstance(leaf, TimeTrigger) else leaf.count
    have = progress.count if progress else 0
    came = (_came(leaf, progress),) if progress else ()
    missing = () if have >= needed else (_missing(leaf, needed - have),)
    return Verdict(have >= needed, came, missing)


def _came(leaf: LeafTrigger, progress: Progress) -> str:
    since = (
        f"since {calendar.iso(progress.first_at)}" if progress.count > 1 else f"at {calendar.iso(progress.first_at)}"
    )
    if isinstance(leaf, TimeTrigger):
        return f"the time {calendar.describe(leaf.expression, leaf.zone)} came {since}"
    if isinstance(leaf, PartitionTrigger):
        return f"{_count(progress.count, 'partition')} of {leaf.dataset} came {since}"
    times = "" if progress.count == 1 else f" {progress.count} times"
    return f"{leaf.workflow} reached {_either(leaf.statuses)}{times} {since}"


def _missing(leaf: LeafTrigger, lacking: int) -> str:
    if isinstance(leaf, TimeTrigger):
        return f"the time {calendar.describe(leaf.expression, leaf.zone)}"
    if isinstance(leaf, PartitionTrigger):
        return f"{_count(lacking, 'partition')} of {leaf.dataset}"
    times = "" if lacking == 1 else f" {lacking} times"
    return f"{leaf.workflow} to reach {_either(leaf.statuses)}{times}"


def describe(trigger: AnyTrigger) -> str:
    """The trigger in words: ``1 partition of demo.flights and (...)``."""
    if isinstance(trigger, AllTrigger | AnyOfTrigger):
        word = " and " if isinstance(trigger, AllTrigger) else " or "
        parts = [describe(child) for child in trigger.triggers]
        nested = [
            f"({text})" if isinstance(child, AllTrigger | AnyOfTrigger) else text
            for text, child in zip(parts, trigger.triggers, strict=True)
        ]
        return word.join(nested)
    if isinstance(trigger, TimeTrigger):
        return calendar.describe(trigger.expression, trigger.zone)
    return _missing(trigger, trigger.count).replace(" to reach ", " reaching ")


def check_size(trigger: AnyTrigger, field: str = "trigger") -> None:
    count = sum(max(1, len(event_keys(leaf))) for leaf in _walk(trigger))
    if count > MAX_LEAVES:
        hint = "split the schedule in two, or trigger on an intermediate workflow; each status of a leaf counts"
        raise invalid(field, f"at most {MAX_LEAVES} leaves in one trigger (L5)", f"{count} leaves", hint)


def _walk(trigger: AnyTrigger) -> Iterator[LeafTrigger]:
    if isinstance(trigger, AllTrigger | AnyOfTrigger):
        for child in trigger.triggers:
            yield from _walk(child)
    else:
        yield trigger


def _either(statuses: tuple[str, ...]) -> str:
    return " or ".join(statuses)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
