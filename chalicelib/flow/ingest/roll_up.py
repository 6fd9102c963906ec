"""The jobs of periods (T25): to which of them a partition belongs, and what a new one begins with.

A job keeps which of its parts have come. When it begins, the registry shows which came before. A part that comes while
it waits joins it, by a write at the revision that was read. Once the job has started, a part is late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chalicelib.core import ids
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.gather import Begin, Joined
from chalicelib.core.jobs.of_period import TOO_MANY, Place, parts_by_leaf, places_of
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.job import Progress
from chalicelib.core.rows.parts import Parts
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Subscription
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.parts import MAX_JOBS, every, having, number_of, values_of
from chalicelib.flow import many
from chalicelib.flow.ingest import seen
from chalicelib.flow.periods import Periods
from chalicelib.ports import Ports

AT_ONCE = 50  # jobs of a period that are looked up together
FORMER = 3  # jobs of a period in a former generation that are looked up


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
) -> Begin | Refused | None:
    """What the job of a period begins with; None if its last run has the part, and a refusal if the part is late and
    starts nothing.

    ``is_granted`` says of a leaf whether its dataset may be read."""
    number, last = _started(ports, row, gather.gathering_key(place.correlation))
    if last is not None:
        if not _is_rewritten(event) and _has(last, place, event):
            return None
        if schedule.late == "ignore":
            return Refused(f"is late: the job of {place.period.label} has started as {last.run_id}")
    datasets = datasets_of(ports, schedule)
    try:
        # A late partition runs its period again at once. An old period has as long to become complete as a new one.
        known = seen.by_leaf(ports, schedule, place, datasets, is_granted)
        needed = parts_by_leaf(schedule, place, datasets, now if last is None else 0, known)
    except SluiceError as refused:
        return Refused(f"does not count: {refused.message}")
    leaves = {
        leaf: _progress(ports, parts, now) if is_granted(leaf) else Progress(0, now, now, parts=parts)
        for leaf, parts in needed.items()
    }
    return Begin(leaves, _source(gather.gathering_key(place.correlation), number))


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
            last, number = runs.get(job_id, last), number + 1
        size = AT_ONCE


def _of_former(ports: Ports, row: Subscription, sort_key: str) -> Run | None:
    """The last run of a period in a former generation whose trigger goes on in the present one."""
    state = ports.rows.get(ScheduleState, row.schedule)
    places = [
        (ids.job_id(row.schedule, generation, _source(sort_key, number)), 1)
        for generation in (state.former if state is not None else ())
        for number in range(FORMER)
    ]
    return max(ports.runs.several(places), key=lambda run: run.claimed_at, default=None) if places else None


def _has(run: Run, place: Place, event: Event) -> bool:
    """Whether a run has a part, for each leaf that counts it."""
    known, values = run.period_parts or {}, event.partition or {}
    found = {leaf: number_of(known[leaf], place.part, values) for leaf in place.leaves if leaf in known}
    return all((number := found.get(leaf)) is not None and known[leaf].has(number) for leaf in place.leaves)


def _is_rewritten(event: Event) -> bool:
    """Whether a partition that was known before was written again."""
    own = ids.event_id("partition", event.dataset, *(event.partition or {}).values())
    return event.own_id != own
