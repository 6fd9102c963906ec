"""Partitions of a dataset in a range, and what one of them has led to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, NotRequired

from chalicelib.core import ids
from chalicelib.core.backfills import backfill
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.events.periods import period_of
from chalicelib.core.events.values import has_known_spellings, rank
from chalicelib.core.instants import iso
from chalicelib.core.jobs import gather, of_period
from chalicelib.core.jobs.of_period import Place
from chalicelib.core.partition_values import decoded
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import WAKE
from chalicelib.core.states import JobState, RunState
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.views import At, Code, Sentence, View, shown
from chalicelib.flow import many, registered
from chalicelib.flow.ingest import roll_up
from chalicelib.flow.ingest.apply import NO_JOB
from chalicelib.flow.views import lineage, used
from chalicelib.flow.views.views import LatePartitionView, PeriodView, RecordView, period_shown, record_view
from chalicelib.ports import Ports, every_page

MAX_READ = 5_000  # partitions that are read for a range
PAGE = 1_000
MAX_PLACES = 1_000  # jobs of periods of which it is read whether they have counted a partition
MAX_LATE = 2_000  # records of late partitions that are looked for, for a list
GENERATIONS = 3  # of a schedule, the present one first, whose jobs of periods are looked for
FOLLOWERS = 100  # schedules that are shown for one partition


class JobOfPartitionView(View):
    """A job that has counted a partition, or waits for it."""

    job_id: str
    schedule: str
    state: JobState
    reason: Sentence
    code: Code | None


class RunOfPartitionView(View):
    """A run whose job has counted a partition, or whose ``backfill`` has named it; or a run that has made it."""

    run_id: str
    schedule: str
    state: RunState
    reason: Sentence
    code: Code | None
    at: At
    ended_at: At | None
    backfill: str | None


class OnePartitionView(View):
    """A partition; ``ready_at`` is null if it is missing. ``period`` is as in the list. ``made_by`` are the runs of
    workflows that produce it. ``waiting`` are the jobs that have counted it or wait for it. ``runs`` and ``ended`` are
    the runs and records of other jobs, those of backfills and re-processings included, and the records of schedules
    for which it was late. Runs are the newest first. The triggers of ``schedules`` count partitions of the dataset.
    ``at_least``: there is more."""

    dataset: str
    values: list[str]
    partition: dict[str, str]
    period: NotRequired[PeriodView | None]
    ready_at: At | None
    path: str | None
    made_by: list[RunOfPartitionView]
    waiting: list[JobOfPartitionView]
    runs: list[RunOfPartitionView]
    ended: list[RecordView]
    schedules: list[str]
    at_least: bool


def between(
    ports: Ports, name: str, keys: Sequence[str], first: str | None, last: str | None
) -> tuple[list[Partition], bool]:
    """The partitions from ``first`` to ``last``, both included, in their order: numbers compare as numbers. Also
    whether there may be more. Raises ``invalid`` for a bound with more values than keys.

    A table sorts values as text, where 10 comes before 2. So the partitions with the values that both bounds share at
    their beginning are read, and chosen here."""
    low, high = values_of(keys, first, "from"), values_of(keys, last, "to")
    pairs = zip(low.values(), high.values(), strict=False)
    shared = [value for value, _ in takewhile(lambda pair: rank(pair[0]) == rank(pair[1]), pairs)]
    rows, cut = _beginning_with(ports, name, keys, shared)
    by_values = {row.values: row for row in rows}
    try:
        chosen = backfill.between(keys, by_values, low or None, high or None)
    except SluiceError as error:
        field = (error.field or "").removeprefix("partitions.")
        raise SluiceError(error.code, error.message, field, error.hint) from None
    return [by_values[values] for values in backfill.in_order(chosen)], cut


def _beginning_with(
    ports: Ports, name: str, keys: Sequence[str], values: Sequence[str]
) -> tuple[list[Partition], bool]:
    """At least the partitions with these first values, in any spelling of their numbers; also whether there may be
    more."""
    rows: list[Partition] = []
    for shared in registered.matching(ports, name, keys, values):
        if len(shared) < len(values) and has_known_spellings(values[len(shared)]):
            break
        beginning = "/".join(shared) if len(shared) == len(keys) else "".join(f"{value}/" for value in shared)
        read = partial(ports.catalog.partitions, name, beginning=beginning)
        for page in every_page(read, min(PAGE, MAX_READ)):
            rows += page.items
            if len(rows) >= MAX_READ:
                return rows[:MAX_READ], True
    return rows, False


def values_of(keys: Sequence[str], text: str | None, field: str) -> dict[str, str]:
    """The values of the first keys from a text such as ``2013/1``; empty without one. Raises ``invalid`` for more
    values than keys, and for an empty value."""
    if text is None:
        return {}
    values = text.split("/")
    if len(values) > len(keys) or not all(values):
        raise invalid(
            field,
            f"values of the first of the keys {'/'.join(keys)}, such as 2013/1",
            text,
            "write the values in the order of the keys, with / between them",
        )
    return dict(zip(keys, map(decoded, values), strict=False))


def one(ports: Ports, name: str, dataset: Dataset, values: Mapping[str, str]) -> OnePartitionView:
    """A partition, registered or not, with the jobs that count it and what became of them. Numbers name the registered
    one of that number, with or without leading zeros.

    The schedules that count it are its subscribers. The rows of the applied event show which have counted it. The
    waiting job of each other schedule with the same correlation waits for it."""
    known = registered.chosen(ports, name, dataset, tuple(values.values()), "values", above=False)
    values = dict(zip(dataset.keys, known, strict=True))
    row = ports.rows.get(Partition, name, known)
    event = row.event if row is not None else _missing(name, values)
    page = ports.catalog.subscriptions(partition_key(name), FOLLOWERS, None)
    living = dict.fromkeys(each.schedule for each in page.items if each.leaf != WAKE)
    followed, cut = lineage.counted_by(ports, [event]) if row is not None else ([], False)
    schedules = many.schedules(ports, list(living))
    places = _places(schedules, event, dataset)
    own = [each for each in places if each.of is not None or each.mark != event.id][:MAX_PLACES]
    own = own if row is not None else []
    marks = [(each.schedule, each.generation, each.mark) for each in own]
    of_several = (applied.event_job for applied in ports.jobs.applied(marks) if applied.event_job != NO_JOB)
    of_periods = [(each.schedule, each.generation, each.of) for each in own if each.of is not None]
    in_registry = roll_up.runs_with(ports, of_periods, event)
    counted = list(dict.fromkeys([*(job_id for _, job_id in followed), *of_several, *in_registry]))
    periods: dict[str, list[Mapping[str, str]]] = {}
    for each in places:
        if each.of is not None:
            periods.setdefault(each.schedule, []).append(each.of.correlation)
    replayed, cut_of_plans = used.by_backfills(ports, event, list(living), counted, periods)
    makers, cut_of_makers = used.makers(ports, event, dataset)
    wanted = list(dict.fromkeys([*counted, *replayed]))
    runs, jobs, records, cut_too = lineage.became(ports, wanted[: lineage.MAX_NODES])
    awaiting = [job for job in _awaiting(ports, counted, places) if job.job_id not in jobs]
    late = _late(ports, [each.record_id for each in own if each.of is not None])
    found: OnePartitionView = {
        "dataset": name,
        "values": list(values.values()),
        "partition": dict(values),
        "ready_at": iso(event.accepted_at) if row is not None else None,
        "path": event.path,
        "made_by": _newest_first(makers),
        "waiting": [shown(JobOfPartitionView, job) for job in (*jobs.values(), *awaiting)],
        "runs": _newest_first(runs.values()),
        "ended": [record_view(record) for record in (*records.values(), *late)],
        "schedules": sorted(living),
        "at_least": any([cut, cut_too, cut_of_plans, cut_of_makers, page.cursor is not None,
                         len(wanted) > lineage.MAX_NODES, len(places) > MAX_PLACES]),
    }  # fmt: skip
    if dataset.period is not None:
        found["period"] = period_shown(dataset, values)
    return found


def _newest_first(runs: Iterable[Run]) -> list[RunOfPartitionView]:
    ordered = sorted(runs, key=lambda run: (run.claimed_at, run.run_id), reverse=True)
    return [shown(RunOfPartitionView, run, at=iso(run.claimed_at)) for run in ordered]


def _missing(name: str, values: Mapping[str, str]) -> Event:
    event_id = ids.event_id("partition", name, *values.values())
    return Event(event_id, "partition", partition_key(name), 0, 0, partition=dict(values), dataset=name)


def with_late(ports: Ports, name: str, dataset: Dataset, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The views of registered partitions, with the schedules that have ignored them because they came late (T28)."""
    views = [dict(item) for item in items]
    if dataset.period is None or not items:
        return views
    page = ports.catalog.subscriptions(partition_key(name), FOLLOWERS, None)
    schedules = many.schedules(ports, list(dict.fromkeys(each.schedule for each in page.items if each.leaf != WAKE)))
    wanted: dict[str, dict[str, Any]] = {}
    for view in views:
        places = _places(schedules, _missing(name, view["partition"]), dataset)
        wanted |= {place.record_id: view for place in places if place.of is not None}
    for record in _late(ports, list(wanted)[:MAX_LATE]):
        wanted[record.id].setdefault("late", []).append(shown(LatePartitionView, record, at=iso(record.recorded_at)))
    return views


