"""What must hold in every situation, in addition to `invariants.py`: no accepted job is lost, no run that ended
changes, and no delivery is made twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

from chalicelib.aws.tables import items
from chalicelib.core.fires import bundles, fire
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import DeadLetter, Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.targets.answers import Started
from tests.faults.meetings.scheduler import Log
from tests.support import events
from tests.support.world import World

R = TypeVar("R")
JOBS = ("FIRE#", "JOB#", "GATHERING", "RETRY#", "RUNNOW#")


def rows(world: World, kind: type[R], table: str, *places: str) -> Iterable[R]:
    return [items.from_item(kind, row) for name, row in world.tables.rows()
            if name == f"{table}Table" and row["sk"]["S"].startswith(places)]  # fmt: skip


def accepted(world: World) -> dict[str, Any]:
    """The jobs whose triggers are met. Each must become a run or a record."""
    jobs = rows(world, Job, "Jobs", *JOBS)
    met = [job for job in jobs if job.job_id and job.state != "PENDING_TRIGGER"]
    each = [event for job in met for event in (bundles.events(job) if job.is_bundle else [job])]
    return {job.job_id: job for job in each}


def _again(world: World, job: Job) -> set[str]:
    """The ids of a fire in later generations, in which an update that keeps the trigger prepares it again."""
    state = world.ports.rows.get(ScheduleState, job.schedule)
    if state is None or job.kind != "fire" or job.leaf is None:
        return set()
    timers = (Timer(job.schedule, generation, 0, 0, {}) for generation in (*state.former, state.generation))
    due = job.due_at or 0
    nominal = fire.nominal_of(job)
    return {
        job_id
        for timer in timers
        for job_id in (
            fire.fire_of(timer, job.leaf, nominal, due, job.index).job_id,
            bundles.event_id(bundles.fire_id(job.schedule, timer.generation, nominal), job.index),
        )
    }


def _never_came(world: World, job: Job) -> bool:
    """Whether a fire was to be prepared again after an update, and its schedule ended before its nominal instant."""
    state = world.ports.rows.get(ScheduleState, job.schedule)
    if state is None or job.kind != "fire" or job.generation not in state.former:
        return False
    return state.mode not in GATHERING_MODES and fire.nominal_of(job) > state.mode_at


def _unprepared(world: World) -> Counter[str]:
    """How many events of each schedule are on record as not prepared, without their ids."""
    found = [each for each in rows(world, Record, "Runs", "RECORD") if each.reason.code == "fires_unprepared"]
    return Counter(each.schedule for each in found for _ in range(each.count))


def _events_of(record: Record) -> Iterable[str]:
    """The events of the bundle that a record is of. It counts those that did not run, and does not name them."""
    place = bundles.place_of(record.id)
    if place is None:
        return []
    fire_id, first, count = place
    return [bundles.event_id(fire_id, number) for number in range(first, first + count)]


def check_books(world: World, taken_in: dict[str, Any]) -> None:
    runs = {(run.run_id, run.attempt): run for run in rows(world, Run, "Runs", "A#")}
    ended = {event for run in runs.values() for event in events.of_run(run)}
    for record in rows(world, Record, "Runs", "RECORD"):
        ended |= {record.id, *_events_of(record)}
    waiting = {event for job in rows(world, Job, "Jobs", *JOBS, "REDRIVE#") for event in events.of_job(job)}
    found = ended | waiting
    counted = _unprepared(world)
    lost = [
        job_id
        for job_id, job in taken_in.items()
        if not {job_id, *_again(world, job)} & found and not _never_came(world, job)
    ]
    lost = [job_id for place, job_id in enumerate(lost) if place >= counted[taken_in[job_id].schedule]]
    assert lost == [], f"neither waiting, nor run, nor on record: {lost}"
    for letter in rows(world, DeadLetter, "Runs", "DEAD#"):
        run = runs.get((letter.run_id, letter.attempt))
        assert run is not None and run.state == "FAILED", (
            f"a dead letter of attempt {letter.attempt}, which is {run.state if run else 'not there'}"
        )


def check_sent_once(log: Log) -> None:
    """No invocation dies here, so each attempt of a run is accepted once. If time passes between two calls, an
    invocation may outlive its lease."""
    if not log.late:
        accepted = Counter((sent.run.run_id, sent.run.attempt) for sent in log.sent if isinstance(sent.answer, Started))
        assert max(accepted.values(), default=1) == 1, "an attempt of a run was sent twice"
