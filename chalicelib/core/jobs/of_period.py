"""The job of a period (T25): to which a partition belongs, and which parts its leaves wait for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chalicelib.core.changes import replace
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.events.periods import parts_of
from chalicelib.core.instants import Instant
from chalicelib.core.jobs.gather import Joined
from chalicelib.core.partition_values import decoded
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.rows.parts import Parts
from chalicelib.core.time.periods import LATEST, Period
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.parts import MAX_BYTES, MAX_JOBS, UNSEEN, Seen, joined_by, number_of, size_of, words

TOO_MANY = f"belongs to more than {MAX_JOBS:,} jobs and does not count; write a longer per, or a shorter window"


@dataclass(frozen=True, slots=True)
class Place:
    """A job of a period to which a partition belongs: the ``period`` of the job, that of the partition (``part``), the
    correlation of the job, and the leaves that wait for the partition. ``name`` is that of the mark that the event of
    the partition has for the job; empty for the first one.
    """

    period: Period
    part: Period
    correlation: Mapping[str, str]
    leaves: tuple[str, ...]
    name: str = ""


def marked(event: Event, name: str) -> Event:
    """The event under the id of its mark: each job to which it belongs has one. The event may be that of a mark."""
    return replace(event, id=f"{event.own_id}@{name}" if name else event.own_id)


def of_mark(event: Event) -> Event:
    """The event whose mark, for one of several jobs, is given as `marked` has it."""
    return replace(event, id=event.own_id)


def places_of(
    schedule: Schedule, dataset: Dataset, part: Period, joined: Sequence[Joined], counting: Sequence[str]
) -> tuple[Place, ...]:
    """The jobs to which a partition of a dataset belongs, by the leaves ``counting``: that of the period in which its
    own period begins, those of the periods that lie in it, and those in whose windows it begins; each for the values of
    the other correlation keys (``joined``). Empty if the schedule has no job for each period. More than
    `MAX_JOBS` if there are more: then the partition counts for none of them (`TOO_MANY`)."""
    names = schedule.per.names(schedule.zone) if schedule.per is not None else None
    own = dataset.period.names if dataset.period is not None else None
    if names is None or own is None:
        return ()
    rules = {leaf.id: leaf.trigger for leaf in tree.leaves(schedule.trigger) if leaf.id in counting}

    def spans(job: Period) -> dict[str, tuple[Instant, Instant]]:
        return {leaf: rule.span_of(job, own.calendar) for leaf, rule in rules.items()}

    # A window may end after the period of its job, with the next one of the dataset.
    ahead, found = names.calendar.at(own.calendar.previous(part).start), list[Place]()
    period = ahead if any(part.start < end for _, end in spans(ahead).values()) else names.calendar.at(part.start)
    while period.end <= LATEST and len(found) <= MAX_JOBS:
        own_spans = spans(period)
        if all(part.start < start for start, _ in own_spans.values()):
            break
        leaves = tuple(leaf for leaf, (start, end) in own_spans.items() if start <= part.start < end)
        for each in joined if leaves else ():
            label = period.label if found or each.mark else ""
            correlation = {**names.write(period), **(each.correlation or {})}
            found.append(Place(period, part, correlation, leaves, "/".join(filter(None, (label, each.mark)))))
        period = names.calendar.next(period)
    return tuple(found)


def parts_by_leaf(
    schedule: Schedule,
    place: Place,
    datasets: Mapping[str, Dataset],
    since: Instant = 0,
    seen: Mapping[str, Seen] | None = None,
) -> dict[str, Parts]:
    """The parts that each leaf of the trigger waits for; ``since`` is as for `parts_of`, and ``seen`` has the values
    for each leaf with ``seen_last``. Raises ``invalid`` if a dataset does not determine them, or is not among
    ``datasets``, and if they are too large for a job."""
    fixed, found = {key: place.correlation[key] for key in schedule.by}, dict[str, Parts]()
    for leaf in tree.leaves(schedule.trigger):
        [name] = (each.name for each in leaf.trigger.datasets())
        if name not in datasets:
            raise invalid("trigger.dataset", "a dataset that exists", name)
        of = (seen or {}).get(leaf.id, UNSEEN)
        rule = schedule.incomplete
        found[leaf.id] = parts_of(name, datasets[name], leaf.trigger, place.period, fixed, rule, since, of)
    size = sum(size_of(each.values) for each in found.values())
    if size > MAX_BYTES:
        raise invalid("trigger", f"lists of at most {MAX_BYTES:,} bytes in the job of a period", f"{size:,}")
    return found


def numbers(place: Place, event: Event, leaves: Mapping[str, Parts | None]) -> dict[str, int]:
    """The number of the part that a partition is, for each leaf of its place to whose parts it belongs, or which it
    joins."""
    values, found = event.partition or {}, {}
    for leaf in place.leaves:
        known = leaves.get(leaf)
        number = number_of(joined_by(known, values), place.part, values) if known is not None else None
        if number is not None:
            found[leaf] = number
    return found


def correlation_of(schedule: Schedule, values: Mapping[str, str], field: str) -> dict[str, str]:
    """The correlation of the job of a period that a user names by the keys of the schedule. Raises as `label_of`, and
    for a value that the schedule does not list."""
    check_listed(schedule, values, field)
    return {**label_of(schedule, values, field), **{key: decoded(values[key]) for key in schedule.by}}


def check_listed(schedule: Schedule, values: Mapping[str, str], field: str) -> None:
    """Raise ``invalid`` for a value of a key that is not among the ``values`` of the schedule."""
    for key, listed in schedule.values.items():
        if decoded(values[key]) not in listed:
            hint = f"write one of values: {', '.join(listed[:5])}{' ..' if listed[5:] else ''}"
            raise invalid(field, f"a value of {key} that the schedule lists", values[key], hint)


def label_of(schedule: Schedule, values: Mapping[str, str], field: str) -> dict[str, str]:
    """The label of a period that a user names, as the schedule writes it. Raises ``invalid`` for ``field`` if it names
    no period."""
    names = schedule.per.names(schedule.zone) if schedule.per is not None else None
    if names is None:
        hint = "name a zone that the rules of time zones have in the schedule"
        raise invalid(field, "a zone of the present rules", schedule.zone, hint)
    try:
        return names.write(names.read(values))
    except SluiceError as refused:
        raise SluiceError(refused.code, refused.message, field, refused.hint) from None


def needed_by(
    schedule: Schedule,
    correlation: Mapping[str, str],
    datasets: Mapping[str, Dataset],
    seen: Callable[[Place], Mapping[str, Seen]] = lambda _: {},
) -> tuple[Period, dict[str, Parts]]:
    """The period with this correlation, and the parts that each leaf of its job needs. ``seen`` reads the values of
    those with ``seen_last``. Raises ``invalid`` as `parts_by_leaf`, and if the correlation names no period."""
    period = schedule.period_of(correlation)
    if period is None:
        raise invalid("partition", "the label of a period", dict(correlation))
    place = Place(period, period, correlation, ())
    return period, parts_by_leaf(schedule, place, datasets, seen=seen(place))


def follows_former(schedule: Schedule, datasets: Mapping[str, Dataset]) -> bool:
    """Whether the parts of a period depend on what the period before had (``seen_last``)."""
    return any(dataset.grows is not None and dataset.grows not in schedule.by for dataset in datasets.values())


class Upcoming(NamedTuple):
    """A period that is not over: how many partitions its job waits for, None if that is not known yet; and from when on
    all of them can be there."""

    period: Period
    need: int | None
    complete_from: Instant


def upcoming(schedule: Schedule, datasets: Mapping[str, Dataset], now: Instant, count: int) -> list[Upcoming]:
    """The periods of a schedule from that of ``now`` on, ``count`` of them. The job of each has the same number of
    partitions for any value of the keys in ``by``."""
    names = schedule.per.names(schedule.zone) if schedule.per is not None else None
    found = list[Upcoming]()
    period = names.calendar.at(now) if names is not None else None
    while names is not None and period is not None and len(found) < count and period.end <= LATEST:
        any_values = {**names.write(period), **dict.fromkeys(schedule.by, "")}
        try:
            parts = parts_by_leaf(schedule, Place(period, period, any_values, ()), datasets)
        except SluiceError:
            found.append(Upcoming(period, None, period.end))
        else:
            need = sum(each.need for each in parts.values())
            known = not follows_former(schedule, datasets)
            found.append(Upcoming(period, need if known else None, max(each.end for each in parts.values())))
        period = names.calendar.next(period)
    return found


def lacks(schedule: Schedule, leaves: Mapping[str, Parts], now: Instant) -> str:
    """What the trigger waits for in a period of which these parts have come, in words: ``2 of 24 hours of ...``. Empty
    if it starts the job at ``now``. No trigger starts one without any part."""
    progress = {leaf: Progress(parts.count, now, now, parts=parts) for leaf, parts in leaves.items()}
    verdict = tree.evaluate(schedule.trigger, progress, now)
    if not verdict.met:
        return "; ".join(verdict.missing)
    return "" if any(parts.have for parts in leaves.values()) else "; ".join(map(words, leaves.values()))
