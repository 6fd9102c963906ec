"""load: measure how loaded something is, when that decides whether a job may launch (C6)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.constraints import load as constraint_load
from chalicelib.core.constraints.constraint import Load
from chalicelib.core.constraints.load import LoadReading
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import check
from chalicelib.core.jobs.check import Launch
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows.job import Job
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.flow.limits import pools
from chalicelib.log import logger
from chalicelib.ports import Ports


def ask(ports: Ports, job: Job, facts: Facts, now: Instant, turn: str | None) -> tuple[Job, Facts]:
    """The job and the facts with what was measured at this look, if it had to be; else as they are.

    What was measured before holds until it is to be measured again, however often the job is looked at until then.
    """
    named = constraint_load.loads_of(facts.schedule.constraints) if facts.schedule is not None else {}
    known = {key: constraint_load.remembered(job.measured, key) for key in named}
    stale = {key: load for key, load in named.items() if (said := known[key]) is None or said.until <= now}
    if not stale or not _decides(job, facts, stale, now, turn):
        return job, facts
    fresh = {key: _measured(ports, load, known[key], now) for key, load in stale.items()}
    logger.info("measured", extra={"job": job.job_id, "values": {key: each.value for key, each in fresh.items()}})
    kept = {**job.measured, **{key: reading.kept() for key, reading in fresh.items()}}
    return replace(job, measured=kept), replace(facts, loads=fresh)


def _decides(job: Job, facts: Facts, stale: dict[str, Load], now: Instant, turn: str | None) -> bool:
    launched = []
    for met in (True, False):
        assumed = {key: constraint_load.assume(load, met, now) for key, load in stale.items()}
        launched.append(isinstance(check.decide(job, replace(facts, loads=assumed), now, turn), Launch))
    return launched == [True, False]


def _measured(ports: Ports, load: Load, before: LoadReading | None, now: Instant) -> LoadReading:
    if load.of.pool is not None:
        row = ports.catalog.definition("pool", load.of.pool)
        if row is None:
            return constraint_load.failed(load, f"there is no pool {load.of.pool}", before, now)
        return constraint_load.told(load, pools.view(ports, row)["in_use"] / row.document["size"], now)
    value = ports.targets.measure(load.of.model_dump(mode="json", exclude_none=True))
    if isinstance(value, Never | NoAnswer):
        return constraint_load.failed(load, value.why, before, now)
    return constraint_load.told(load, value, now)
