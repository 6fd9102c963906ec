"""The jobs of periods (T25): to which of them a partition belongs, and what a new one begins with.

A job keeps which of its parts have come. When it begins, the registry shows which came before. A part that comes while
it waits joins it, by a write at the revision that was read. Once the job has started, a part is late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.events.periods import period_of
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.gather import Begin
from chalicelib.core.jobs.of_period import TOO_MANY, Place, numbers, parts_by_leaf, places_of
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.parts import Parts
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Subscription
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.parts import MAX_JOBS, every, having, number_of, values_of
from chalicelib.flow import many
from chalicelib.flow.periods import Periods
from chalicelib.ports import Ports

AT_ONCE = 50  # jobs of a period that are looked up together
FORMER = 3  # jobs of a period in a former generation that are looked up


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a partition does not count for the job of its period."""

    why: str


def places(
    ports: Ports, schedule: Schedule, event: Event, by: Mapping[str, str], counting: Sequence[str]
) -> tuple[Place, ...] | Refused:
    """The jobs to which a partition belongs by the leaves ``counting``, and by the present document of its dataset."""
    known = Periods(ports)
    part, dataset = known.of(event), known.dataset(event)
    if part is None or dataset is None:
        return Refused("names no period and does not count")
    found = places_of(schedule, dataset, part, by, counting)
    return found if len(found) <= MAX_JOBS else Refused(TOO_MANY)


def begin(
    ports: Ports,
    schedule: Schedule,
    row: Subscription,
    place: Place,
    event: Event,
    is_granted: Callable[[str], bool],
    now: Instant,
    over: Job | None = None,
) -> Begin | Refused | None:
    """What the job of a period begins with; None if its last run has the part, and a refusal if the part is late and
    starts nothing.

    ``is_granted`` says of a leaf whether its dataset may be read. ``over`` is the job before, if it has timed out and
    is not on record yet."""
    number, last = _started(ports, row, gather.gathering_key(place.correlation))
    number += over is not None
    if last is not None:
        if not _is_rewritten(event) and _has(last, place, event):
            return None
        if schedule.late == "ignore":
            return Refused(f"is late: the job of {place.period.label} has started as {last.run_id}")
    datasets = datasets_of(ports, schedule)
    try:
        # A late partition runs its period again at once. An old period has as long to become complete as a new one.
        needed = parts_by_leaf(schedule, place, datasets, now if last is None else 0)
    except SluiceError as refused:
        return Refused(f"does not count: {refused.message}")
    leaves = {
        leaf: _progress(ports, parts, now) if is_granted(leaf) else Progress(0, now, now, parts=parts)
        for leaf, parts in needed.items()
    }
    return Begin(leaves, _source(gather.gathering_key(place.correlation), number))


def caught_up(ports: Ports, row: Subscription, place: Place, event: Event, job: Job) -> Job:
    """The job with the partitions that came while its schedule gathered nothing, in a drain. The partition of the event
    is not among them."""
    if job.created_at >= row.since:
        return job
    own = numbers(place, event, {leaf: each.parts for leaf, each in job.leaves.items()})
    leaves = dict(job.leaves)
    for leaf, progress in job.leaves.items():
        if progress.parts is None or not progress.parts.lacking:
            continue
        known, number = came(ports, progress.parts), own.get(leaf)
        if number is not None and not progress.parts.has(number):
            known = replace(known, have=known.have & ~(1 << number))
        leaves[leaf] = replace(progress, count=known.count, parts=known)
    return replace(job, leaves=leaves)


def datasets_of(ports: Ports, schedule: Schedule) -> dict[str, Dataset]:
    """The datasets of a trigger that exist, by their names."""
    names = dict.fromkeys(each.name for leaf in tree.leaves(schedule.trigger) for each in leaf.trigger.datasets())
    rows = {name: ports.rows.get(Definition, "dataset", name) for name in names}
    return {name: Dataset.model_validate(row.document) for name, row in rows.items() if row is not None}


def _progress(ports: Ports, parts: Parts, now: Instant) -> Progress:
    """The progress of a leaf by the partitions that are registered."""
    known, rows = _registered(ports, parts)
    instants = [row.event.accepted_at for row in rows] or [now]
    return Progress(len(rows), min(instants), max(instants), parts=known)


