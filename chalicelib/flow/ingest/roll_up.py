"""The jobs of periods (T25): to which of them a partition belongs, and what a new one begins with.

A job keeps which of its parts have come. When it begins, the registry shows which came before. A part that comes while
it waits joins it, by a write at the revision that was read. Once the job has started, a part is late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.events.periods import period_of
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.gather import Begin, Joined
from chalicelib.core.jobs.of_period import TOO_MANY, Place, needed_by, numbers, parts_by_leaf, places_of
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.parts import Parts
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.triggers.parts import MAX_JOBS, every, having, joined_by, number_of, values_of
from chalicelib.flow import many, period_jobs
from chalicelib.flow.ingest import seen
from chalicelib.flow.periods import Periods
from chalicelib.ports import Ports


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a partition does not count for the job of its period."""

    why: str


def places(
    ports: Ports, schedule: Schedule, event: Event, joined: Sequence[Joined], counting: Sequence[str]
) -> tuple[Place, ...] | Refused:
    """The jobs to which a partition belongs by the leaves ``counting``, and by the present document of its dataset."""
    known = Periods(ports)
    part, dataset = known.of(event), known.dataset(event)
    if part is None or dataset is None:
        return Refused("names no period and does not count")
    found = places_of(schedule, dataset, part, joined, counting)
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
    key = gather.gathering_key(place.correlation)
    number, last = period_jobs.started(
        ports, row.schedule, row.generation, key,
        lambda names: [record.id for record in many.rows(ports, Record, [(name,) for name in names])],
    )  # fmt: skip
    number += over is not None
    if last is not None:
        if not _is_rewritten(event) and _has(last, place, event):
            return None
        if schedule.late == "ignore":
            return Refused(f"is late: the job of {place.period.label} has started as {last.run_id}")
    datasets = period_jobs.datasets_of(ports, schedule)
    try:
        # A late partition runs its period again at once. An old period has as long to become complete as a new one.
        known = seen.by_leaf(ports, schedule, place, datasets, is_granted)
        needed = parts_by_leaf(schedule, place, datasets, now if last is None else 0, known)
    except SluiceError as refused:
        return Refused(f"does not count: {refused.message}")
    leaves = {
        leaf: progress(ports, parts, now) if is_granted(leaf) else Progress(0, now, now, parts=parts)
        for leaf, parts in needed.items()
    }
    return Begin(leaves, period_jobs.source(key, number))


def caught_up(ports: Ports, row: Subscription, place: Place, event: Event, job: Job) -> Job:
    """The job with the partitions that came while its schedule gathered nothing, in a drain. The partition of the event
    is not among them."""
    if job.created_at >= row.since:
        return job
    own = numbers(place, event, {leaf: each.parts for leaf, each in job.leaves.items()})
    leaves = dict(job.leaves)
    for leaf, before in job.leaves.items():
        if before.parts is None or not before.parts.lacking:
            continue
        known, number = _with_registered(ports, before.parts), own.get(leaf)
        if number is not None and not before.parts.has(number):
            known = replace(known, have=known.have & ~(1 << number))
        leaves[leaf] = replace(before, count=known.count, parts=known)
    return replace(job, leaves=leaves)


def _with_registered(ports: Ports, parts: Parts) -> Parts:
    found = progress(ports, parts, 0).parts
    return found if found is not None else parts


def progress(ports: Ports, parts: Parts, now: Instant) -> Progress:
    """The progress of a leaf by the partitions that are registered."""
    keys = {tuple(values_of(parts, part).values()): part.number for part in every(parts)}
    rows = many.rows(ports, Partition, ((parts.dataset, values) for values in keys))
    for row in rows:
        parts = having(parts, keys[row.values])
    instants = [row.event.accepted_at for row in rows] or [now]
    return Progress(len(rows), min(instants), max(instants), parts=parts)


def parts_of_run(
    ports: Ports,
    schedule: Schedule,
    correlation: Mapping[str, str],
    described: Sequence[Mapping[str, Any]],
) -> dict[str, Parts] | None:
    """The parts that the run of a period had, by the ``described`` events of its context; None for the run of no
    period."""
    datasets = period_jobs.datasets_of(ports, schedule)
    if schedule.period_of(correlation) is None:
        return None
    try:
        values_seen = partial(seen.by_leaf, ports, schedule, datasets=datasets)
        _, needed = needed_by(schedule, correlation, datasets, values_seen)
    except SluiceError:
        return None
    for leaf, parts in needed.items():
        for values in (each["partition"] for each in described if each["dataset"] == parts.dataset):
            part, known = period_of(datasets[parts.dataset], values), joined_by(needed[leaf], values)
            number = number_of(known, part, values) if part is not None else None
            needed[leaf] = having(known, number) if number is not None else needed[leaf]
    return needed


def _has(run: Run, place: Place, event: Event) -> bool:
    """Whether a run has a part, for each leaf that counts it."""
    known, values = run.period_parts or {}, event.partition or {}
    found = {leaf: number_of(known[leaf], place.part, values) for leaf in place.leaves if leaf in known}
    return all((number := found.get(leaf)) is not None and known[leaf].has(number) for leaf in place.leaves)


def runs_with(ports: Ports, places: Sequence[tuple[str, int, Place]], event: Event) -> list[str]:
    """The ids of the runs of periods that have a partition, also if they found it in the registry. ``places`` are the
    jobs to which it belongs, each with its schedule and generation; the first `period_jobs.FORMER` of each period are
    looked for."""
    wanted = {
        ids.job_id(name, generation, period_jobs.source(gather.gathering_key(place.correlation), number)): place
        for name, generation, place in places
        for number in range(period_jobs.FORMER)
    }
    found = ports.runs.several([(job_id, 1) for job_id in wanted])
    return [run.run_id for run in found if _has(run, wanted[run.run_id], event)]


def _is_rewritten(event: Event) -> bool:
    """Whether a partition that was known before was written again."""
    own = ids.event_id("partition", event.dataset, *(event.partition or {}).values())
    return event.own_id != own
