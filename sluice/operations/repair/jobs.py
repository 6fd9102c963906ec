"""Schedules and waiting jobs after a restore: those that are closed, have ended, or are missing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from chalicelib.core.fires import bundles
from chalicelib.core.fires.fire import fire_event, nominal_of, shape_of
from chalicelib.core.instants import SECOND, iso
from chalicelib.core.jobs.of_period import of_mark
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import WAKE
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.writes import DeleteJob
from chalicelib.flow import lookup
from chalicelib.flow.ingest import apply
from chalicelib.flow.schedules import pauses
from sluice.operations.repair.repair import Repair
from sluice.operations.rules import missing_fires
from sluice.operations.rules.missing_fires import Shapes

MAX_VERSIONS = 100  # of a schedule, which say how many events its fires had
WHY = "held by a repair"


def closed_schedules(repair: Repair) -> None:
    """Hold each schedule whose state may be older than a change that another table shows."""
    newer: dict[str, int] = {}
    for job in [*repair.stock.tombstones, *repair.stock.jobs.values()]:
        newer[job.schedule] = max(job.generation, newer.get(job.schedule, 0))
    for schedule, row in sorted(repair.stock.schedule_states.items()):
        closed = any(
            job.schedule == schedule and job.generation == row.generation and job.sort_key == sort_keys.GATHERING
            for job in repair.stock.tombstones
        )
        later = newer.get(schedule, 0) > row.generation
        if row.mode not in GATHERING_MODES or not (closed or later):
            continue
        if row.mode != "hold":
            what = "replaced or enabled again" if later else "closed"
            repair.found("schedule", schedule, f"held: it was {what} after the instant of the catalog; decide")
            if not repair.dry_run:
                pauses.pause(repair.ports, schedule, "hold", "sluice repair", reason=WHY)
        _reopen(repair, schedule, row.generation)


def _reopen(repair: Repair, schedule: str, generation: int) -> None:
    """Let a held generation gather again: a closed one would count nothing after a resume."""
    closed = [row for row in repair.stock.tombstones if (row.schedule, row.generation) == (schedule, generation)]
    for job in closed:
        repair.stock.tombstones.remove(job)
        if job.job_id:
            repair.change(job, closed=False, wake_at=repair.now, leases=0)
        else:
            repair.write(DeleteJob(job))


def without_permits(repair: Repair) -> None:
    """Jobs leave their queues and hold nothing: they request their permits again. Those of a generation that the
    catalog has closed are checked, and dropped."""
    for job in list(repair.stock.jobs.values()):
        state = repair.stock.schedule_states.get(job.schedule)
        is_over = state is None or state.generation > job.generation
        if job.queued_in is not None or job.held or is_over:
            repair.change(job, queued_in=None, rank=None, held=(), units=0, wake_at=repair.now)


def ended(repair: Repair) -> None:
    """Delete the jobs that have a run or a record, then apply again the events that count for no job."""
    for job in list(repair.stock.jobs.values()):
        if job.is_bundle and job.job_id not in repair.stock.records:
            _sent(repair, job)
            continue
        later = (job.job_id, job.attempt) in repair.stock.runs
        later = later or repair.ports.rows.get(Run, job.job_id, job.attempt) is not None
        recorded = job.traits.leaves_record and job.job_id in repair.stock.records
        if later or recorded:
            repair.found("job", job.job_id, f"deleted: it has {'a run' if later else 'a record'} already")
            repair.drop(job)
    if not repair.dry_run:
        for mark in sorted(repair.again, key=lambda mark: (mark.event.accepted_at, mark.event.id)):
            rows = _subscriptions(repair, mark.event.key, mark.schedule, mark.generation)
            apply.apply_event(repair.ports, of_mark(mark.event), rows, repair.now)


def _sent(repair: Repair, bundle: Job) -> None:
    """Settle the events of a bundle that its run shows as sent."""
    run = repair.ports.rows.get(Run, bundle.job_id, bundle.attempt)
    if run is None:
        return
    later = bundles.settled(bundle, bundles.sent_in(run), run.left)
    if later is None:
        repair.found("job", bundle.job_id, "deleted: its run has all of its events")
        repair.drop(bundle)
    elif later.waiting != bundle.waiting:
        repair.found("job", bundle.job_id, f"its run has {bundle.waiting - later.waiting} of its events already")
        repair.store(later)


def _subscriptions(repair: Repair, key: str, schedule: str, generation: int) -> list[Any]:
    rows = lookup.every(partial(repair.ports.catalog.subscriptions, key))
    return [row for row in rows if (row.schedule, row.generation) == (schedule, generation) and row.leaf != WAKE]


def of_fires(repair: Repair) -> None:
    """Write the fires again that a timer has left behind, and that nothing shows."""
    for timer in repair.stock.timers:
        row = repair.stock.schedule_states.get(timer.schedule)
        schedule = lookup.definition_of(repair.ports, row)
        if row is None or schedule is None or row.generation != timer.generation:
            continue
        # Those that were due until an update that kept the trigger belong to the generation before.
        began = row.since + 1 if row.former else row.since
        versions = repair.ports.catalog.versions(timer.schedule, MAX_VERSIONS)
        sizes = repair.stock.sizes[timer.schedule, timer.generation]
        shapes = Shapes.of(versions, sizes, repair.ports.settings.horizon_seconds * SECOND)
        for fire in missing_fires.since(timer, schedule, max(repair.since, began), shapes):
            fire_id, number = bundles.fire_id(fire.schedule, fire.generation, nominal_of(fire)), fire.index
            if repair.stock.has_in_bundle(fire_id, number):
                continue
            job_id = bundles.event_id(fire_id, number)
            of_bundle = replace(fire, job_id=job_id, sort_key=sort_keys.detached(fire.created_at, job_id))
            if repair.stock.has(fire) or repair.stock.has(of_bundle) or _is_counted(repair, fire):
                continue
            lost = of_bundle if timer.bundled and bundles.size(shape_of(fire, schedule)) > 1 else fire
            repair.found("fire", lost.job_id, f"written again: nothing shows the fire of {iso(lost.created_at)}")
            repair.create(lost)


def _is_counted(repair: Repair, fire: Job) -> bool:
    """Whether a fire was an event of a job, under the mark of its event."""
    return bool(repair.ports.jobs.applied([(fire.schedule, fire.generation, fire_event(fire).id)]))
