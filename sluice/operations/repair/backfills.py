"""Backfills and re-processings after a restore: those that are lost, and what of the others has begun."""

from __future__ import annotations

from chalicelib.core import states
from chalicelib.core.backfills import backfill, reprocess
from chalicelib.core.instants import Instant
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.job import Job
from chalicelib.core.writes import Put
from chalicelib.flow import lookup
from chalicelib.flow.backfills.plan import Entries
from sluice.operations.repair.repair import Repair
from sluice.operations.rules.adopted import attempt_of


def begun_steps(repair: Repair) -> None:
    """The backfill of each step of a re-processing that has runs. A run that ends expects it."""
    names = {named[0] for begun in repair.begun if (named := attempt_of(begun.name)) is not None} | repair.stock.ended
    for row in repair.stock.reprocesses:
        for number in range(len(row.steps) if row.state == "RUNNING" else 0):
            made = reprocess.backfill_of(row, number, repair.now)
            shown = any(backfill.job_id(made, index, made.generation) in names for index in range(made.total))
            if shown and repair.ports.rows.get(Backfill, made.schedule, made.id) is None:
                repair.found("step", f"{row.id} {number}", f"goes on: {made.schedule} has runs of it")
                repair.stock.backfills.append(made)
                repair.write(Put(made))


def lost(repair: Repair) -> None:
    """The runs of a backfill that no table has go on by themselves: a run that ends wakes its backfill."""
    for run in list(repair.stock.runs.values()):
        if run.backfill is None or (states.is_terminal(run.state) and run.state != "RETRYING"):
            continue
        if repair.ports.rows.get(Backfill, run.schedule, run.backfill) is None:
            done = f"lost: its run {run.run_id} goes on by itself"
            repair.found("backfill", f"{run.schedule} {run.backfill}", done)
            repair.change(run, backfill=None)


def begun_entries(repair: Repair) -> None:
    """Each entry of a backfill that has begun has a job, a run or a record, and each backfill is checked again."""
    shown = repair.stock.ended | repair.stock.records | {job.job_id for job in repair.stock.jobs.values()}
    for row in repair.stock.backfills:
        if row.ended_at is not None:
            continue
        ids_of = {index: backfill.job_id(row, index, row.generation) for index in range(row.total)}
        begun = max((index + 1 for index in range(row.next, row.total) if ids_of[index] in shown), default=row.next)
        if begun > row.next:
            repair.found("backfill", f"{row.schedule} {row.id}", f"entries {row.next} to {begun - 1} have begun")
        live = {**row.live, **{str(index): row.generation for index in range(row.next, begun)}}
        repair.change(row, next=begun, live=live, leases=0, wake_at=repair.now)
        for entry, generation in live.items():
            lost = generation == row.generation and ids_of[int(entry)] not in shown
            job = _entry(repair, row, int(entry), repair.now) if lost and row.state == "RUNNING" else None
            if job is not None:
                repair.found("backfill", job.job_id, "created again: its job was lost")
                repair.create(job)
    for step in repair.stock.reprocesses:
        repair.change(step, wake_at=repair.now)


def entry_of(repair: Repair, run_id: str, at: Instant) -> Job | None:
    """The job of the entry of a backfill that has become a run; None for another run."""
    for row in repair.stock.backfills:
        if run_id.startswith(f"{row.schedule}."):
            for index in range(row.total):
                if backfill.job_id(row, index, row.generation) == run_id:
                    return _entry(repair, row, index, at)
    return None


def _entry(repair: Repair, row: Backfill, index: int, at: Instant) -> Job | None:
    """The job of an entry of a backfill, as it was created. None if the run that it repeats is no longer stored."""
    if row.run is not None:
        attempts = repair.ports.runs.attempts(row.run)
        return backfill.job_of_run(row, attempts[-1], at) if attempts else None
    schedule = lookup.definition_of(repair.ports, repair.stock.schedule_states.get(row.schedule))
    by = schedule.by if schedule is not None else ()
    return Entries(repair.ports, row).job(index, by, at, repair.now)
