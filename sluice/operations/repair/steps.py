"""Mend the tables of a frozen installation, after they were restored to different instants up to ten minutes apart.

The rows of three tables are compared with each other, with job runs of EMR, contexts of runs in S3, and objects of
datasets. All of these outlive a restore of the tables. `docs/guarantees.md` says what no comparison shows. A repair
that broke off is run again: it finds what is left.
"""

from __future__ import annotations

from chalicelib.core.runs import queued
from chalicelib.flow.limits import policies
from sluice.operations.repair import backfills, events, jobs, runs
from sluice.operations.repair.repair import Finding, Repair
from sluice.operations.rules.recounted import recounted


def limits(repair: Repair) -> None:
    """Empty the queues, and count what runs hold."""
    for run in list(repair.stock.runs.values()):
        if run.queued_in is not None:
            repair.store(queued.off_queue(run, repair.now))
    if not repair.dry_run:
        repair.copies.delete(repair.stock.waiters)
    spacings = {}
    for name in repair.stock.limits:
        policy = policies.policy_of(repair.ports, name.partition(":")[2]) if name.startswith("policy:") else None
        if policy is not None:
            spacings[name] = policy.pace(name.partition(":")[2]).spacing
    for state in recounted(repair.stock.limits, repair.stock.runs.values(), spacings).values():
        before = repair.stock.limits.get(state.limit_name)
        if before is None or (before.active, set(before.starts)) != (state.active, set(state.starts)):
            was = 0 if before is None else before.active
            repair.found("limit", state.limit_name, f"recounted: {state.active} in use instead of {was}")
        if not repair.dry_run:
            repair.copies.put_limit(state)


# In an order in which no step needs a later one.
STEPS = (
    backfills.begun_steps,
    runs.at_emr,
    backfills.lost,
    runs.next_attempts,
    jobs.closed_schedules,
    events.applied,
    jobs.without_permits,
    jobs.ended,
    backfills.begun_entries,
    jobs.of_fires,
    events.opened,
    runs.statuses,
    limits,
)


def run(repair: Repair) -> list[Finding]:
    """Compare and mend. Returns what was found."""
    for step in STEPS:
        step(repair)
    return repair.findings
