"""A joint read of rows returns their present state, also for rows that were read before."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.aws.tables import prefetch
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.writes import Put
from tests.support import rows
from tests.support.reasons import says
from tests.support.world import World


def test_a_row_that_changed_is_read_as_it_is_now() -> None:
    world = World()
    place = (rows.SCHEDULE, rows.GENERATION, "GATHERING")
    want = kinds.key(Job, *place)
    job = rows.job()
    assert world.ports.prefetch.read(world.ports, [want]).rows.get(Job, *place) is None
    for reason in ("one", "one", "two"):
        job = replace(job, reason=says(reason))
        world.ports.ledger.put_all([Put(job)])
        seen = world.ports.prefetch.read(world.ports, [want])
        assert seen.rows.get(Job, *place) == job
    assert seen.rows.get(Job, *place) is seen.rows.get(Job, *place)


def test_the_cache_of_read_rows_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(prefetch, "MAX_PARSED", 3)
    world = World()
    jobs = [rows.job(f"j{number}", sort_key=f"JOB#{number}") for number in range(10)]
    world.ports.ledger.put_all([Put(job) for job in jobs])
    seen = world.ports.prefetch.read(world.ports, [kinds.key_of(job) for job in jobs])
    assert [seen.rows.get(Job, job.schedule, job.generation, job.sort_key) for job in jobs] == jobs
    assert len(world.ports.prefetch._parsed) <= 3
