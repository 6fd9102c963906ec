"""Take the jobs of a closed generation off, each on record, giving back what they hold (L3, L5, L6)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import check, claim, states
from chalicelib.core.lifecycle import TOMBSTONE_LIFE
from chalicelib.core.rows import Gate, Job
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import Replace, TakeOut, Write
from chalicelib.flow import facts, waiting
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
    why = _why(gate) if same or gate is None else REPLACED
    dropped, left = 0, False
    tombstone: Job | None = None
    cursor: str | None = None
    while True:
        page = ports.jobs.jobs(schedule, generation, AT_ONCE, cursor)
        for job in page.items:
            if job.closed:
                tombstone = job
            elif not same or not _may_stay(job, gate) or _is_unmet(ports, job, gate):
                gone = take_off(ports, job, "DROPPED", why, ports.clock.now()) is not None
                dropped, left = dropped + gone, left or not gone
        if page.cursor is None:
            break
        cursor = page.cursor
    # A lost race leaves a job behind: the tombstone stays awake, and whoever finds it comes here again.
    return dropped if tombstone is None or left else dropped + _settle(ports, tombstone, why)


def _why(gate: Gate | None) -> str:
    mode = gate.mode if gate else "deleted"
    return (
        "the schedule was paused to drain before its trigger was met" if mode == "drain" else f"the schedule was {mode}"
    )


def _may_stay(job: Job, gate: Gate | None) -> bool:
    return gate is not None and gate.mode in states.claimable(job.kind, job.backfill)


def _is_unmet(ports: Ports, job: Job, gate: Gate | None) -> bool:
    """A schedule that gathers no more lets go what is met, and drops what is not (L4)."""
    if gate is None or gate.mode not in ("drain", "completed"):
        return False
    schedule = facts.definition_of(ports, gate)
    verdict = check.verdict_of(job, schedule, ports.clock.now()) if schedule else None
    return verdict is not None and not verdict.met


def _settle(ports: Ports, job: Job, why: str) -> int:
    """The tombstone stays, so that nothing joins it; the job under it goes on record and gives back what it held."""
    if job.wake_at is None:
        return 0
    job, now = waiting.regained(ports, job), ports.clock.now()
    # From now on it only bars what comes late. Before, it said what was to be given back, and so had no end.
    bare = replace(job, job_id="", waits_at=None, rank=None, held=(), reason=why, rev=job.rev + 1)
    settled = replace(bare, wake_at=None, expires_at=now + TOMBSTONE_LIFE)
    plan: list[Write] = [Replace(settled, over=job)]
    held = {line: ports.jobs.line(line) for line in job.held}
    if job.job_id:
        left = claim.drop(job, record_of(job, "DROPPED", why, now), held, now)
        plan += [write for write in left if not isinstance(write, TakeOut)]
    if ports.ledger.commit(plan) is not None:
        return 0
    woken = [Ref("line", (line,)) for line, state in held.items() if state.waiters]
    if woken:
        ports.hints.send(woken, now, now)
    return 1 if job.job_id else 0