def came(ports: Ports, parts: Parts) -> Parts:
    """The parts, with those that are registered."""
    return _registered(ports, parts)[0]


def _registered(ports: Ports, parts: Parts) -> tuple[Parts, list[Partition]]:
    keys = {tuple(values_of(parts, part).values()): part.number for part in every(parts)}
    rows = many.rows(ports, Partition, ((parts.dataset, values) for values in keys))
    for row in rows:
        parts = having(parts, keys[row.values])
    return parts, rows


def parts_of_run(
    ports: Ports,
    schedule: Schedule,
    correlation: Mapping[str, str],
    described: Sequence[Mapping[str, Any]],
) -> dict[str, Parts] | None:
    """The parts that the run of a period had, by the ``described`` events of its context; None for the run of no
    period."""
    period, datasets = schedule.period_of(correlation), datasets_of(ports, schedule)
    if period is None:
        return None
    try:
        needed = parts_by_leaf(schedule, Place(period, period, correlation, ()), datasets)
    except SluiceError:
        return None
    for leaf, parts in needed.items():
        for values in (each["partition"] for each in described if each["dataset"] == parts.dataset):
            part = period_of(datasets[parts.dataset], values)
            number = number_of(parts, part, values) if part is not None else None
            needed[leaf] = having(needed[leaf], number) if number is not None else needed[leaf]
    return needed


def _source(sort_key: str, number: int) -> str:
    """What the id of a job of a period follows from. ``number`` counts those before it that have ended."""
    return f"period:{sort_key}:{number}"


def _started(ports: Ports, row: Subscription, sort_key: str) -> tuple[int, Run | None]:
    """The number of the next job of a period, and the last run of those before it."""
    number, size = 0, 1
    last: Run | None = None
    while True:
        wanted = [ids.job_id(row.schedule, row.generation, _source(sort_key, number + more)) for more in range(size)]
        runs = {run.run_id: run for run in ports.runs.several([(job_id, 1) for job_id in wanted])}
        rest = [(job_id,) for job_id in wanted if job_id not in runs]
        records = {record.id for record in many.rows(ports, Record, rest)}
        for job_id in wanted:
            if job_id not in runs and job_id not in records:
                return number, last if last is not None else _of_former(ports, row, sort_key)
            last, number = _latest(last, runs.get(job_id)), number + 1
        size = AT_ONCE


def _of_former(ports: Ports, row: Subscription, sort_key: str) -> Run | None:
    """The last run of a period in a former generation whose trigger goes on in the present one."""
    state = ports.rows.get(ScheduleState, row.schedule)
    places = [
        (ids.job_id(row.schedule, generation, _source(sort_key, number)), 1)
        for generation in (state.former if state is not None else ())
        for number in range(FORMER)
    ]
    runs = filter(_began, ports.runs.several(places)) if places else ()
    return max(runs, key=lambda run: run.claimed_at, default=None)


def _latest(before: Run | None, run: Run | None) -> Run | None:
    return run if run is not None and _began(run) else before


def _began(run: Run) -> bool:
    """Whether the start of a run was not aborted, as by a disable right after its claim. Such a run has not run its
    period."""
    return run.state != "ABORTED"


def _has(run: Run, place: Place, event: Event) -> bool:
    """Whether a run has a part, for each leaf that counts it."""
    known = run.period_parts or {}
    found = numbers(place, event, known)
    return all(leaf in found and known[leaf].has(found[leaf]) for leaf in place.leaves)


def runs_with(ports: Ports, places: Sequence[tuple[str, int, Place]], event: Event) -> list[str]:
    """The ids of the runs of periods that have a partition, also if they found it in the registry. ``places`` are the
    jobs to which it belongs, each with its schedule and generation; the first `FORMER` of each period are looked
    for."""
    wanted = {
        ids.job_id(name, generation, _source(gather.gathering_key(place.correlation), number)): place
        for name, generation, place in places
        for number in range(FORMER)
    }
    found = ports.runs.several([(job_id, 1) for job_id in wanted])
    return [run.run_id for run in found if _has(run, wanted[run.run_id], event)]


def _is_rewritten(event: Event) -> bool:
    """Whether a partition that was known before was written again."""
    own = ids.event_id("partition", event.dataset, *(event.partition or {}).values())
    return event.id.partition("@")[0] != own  # a mark of a further job has its label behind the id
