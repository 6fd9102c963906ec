"""What a trigger or a constraint waits for is stopped elsewhere: by another app, or by another team (L24).

A stop marks the schedules of its own scope. A schedule outside of it, such as the start of another team's DAG, has no
mark: it waits for a status or for data that does not come.
"""

from __future__ import annotations

from collections.abc import Iterator

from chalicelib.core import ids
from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.backfills.backfill import datasets_of
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import iso
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import NewestPartition, Partition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stops import Stop, marks_of
from chalicelib.core.triggers import tree
from chalicelib.core.why import Mention, Why, mention, plain
from chalicelib.flow import grants
from chalicelib.flow.schedules.stops import of_namespace
from chalicelib.ports import Ports

READ = 10  # the newest runs of a workflow, whose schedules are asked

Awaited = tuple[Mention, tuple[str, ...]]
"""What a schedule waits for, and the schedules or other names that a stop has to cover for that to be stopped."""


def upstreams(ports: Ports, name: str, schedule: Schedule) -> list[Why]:
    """A phrase for each stop that covers what a schedule waits for, and not the schedule itself, with the command that
    ends the stop. Where nothing is stopped, this reads one row for each namespace that the schedule waits for."""
    own = {stop.scope for stop in marks_of(ports.rows.get(ScheduleState, name))}
    stops: dict[str, tuple[Stop, ...]] = {}
    found: dict[str, Why] = {}
    for what, schedules in _awaited(name, schedule):
        namespace = what.name.partition(".")[0]
        use = ForeignUse("datasets" if what.kind == "dataset" else "follow", what.name, name.partition(".")[0])
        if namespace != use.by and grants.used_of(ports, [use]).missing:
            continue
        if namespace not in stops:
            stops[namespace] = tuple(stop for stop in of_namespace(ports, namespace) if stop.is_live)
        for stop in _covering(ports, what, schedules, stops[namespace]):
            if stop.scope not in own:
                found.setdefault(stop.scope, _phrase(what, stop, name))
    return list(found.values())


def _awaited(name: str, schedule: Schedule) -> Iterator[Awaited]:
    dag = ids.dag_of(name) if ids.is_of_dag(name) else None
    for upstream in tree.upstreams(schedule.trigger):
        of_dag = upstream.schedule is not None and ids.is_of_dag(upstream.schedule)
        if not of_dag or ids.dag_of(str(upstream.schedule)) != dag:
            only = (upstream.schedule,) if upstream.schedule is not None else ()
            yield mention("other", upstream.workflow), only
    for workflow in schedule.fresh_upstreams:
        yield mention("other", workflow), ()
    for dataset in dict.fromkeys((*datasets_of(schedule), *schedule.constraint_datasets)):
        yield mention("dataset", dataset), ()


def _covering(ports: Ports, what: Mention, schedules: tuple[str, ...], stops: tuple[Stop, ...]) -> Iterator[Stop]:
    """Those of the stops of a namespace that cover what runs a workflow or makes the data of a dataset."""
    if not stops:
        return
    makers = schedules or tuple(_makers(ports, what))
    states = [ports.rows.get(ScheduleState, maker) for maker in makers]
    marked = {stop.scope for state in states for stop in marks_of(state)}
    for stop in stops:
        if stop.scope in marked or (not makers and stop.of.covers(what.name, {})):
            yield stop


def _makers(ports: Ports, what: Mention) -> Iterator[str]:
    """The schedules of the newest runs of a workflow, or of the run that registered the newest partition."""
    if what.kind != "dataset":
        runs = ports.runs.runs("workflow", what.name, READ, None).items
        yield from dict.fromkeys(run.schedule for run in runs)
        return
    newest, row = ports.rows.get(NewestPartition, what.name), ports.rows.get(Definition, "dataset", what.name)
    if newest is None or row is None:
        return
    values = tuple(str(newest.partition.get(key)) for key in Dataset.model_validate(row.document).keys)
    registered = ports.rows.get(Partition, what.name, values)
    made_by = ids.parse_job_id(registered.event.run_id) if registered and registered.event.run_id else None
    if made_by is not None:
        yield made_by.schedule


def _phrase(what: Mention, stop: Stop, name: str) -> Why:
    """The stop in words. Another namespace learns since when, and not who stopped it and why."""
    is_own = stop.of.namespace == name.partition(".")[0]
    said = stop.parts() if is_own else (f"{stop.of.said} has been stopped since {iso(stop.at)}",)
    tag = f" --tag {stop.of.tag}" if stop.of.tag else ""
    return plain(what, " is awaited, and ", *said, f" (sluice start {stop.of.place}{tag} ends the stop)")
