"""Find one event of a fire whose events are in bundles, and let it leave its bundle (`core/fires/bundles.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from chalicelib.core.fires import bundles
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Fire, Record, Run
from chalicelib.core.runs import queued
from chalicelib.core.writes import Create, DeleteJob, Replace, Write
from chalicelib.ports import Ports


def job(ports: Ports, job_id: str) -> Job | None:
    """The event with this id as the job that it becomes if it leaves its bundle; None if it does not wait there."""
    row, number = _place(ports, job_id) or (None, 0)
    bundle = _bundle(ports, row, number) if row is not None else None
    return bundles.event_of(bundle, number) if bundle is not None else None


def run(ports: Ports, run_id: str) -> Run | None:
    """The run of the event with this id, from that of its bundle; None if it was not sent in its bundle."""
    row, number = _place(ports, run_id) or (None, 0)
    return _run(ports, row, number) if row is not None else None


def runs(ports: Ports, run_ids: Iterable[str]) -> list[Run]:
    """The runs of those of these events that were sent in their bundles."""
    return [found for run_id in run_ids if (found := run(ports, run_id)) is not None]


def record(ports: Ports, job_id: str) -> Record | None:
    """The record with which an event ended in its bundle; None if there is none."""
    row, number = _place(ports, job_id) or (None, 0)
    place = bundles.holds(row, number) if row is not None else None
    return ports.rows.get(Record, bundles.bundle_id(row.id, *place)) if row is not None and place is not None else None


def run_of_fire(ports: Ports, of: Job) -> Run | None:
    """The run of an event, if the events of its fire are in bundles. ``of`` is the event as a job without a bundle."""
    row = ports.rows.get(Fire, bundles.fire_id_of(of))
    if row is None:
        return None
    return _run(ports, row, of.index) or ports.rows.get(Run, bundles.event_id(row.id, of.index), 1)


def ran(ports: Ports, events: Sequence[Job]) -> list[int]:
    """The numbers of those of these events of one fire that have run: in a bundle, after they left it, or without one.
    The events are given as jobs without a bundle. Reads their runs a hundred per call, and each bundle once."""
    fire_id = bundles.fire_id_of(events[0]) if events else ""
    own = {name: each.index for each in events for name in (each.job_id, bundles.event_id(fire_id, each.index))}
    found = {own[run.run_id] for run in ports.runs.several([(name, 1) for name in own])}
    row = ports.rows.get(Fire, fire_id) if events else None
    places = {each.index: bundles.holds(row, each.index) for each in events} if row is not None else {}
    for place in {place for place in places.values() if place is not None}:
        sent = ports.rows.get(Run, bundles.bundle_id(fire_id, *place), 1)
        numbers = [number for number, held in places.items() if held == place]
        found |= {n for n in numbers if sent is not None and bundles.run_of_event(sent, fire_id, n) is not None}
    return sorted(found)


def may_be_in_bundle(event: Job) -> bool:
    """Whether an event that is a job may also be in a bundle. An emitter that stalled for a while writes the events of
    a fire as jobs, because it has read a former definition, after another one has written the bundles."""
    return bool(event.shape) and sort_keys.is_fire(event.sort_key)


def bundle_instead(ports: Ports, event: Job) -> str | None:
    """The id of the bundle that has, or had, an event which is also a job, or of the job that it became when it left
    its bundle; None if there is neither."""
    row = ports.rows.get(Fire, bundles.fire_id_of(event))
    place = bundles.holds(row, event.index) if row is not None else None
    own_id = bundles.event_id(row.id, event.index) if row is not None else event.job_id
    if row is None or place is None or event.job_id == own_id:
        return None
    bundle_id = bundles.bundle_id(row.id, *place)
    if _bundle(ports, row, event.index) is not None or _run(ports, row, event.index) is not None:
        return bundle_id
    if event.index in row.left or ports.rows.get(Run, own_id, 1) is not None or ports.jobs.find(own_id) is not None:
        return own_id
    return bundle_id if ports.rows.get(Record, bundle_id) is not None else None


def take_out(ports: Ports, job_id: str) -> Job | None:
    """Let the event with this id leave its bundle, as a job of its own. Returns the job; None after a conflict, or if
    the event does not wait in its bundle."""
    row, number = _place(ports, job_id) or (None, 0)
    bundle = _bundle(ports, row, number) if row is not None else None
    if row is None or bundle is None:
        return None
    own = bundles.alone(bundles.event_of(bundle, number))
    rest = without(bundle, [number])
    return own if ports.ledger.commit([*rest, Create(own), Replace(bundles.left_by(row, number))]) is None else None


def without(bundle: Job, numbers: Collection[int]) -> list[Write]:
    """The writes by which events leave a bundle. It ends, and leaves its queue, with the last of its events."""
    rest = bundles.without(bundle, numbers)
    return [Replace(rest)] if rest.waiting else [DeleteJob(bundle, exact=True), *queued.leave(bundle)]


def _place(ports: Ports, job_id: str) -> tuple[Fire, int] | None:
    found = bundles.number_of(job_id)
    row = ports.rows.get(Fire, found[0]) if found is not None else None
    return (row, found[1]) if row is not None and found is not None else None


def _bundle(ports: Ports, row: Fire, number: int) -> Job | None:
    """The bundle in which an event waits; None if it waits in none."""
    place = bundles.holds(row, number)
    key = bundles.sort_key(row, *place) if place is not None else None
    bundle = ports.rows.get(Job, row.schedule, row.generation, key) if key is not None else None
    waits = bundle is not None and not bundle.closed and bundle.is_bundle and number in bundles.numbers(bundle)
    return bundle if waits else None


def _run(ports: Ports, row: Fire, number: int) -> Run | None:
    place = bundles.holds(row, number)
    found = ports.rows.get(Run, bundles.bundle_id(row.id, *place), 1) if place is not None else None
    return bundles.run_of_event(found, row.id, number) if found is not None else None