def _late(ports: Ports, wanted: Iterable[str]) -> list[Record]:
    found = many.rows(ports, Record, ((record_id,) for record_id in wanted))
    return [record for record in found if record.reason.code == "event_not_counted"]


@dataclass(frozen=True, slots=True)
class _Place:
    """A job to which a partition belongs, of a ``generation`` of a schedule: its sort key while it gathers, and the id
    of the mark that the event of the partition has for it. ``of`` is the place of the job of a period."""

    schedule: str
    generation: int
    sort_key: str
    mark: str
    of: Place | None = None

    @property
    def record_id(self) -> str:
        """The id of the record that the partition came after the start of the job."""
        return ids.job_id(self.schedule, self.generation, self.mark)


def _places(schedules: Mapping[str, many.Found], event: Event, dataset: Dataset) -> list[_Place]:
    """The jobs to which a partition belongs. Those of periods may be of former generations."""
    period, found = period_of(dataset, event.partition or {}), list[_Place]()
    for name, (state, schedule) in schedules.items():
        joined = gather.joined(schedule, event)
        if schedule.per is None:
            found += [
                _Place(name, state.generation, gather.gathering_key(each.correlation), _mark(event, each.mark))
                for each in joined
            ]
            continue
        generations = (state.generation, *reversed(state.former))[:GENERATIONS]
        counting = [leaf.id for leaf in tree.leaves(schedule.trigger) if event.key in leaf.trigger.event_keys()]
        places = of_period.places_of(schedule, dataset, period, joined, counting) if period is not None else ()
        found += [
            _Place(name, generation, gather.gathering_key(place.correlation), _mark(event, place.name), place)
            for generation in generations
            for place in places
        ]
    return found


def _mark(event: Event, name: str) -> str:
    return of_period.marked(event, name).id


def _awaiting(ports: Ports, counted: Iterable[str], places: Sequence[_Place]) -> list[Job]:
    """The gathering jobs that this event would join, read a hundred per call: those of the schedules of which no job
    has counted it, and those of the periods to which it belongs. A job of a period may have found it in the
    registry."""
    seen = {parsed.schedule for job_id in counted if (parsed := ids.parse_job_id(job_id)) is not None}
    keys = [((each.schedule, each.generation, each.sort_key), each) for each in places]
    of_periods = [key for key, each in keys if each.of is not None]
    others = [key for key, each in keys if each.of is None and each.schedule not in seen]
    found = [job for job in many.rows(ports, Job, others) if job.met_at is None]
    return [job for job in (*many.rows(ports, Job, of_periods), *found) if not job.closed]
