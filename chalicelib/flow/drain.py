"""Take the jobs of a closed generation off, each on record, giving back what they hold (L3, L5, L6)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import check, launch
from chalicelib.core.rows import Job
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import Replace, TakeOut, Write
from chalicelib.flow.check import record_of, take_off
from chalicelib.ports import Ports

AT_ONCE = 100
REPLACED = "the schedule was replaced or enabled anew"


def drain(ports: Ports, schedule: str, generation: int) -> int:
    """Drop whatever of this generation may not be claimed any more, then settle its tombstone. Repeatable.

    The tombstone comes last: until it is settled it keeps its place in the wake index, and a death on the way is found.
    """
    gate = ports.catalog.gate(schedule)
    same = gate is not None and gate.generation == generation
    allowed = [kind for kind, modes in check.CLAIMABLE.items() if same and gate is not None and gate.mode in modes]
    why = f"the schedule was {gate.mode if gate else 'deleted'}" if same or gate is None else REPLACED
    dropped, left = 0, False
    tombstone: Job | None = None
    cursor: str | None = None
    while True:
        page = ports.jobs.jobs(schedule, generation, AT_ONCE, cursor)
        for job in page.items:
            if job.closed:
                tombstone = job
            elif job.kind not in allowed:
                gone = take_off(ports, job, "DROPPED", why, ports.clock.now()) is not None
                dropped, left = dropped + gone, left or not gone
        if page.cursor is None:
            break
        cursor = page.cursor
    # A lost race leaves a job behind: the tombstone stays awake, and whoever finds it comes here again.
    return dropped if tombstone is None or left else dropped + _settle(ports, tombstone, why)


def _settle(ports: Ports, job: Job, why: str) -> int:
    """The tombstone stays, so that nothing joins it; the job under it goes on record and gives back what it held."""
    if job.wake_at is None:
        return 0
    now = ports.clock.now()
    plan: list[Write] = [
        Replace(replace(job, waits_at=None, rank=None, held=(), wake_at=None, reason=why, rev=job.rev + 1))
    ]
    held = {line: ports.jobs.line(line) for line in job.held}
    if job.job_id:
        left = launch.drop(job, record_of(job, "DROPPED", why, now), held, now)
        plan += [write for write in left if not isinstance(write, TakeOut)]
    if ports.ledger.commit(plan) is not None:
        return 0
    woken = [Ref("line", (line,)) for line, state in held.items() if state.waiters]
    if woken:
        ports.hints.send(woken, now, now)
    return 1 if job.job_id else 0
