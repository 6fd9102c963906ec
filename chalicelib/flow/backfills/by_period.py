"""The periods of a schedule with ``per`` that a backfill runs, and what is there of each (T25, L12).

The entries are the values of the keys of the schedule: the label of the period, and those of ``by``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from chalicelib.core.backfills import backfill
from chalicelib.core.backfills.backfill import MAX_ENTRIES, MAX_PARTS
from chalicelib.core.backfills.request import PartitionRange
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import of_period
from chalicelib.core.rows.event import Partition
from chalicelib.core.rows.parts import Parts
from chalicelib.core.time.periods import Period
from chalicelib.core.triggers.parts import every, having, values_of
from chalicelib.flow import many, period_jobs
from chalicelib.flow.backfills import sources
from chalicelib.flow.ingest import seen
from chalicelib.ports import Ports


@dataclass(frozen=True, slots=True)
class Whole:
    """What is registered of a period: ``have`` of the ``need`` partitions of its leaves, the first of which begins at
    ``begins``. ``lacks`` says what its trigger waits for; empty if the trigger would start its job now."""

    begins: Instant
    have: int
    need: int
    lacks: str


def entries(ports: Ports, schedule: Schedule, asked: PartitionRange, now: Instant) -> tuple[str, ...]:
    """The periods that a request names, oldest first: those between two labels, both included, or single ones. Without
    ``from`` they begin with the first registered partition, without ``to`` they end with the present period. Raises
    ``invalid`` for what names no period, and for more than `MAX_ENTRIES`."""
    if asked.dataset is not None:
        hint = "leave it out: name periods of the schedule"
        raise invalid("partitions.dataset", "no dataset for a schedule with per", asked.dataset, hint)
    if asked.values is not None:
        given = enumerate(backfill.named(schedule.keys, [dict(each) for each in asked.values]))
        named = [_named(schedule, texts, f"partitions.values.{number}") for number, texts in given]
        return tuple(dict.fromkeys("/".join(values) for _, values in sorted(named)))
    found: list[str] = []
    for values in _between(ports, schedule, asked, now):
        found.append("/".join(values))
        if len(found) > MAX_ENTRIES:
            hint = "start several backfills, one after another"
            raise invalid("partitions.to", f"at most {MAX_ENTRIES} runs in one backfill", f"{values[0]} and more", hint)
    return tuple(found)


def _named(schedule: Schedule, texts: Sequence[str], field: str) -> tuple[Instant, tuple[str, ...]]:
    """The start and the values of a period that a request names."""
    correlation = of_period.correlation_of(schedule, dict(zip(schedule.keys, texts, strict=True)), field)
    period = schedule.period_of(correlation)
    return period.start if period is not None else 0, tuple(correlation.values())


def _between(
    ports: Ports, schedule: Schedule, asked: PartitionRange, now: Instant
) -> Iterable[tuple[str, ...]]:  # fmt: skip
    low, high = _bound(schedule, asked.from_, "partitions.from"), _bound(schedule, asked.to, "partitions.to")
    if low is not None and high is not None and low.start > high.start:
        raise invalid("partitions.to", "an end that is not before the start", asked.to, "swap the two")
    source = sources.source_of(ports, schedule, with_first=low is None)
    since = low.start if low is not None else source.first if source.first is not None else now
    for period in source.names.calendar.between(since, high.end if high is not None else now):
        written = source.names.write(period)
        yield from ((*written.values(), *others) for others in source.others)


def _bound(schedule: Schedule, given: Mapping[str, str] | None, field: str) -> Period | None:
    names = schedule.per.names(schedule.zone) if schedule.per is not None else None
    if given is None or names is None:
        return None
    if set(given) != set(names.keys):
        key = names.keys[0]
        expected = f"an object with exactly the key {key}, the length of the periods"
        raise invalid(field, expected, dict(given), f"write {key}=LABEL, as `sluice periods` has it")
    period = schedule.period_of(of_period.label_of(schedule, given, field))
    if period is None:
        raise invalid(field, "the label of a period", dict(given), "write it as `sluice periods` has it")
    return period


def wholes(ports: Ports, schedule: Schedule, found: Iterable[str], now: Instant) -> dict[str, Whole]:
    """What is registered of each of these periods. Raises ``invalid`` if they have too many partitions, or if a dataset
    does not determine them."""
    datasets = period_jobs.datasets_of(ports, schedule)
    needed: dict[str, dict[str, Parts]] = {}
    total = 0
    for entry in found:
        correlation = dict(zip(schedule.keys, backfill.values_of(entry), strict=True))
        values = partial(seen.by_leaf, ports, schedule, datasets=datasets)
        _, needed[entry] = of_period.needed_by(schedule, correlation, datasets, values)
        total += sum(parts.need for parts in needed[entry].values())
        if total > MAX_PARTS:
            hint = "start several backfills, one after another"
            raise invalid("partitions", f"at most {MAX_PARTS:,} partitions in one backfill", f"{total:,} or more", hint)
    known = _known(ports, [parts for leaves in needed.values() for parts in leaves.values()])
    return {
        entry: _whole(schedule, {leaf: _with(parts, known) for leaf, parts in leaves.items()}, now)
        for entry, leaves in needed.items()
    }


def _known(ports: Ports, needed: Iterable[Parts]) -> set[tuple[str, tuple[str, ...]]]:
    """The partitions among these parts that are registered. Windows share them, so each is read once."""
    keys = dict.fromkeys((parts.dataset, tuple(values_of(parts, part).values())) for parts in needed
                         for part in every(parts))  # fmt: skip
    return {(row.dataset, row.values) for row in many.rows(ports, Partition, keys)}


def _with(parts: Parts, known: set[tuple[str, tuple[str, ...]]]) -> Parts:
    for part in every(parts):
        if (parts.dataset, tuple(values_of(parts, part).values())) in known:
            parts = having(parts, part.number)
    return parts


def _whole(schedule: Schedule, leaves: Mapping[str, Parts], now: Instant) -> Whole:
    have, need = (sum(counts) for counts in zip(*((parts.count, parts.need) for parts in leaves.values()), strict=True))
    begins = min(parts.start for parts in leaves.values())
    return Whole(begins, have, need, of_period.lacks(schedule, leaves, now))
