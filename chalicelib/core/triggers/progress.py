"""What a leaf has gathered, whether that is enough, and the words that tell it.

`stand` is a pure question of a leaf, its progress and ``now``; the words that ``why`` shows are made here.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core import sizes
from chalicelib.core.instants import Instant, duration, iso, spell_duration
from chalicelib.core.rows.job import Progress
from chalicelib.core.text import count_of
from chalicelib.core.triggers import occurrences, patterns
from chalicelib.core.triggers.leaf import (
    AbsentTrigger,
    ElapsedTrigger,
    EventTrigger,
    GatheringLeaf,
    LeafTrigger,
    PartitionTrigger,
    ProgramStatusTrigger,
    QuietTrigger,
    SizeTrigger,
    needed,
)
from chalicelib.core.triggers.time import TimeTrigger


def missing(leaf: LeafTrigger, progress: Progress | None) -> str:
    """What a leaf still lacks, in words."""
    have = progress.count if progress else 0
    lacking = max(needed(leaf) - have, 1)
    match leaf:
        case TimeTrigger():
            return f"the time {occurrences.describe(leaf)}"
        case PartitionTrigger():
            return f"{count_of(lacking, leaf.type)} of {leaf.dataset}"
        case SizeTrigger():
            rest = leaf.bytes - (progress.amount if progress else 0)
            return f"{sizes.spell_bytes(max(rest, 1))} of {leaf.dataset}"
        case ProgramStatusTrigger():
            times = "" if lacking == 1 else f" {lacking} times"
            version = f" (version {leaf.version})" if leaf.version is not None else ""
            return f"{leaf.workflow}{version} to reach {_either(leaf.statuses)}{times}"
        case EventTrigger():
            only = f" where {patterns.describe(leaf.pattern)}" if leaf.pattern else ""
            return f"{count_of(lacking, 'event')} {leaf.event}{only}"
        case QuietTrigger():
            return f"{missing(leaf.of, progress)}, then {spell_duration(leaf.span)} without another"
        case ElapsedTrigger():
            return f"{spell_duration(leaf.span)} to pass since the last start"
        case AbsentTrigger():
            return f"no {_noun(leaf.of)} to come {_limit(leaf)}"


@dataclass(frozen=True, slots=True)
class LeafState:
    """How one leaf stands: ``turns_at`` is when the passing of time alone would meet it."""

    met: bool
    came: tuple[str, ...]
    missing: tuple[str, ...]
    turns_at: Instant | None = None


def evaluate(leaf: LeafTrigger, progress: Progress | None, now: Instant) -> LeafState:
    """Is this leaf met by what it has gathered, at ``now``?"""
    came = (_came(leaf, progress),) if progress else ()
    if isinstance(leaf, QuietTrigger):
        return _stand_quiet(leaf, progress, now, came)
    if isinstance(leaf, SizeTrigger):
        met = progress is not None and progress.amount >= leaf.bytes
    else:
        met = progress is not None and progress.count >= needed(leaf)
    return LeafState(met, came, () if met else (missing(leaf, progress),))


def _stand_quiet(leaf: QuietTrigger, progress: Progress | None, now: Instant, came: tuple[str, ...]) -> LeafState:
    enough = evaluate(leaf.of, progress, now)
    if progress is None or not enough.met:
        return LeafState(False, came, (missing(leaf, progress),))
    quiet_at = progress.last_at + leaf.span
    if now >= quiet_at:
        return LeafState(True, (*came, f"none came for {spell_duration(leaf.span)}"), ())
    silence = f"{spell_duration(leaf.span)} without another {_noun(leaf.of)} (until {iso(quiet_at)})"
    return LeafState(False, came, (silence,), quiet_at)


def _came(leaf: LeafTrigger, progress: Progress) -> str:
    first = iso(progress.first_at)
    since = f"since {first}" if progress.count > 1 else f"at {first}"
    match leaf:
        case TimeTrigger():
            return f"the time {occurrences.describe(leaf)} came {since}"
        case PartitionTrigger():
            return f"{count_of(progress.count, leaf.type)} of {leaf.dataset} came {since}"
        case SizeTrigger():
            objects = count_of(progress.count, "object")
            return f"{sizes.spell_bytes(progress.amount)} in {objects} of {leaf.dataset} came {since}"
        case ProgramStatusTrigger():
            times = "" if progress.count == 1 else f" {progress.count} times"
            return f"{leaf.workflow} reached {_either(leaf.statuses)}{times} {since}"
        case EventTrigger():
            return f"{count_of(progress.count, 'event')} {leaf.event} came {since}"
        case QuietTrigger():
            return f"{_came(leaf.of, progress)}, the last at {iso(progress.last_at)}"
        case ElapsedTrigger():
            return f"{spell_duration(leaf.span)} had passed since the last start {since}"
        case AbsentTrigger():
            return f"no {_noun(leaf.of)} had come {_limit(leaf)} {since}"


def describe(leaf: LeafTrigger) -> str:
    """The leaf in words, as a rule: ``2 partitions of demo.flights``."""
    if isinstance(leaf, TimeTrigger):
        return occurrences.describe(leaf)
    return missing(leaf, None).replace(" to reach ", " reaching ").replace(" to pass ", " passing ")


def _limit(leaf: AbsentTrigger) -> str:
    if leaf.within is not None:
        return f"within {spell_duration(duration(leaf.within))}"
    on = f" on {', '.join(leaf.days)}" if leaf.days else ""
    return f"by {leaf.deadline} in {leaf.place}{on}"


def _noun(leaf: GatheringLeaf) -> str:
    match leaf:
        case PartitionTrigger():
            return f"{leaf.type} of {leaf.dataset}"
        case SizeTrigger():
            return f"object of {leaf.dataset}"
        case ProgramStatusTrigger():
            return f"{_either(leaf.statuses)} of {leaf.workflow}"
        case EventTrigger():
            return f"event {leaf.event}"


def _either(statuses: tuple[str, ...]) -> str:
    return " or ".join(statuses)
