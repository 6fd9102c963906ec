"""Find one event of a fire whose events are in bundles, and let it leave its bundle (`core/fires/bundles.py`)."""

from __future__ import annotations

from collections.abc import Collection

from chalicelib.core.fires import bundles, fire
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


def record(ports: Ports, job_id: str) -> Record | None:
    """The record with which an event ended, from that of its bundle; None if there is none."""
    row, number = _place(ports, job_id) or (None, 0)
    place = bundles.holds(row, number) if row is not None else None
    return ports.rows.get(Record, bundles.bundle_id(row.id, *place)) if row is not None and place is not None else None


def run_of_fire(ports: Ports, of: Job) -> Run | None:
    """The run of an event, if the events of its fire are in bundles. ``of`` is the event as a job without a bundle."""
    row = ports.rows.get(Fire, bundles.fire_id(of.schedule, of.generation, fire.nominal_of(of)))
    return _run(ports, row, of.index) if row is not None else None


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
