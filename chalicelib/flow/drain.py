"""Take the jobs of a closed generation off, each on record, giving back what they hold (L3, L5, L6)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import check, launch
from chalicelib.core.calendar import Instant
from chalicelib.core.rows import GATHERING, Job, Record
from chalicelib.core.writes import Put, Replace, TakeOut, Write
from chalicelib.flow.check import take_off
from chalicelib.ports import Ports

AT_ONCE = 100


def drain(ports: Ports, schedule: str, generation: int) -> int:
    """Drop whatever of this generation may not be claimed any more, then settle its tombstone. Repeatable."""
    gate = ports.catalog.gate(schedule)
    why = _why(gate.mode if gate else "deleted", gate is not None and gate.generation == generation)
    dropped, cursor = 0, None
    while True:
        page = ports.jobs.jobs(schedule, generation, AT_ONCE, cursor)
        for job in page.items:
            same = gate is not None and gate.generation == generation
            if same and gate is not None and gate.mode in check.CLAIMABLE[job.kind]:
                continue
            dropped += _drop(ports, job, why)
        if page.cursor is None:
            return dropped
        cursor = page.cursor


def _drop(ports: Ports, job: Job, why: str) -> int:
    now = ports.clock.now()
    if job.closed:
        return _settle(ports, job, why, now)
    if job.place == GATHERING:
        return 0  # written after the gate was read: of an open generation
    return 1 if take_off(ports, job, "DROPPED", why, now) else 0


def _settle(ports: Ports, job: Job, why: str, now: Instant) -> int:
    """The tombstone stays, so that nothing joins it; the job under it goes on record and gives back what it held."""
    if job.wake_at is None:
        return 0
    tombstone = replace(
        job, job_id=job.job_id, waits_at=None, rank=None, held=(), wake_at=None, reason=why, rev=job.rev + 1
    )
    plan: list[Write] = [Replace(tombstone)]
    if job.job_id:
        held = {line: ports.jobs.line(line) for line in job.held}
        record = Record(
            job.job_id,
            "DROPPED",
            job.schedule,
            job.generation,
            why,
            now,
            job.created_at,
            expires_at=now + launch.HISTORY,
        )
        leaving = [write for write in launch.drop(job, record, held, now) if not isinstance(write, TakeOut | Put)]
        plan += [Put(record), *leaving]
    return 1 if ports.ledger.commit(plan) is None and job.job_id else 0


def _why(mode: str, same_generation: bool) -> str:
    return (
        f"the schedule was {mode}"
        if same_generation and mode != "enabled"
        else "the schedule was replaced or enabled anew"
    )
