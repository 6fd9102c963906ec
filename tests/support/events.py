"""The events of a schedule, one by one, out of the rows that may stand for many (`core/fires/bundles.py`)."""

from __future__ import annotations

from chalicelib.core.fires import bundles
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from tests.support.world import World


def of_run(run: Run) -> list[str]:
    """The ids of the events that a run stands for."""
    if not bundles.is_bundle_id(run.run_id):
        return [run.run_id]
    first = run.spread[0]
    numbers = [number for number in range(first, first + run.count) if number not in run.left] + [*run.ahead]
    return [bundles.event_id(bundles.fire_of_bundle(run.run_id), number) for number in numbers]


def of_job(job: Job) -> list[str]:
    """The ids of the events that a job stands for and that are not settled."""
    return [each.job_id for each in bundles.events(job)] if job.is_bundle else [job.job_id]


def sent(world: World, name: str) -> list[str]:
    """The ids of the events that have a run, each as often as it has one."""
    return [event for run in world.runs(name) for event in of_run(run)]


def waiting(world: World, name: str) -> list[str]:
    """The ids of the events that wait."""
    return [event for job in world.jobs(name) for event in of_job(job)]


def on_record(world: World, name: str) -> int:
    """How many events ended without a run."""
    return sum(record.count for record in world.records(name))
