"""Which runs have used a partition without counting its event, and which have made it (L22).

Nothing lists the runs of a partition. The jobs of a backfill have computed ids, so the plans of the backfills of each
schedule that counts the dataset show which of them have run it. The run that has registered a partition is in its
event. Other runs that have made it are among the newest of the workflows that produce the dataset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice

from chalicelib.core.backfills import backfill
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events import products
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.run import Run
from chalicelib.core.triggers.leaf import Upstream
from chalicelib.flow import lookup, many
from chalicelib.flow.definitions import store
from chalicelib.flow.lookup import definitions_in
from chalicelib.ports import Ports

MAX_SCHEDULES = 20  # whose backfills are read, a query for each
MAX_PARTS = 40  # of plans that are read, with 100 entries each
MAX_WORKFLOWS = 2_000  # of the namespace, among which the producers are found
MAX_PRODUCERS = 5  # whose newest runs are searched
MAX_MADE = 20  # runs that are shown


def by_backfills(
    ports: Ports,
    event: Event,
    schedules: Sequence[str],
    counted: Collection[str],
    periods: Mapping[str, Sequence[Mapping[str, str]]],
) -> tuple[list[str], bool]:
    """The ids of the jobs by which backfills and re-processings have run a partition, and whether there may be more.
    ``counted`` are the jobs that have counted its event: one of them may have run again. ``periods`` has the
    correlations of the periods to which the partition belongs, by schedule."""
    found: list[str] = []
    cut, left = len(schedules) > MAX_SCHEDULES, MAX_PARTS
    for name, (_, schedule) in many.schedules(ports, schedules[:MAX_SCHEDULES]).items():
        wanted = periods[name] if name in periods else [_wanted(schedule, event)]
        for row in ports.jobs.backfills(name):
            if row.run is not None:
                found += [backfill.job_id(row, 0, row.generation)] if row.run in counted else []
            elif row.dataset == event.dataset or (row.periods and name in periods):
                parts = backfill.parts_of(row.total)
                cut |= len(parts) > left
                found += _entries(ports, row, wanted, parts[:left])
                left -= min(left, len(parts))
    return found, cut


def _wanted(schedule: Schedule, event: Event) -> Mapping[str, str]:
    """The values of the entries that run a partition: the same values of the correlation keys, or of all keys."""
    values = event.partition or {}
    return {key: values.get(key, "") for key in schedule.by} or values


def _entries(ports: Ports, row: Backfill, wanted: Sequence[Mapping[str, str]], parts: Sequence[int]) -> Iterator[str]:
    """The jobs of the entries of a backfill that have one of the ``wanted`` values."""
    for part in many.rows(ports, PlanPart, ((row.plan, number) for number in parts)):
        for number, entry in enumerate(part.entries, part.number * backfill.PART):
            values = backfill.values_by_key(row, entry)
            if number < row.next and any(each.items() <= values.items() for each in wanted):
                yield backfill.job_id(row, number, row.live.get(str(number), row.generation))


def makers(ports: Ports, event: Event, dataset: Dataset) -> tuple[list[Run], bool]:
    """The runs that have made a partition, the newest last attempts first, and whether there may be more."""
    name = event.dataset or ""
    found: dict[str, Run] = {}
    for run in lookup.attempts(ports, event.run_id)[-1:] if event.run_id is not None else ():
        found[run.run_id] = run
    wanted = tuple((event.partition or {}).values())
    producers, cut = _producers(ports, name)
    for workflow in producers[:MAX_PRODUCERS]:
        for run in lookup.runs_for(ports, Upstream(workflow, None, ()), None):
            if products.partition_of(dataset, products.values_of(run)) == wanted:
                found.setdefault(run.run_id, run)
    runs = list(found.values())
    return runs[:MAX_MADE], cut or len(producers) > MAX_PRODUCERS or len(runs) > MAX_MADE


def _producers(ports: Ports, dataset: str) -> tuple[list[str], bool]:
    """The workflows that produce a dataset, and whether there may be more."""
    namespace = dataset.partition(".")[0]
    apps = [app.name for app in definitions_in(ports, "app", namespace)]
    rows = list(islice(chain.from_iterable(definitions_in(ports, "workflow", app) for app in apps), MAX_WORKFLOWS + 1))
    known = ((row.name, store.of_datasets(row)) for row in rows[:MAX_WORKFLOWS])
    found = [name for name, own in known if own is not None and dataset in own.datasets_produced(namespace)]
    return found, len(rows) > MAX_WORKFLOWS
